// models/parallel/emitter.hpp — what every part of a stage's program is written through: the
// builder, the compute stream, and buffers that are declared once and allocated again and again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/plan/builder.hpp"

namespace stepcast::parallel {

class Emitter {
 public:
  explicit Emitter(std::string name)
      : builder{std::move(name)}, compute{builder.stream(plan::StreamKind::kCompute, "compute")} {}

  // Allocates a buffer that nothing else is using, a freed one of the same kind if there is one.
  // Nothing for size 0.
  std::optional<plan::BufferId> acquire(plan::StreamId stream, std::string_view label, Bytes size,
                                        plan::Category category);
  void release(plan::StreamId stream, std::optional<plan::BufferId> buffer);
  // The host issues nothing more before `stream` has done what it was given.
  void host_waits_for(plan::StreamId stream);

  plan::ProgramBuilder builder;
  plan::StreamId compute;

 private:
  using Key = std::tuple<std::string, Bytes, plan::Category>;
  std::map<Key, std::vector<plan::BufferId>> free_;
};

// Another stage of the step for as long as it lives.
class StageScope {
 public:
  StageScope(Emitter& emitter, plan::Stage stage) : builder_{emitter.builder}, before_{emitter.builder.context()} {
    builder_.stage(stage);
  }
  ~StageScope() { builder_.context(before_); }
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

 private:
  plan::ProgramBuilder& builder_;
  plan::Context before_;
};

}  // namespace stepcast::parallel
