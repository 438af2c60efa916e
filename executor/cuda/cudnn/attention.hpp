// executor/cuda/cudnn/attention.hpp — attention, forward and backward, as graphs that cuDNN's fused engines take: 16-bit tensors, causal or not,
// grouped queries, sums of each row kept between the passes. The graphs are those of flash attention; only their inputs and results are stored.
//
// Forward    P = scale Q K^T, masked; M = max P; L = sum exp(P - M); O = exp(P - M)/L V; log sums = M + log L
// Backward   D = sum(dO O); P = exp(scale Q K^T - log sums), masked; dV = P^T dO; dS = scale P (dO V^T - D); dK = dS^T Q; dQ = dS K
// Source     Dao 2023 (arXiv 2307.08691); which compositions the engines take: cuDNN's documentation of fused attention
// Refused    windows, queries fewer than keys with a causal mask, and what the library says of a GPU
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/common/kernels/flash.hpp"
#include "executor/cuda/cudnn/graph.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor::cudnn {

enum class Pass : std::uint8_t { kForward, kBackward };

// Tensors of a pass, [batch, length, heads, width] in 16 bits, log sums [batch, heads, length] in fp32.
struct AttentionOperands {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* out = nullptr;        // read by the backward pass
  float* log_sums = nullptr;  // likewise
  const void* dout = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
};

// A pass over one shape as operations. Throws Refused for what no engine is asked for.
class AttentionGraph {
 public:
  AttentionGraph(const Api& api, const kernels::FlashShape& shape, plan::Dtype dtype, Pass pass);

  Graph& graph() { return graph_; }
  // Bytes of the GPU's memory beside the engine's own; the first `zeroed` are to be 0 before a run.
  [[nodiscard]] std::size_t scratch() const { return zeroed_ + sums_; }
  [[nodiscard]] std::size_t zeroed() const { return zeroed_; }
  // On the handle's stream. Throws Refused.
  void run(const Plan& plan, Handle handle, const AttentionOperands& operands, void* workspace) const;

 private:
  struct Ids {
    std::int64_t q = 0, k = 0, v = 0, out = 0, log_sums = 0, scale = 0, masked = 0;  // both passes
    std::int64_t dout = 0, dq = 0, dk = 0, dv = 0, one = 0, delta = 0, dq_sums = 0;  // backward
  };
  void forward();
  void backward();
  std::int64_t masked_scores(std::int64_t scores);

  kernels::FlashShape shape_;
  Data data_;
  Graph graph_;
  Ids ids_;
  std::size_t zeroed_ = 0;  // sums of dQ in fp32
  std::size_t sums_ = 0;    // D
};

// The same, ready to run on a GPU.
class AttentionPlan {
 public:
  // Throws Refused.
  AttentionPlan(const Api& api, const Target& target, const kernels::FlashShape& shape, plan::Dtype dtype, Pass pass)
      : graph_{api, shape, dtype, pass}, plan_{graph_.graph().plan(target)} {}

  [[nodiscard]] std::size_t workspace() const { return graph_.scratch() + plan_.workspace(); }
  [[nodiscard]] std::size_t zeroed() const { return graph_.zeroed(); }
  void run(Handle handle, const AttentionOperands& operands, void* workspace) const { graph_.run(plan_, handle, operands, workspace); }

 private:
  AttentionGraph graph_;
  Plan plan_;
};

}  // namespace stepcast::executor::cudnn
