// executor/cuda/cudnn/attention_library.hpp — which attention cuDNN computes: plans by shape, and for what it does not take, why not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "executor/cuda/cudnn/attention.hpp"

namespace stepcast::executor::cudnn {

class AttentionLibrary {
 public:
  // The library that the system has, on the current GPU.
  static AttentionLibrary find();
  // Without a library: why there is none.
  explicit AttentionLibrary(std::string why_not) : why_not_{std::move(why_not)} {}
  explicit AttentionLibrary(const Api& api);
  ~AttentionLibrary();
  AttentionLibrary(const AttentionLibrary&) = delete;
  AttentionLibrary& operator=(const AttentionLibrary&) = delete;

  // The plan of a pass, made at the first call, which may take seconds; null where the library does not take it.
  const AttentionPlan* plan(const kernels::FlashShape& shape, plan::Dtype dtype, Pass pass);
  // On a stream. Throws SystemError.
  void run(const AttentionPlan& plan, void* stream, const AttentionOperands& operands, void* workspace);

  // Who computed what was asked for so far: "cuDNN 9.19.0", "our own kernels (libcudnn.so.9 is not here)", or both with the passes that were refused.
  [[nodiscard]] std::string account() const;

 private:
  struct Choice {
    std::string name;  // "forward of 2 x 1024 tokens, 8 heads of 64, causal, bf16"
    std::unique_ptr<AttentionPlan> plan;
    std::string why_not;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int, bool, std::int64_t, plan::Dtype, Pass>;

  std::optional<Api> api_;
  std::string why_not_;
  Handle handle_ = nullptr;
  std::map<Key, Choice> choices_;
};

}  // namespace stepcast::executor::cudnn
