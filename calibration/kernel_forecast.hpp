// calibration/kernel_forecast.hpp — what a kernel benchmark would show, as published tables time it:
// calls one after another from a CUDA graph, so every kernel is followed by the gap to the next.
// Model    t = t_b + (t_s - t_b) R / (R + tau),   R = 12 t_b                                          (1)
//          operands of products come out of L2 where the copies of the weights fit there: of f = 6 n k b + (m k + m n) b bytes
//          the share min(1, 4 (1 - f / L2))                                                                (2)
// Symbols  t_b, t_s [s] the call at the boost clock and at the sustained one; R [s] how long the run has
//          lasted; tau [s] power response of the profile; b [B] of an element
// Source   (1) ../shared/kernels/README.md: 3 calls to warm up, 3 replays to warm up, 6 measured; (2) the same: a graph holds up to 6
//          copies of the weights in turn; how L2 fades out: models/gpu/memory_bound.cpp
// Valid    runs of milliseconds on a cool GPU   Ignores  the clock of the run before
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "calibration/profile.hpp"
#include "models/gpu/gpu_model.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct AttentionCase {
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  std::int64_t sequence = 1;
  bool vllm = false;               // vLLM's kernels and cache, else those of the other engines
};

// One mixture-of-experts layer as one rank runs it, without communication.
struct MoeCase {
  std::int64_t tokens = 1;         // of all expert-parallel ranks
  std::int64_t hidden = 1;
  std::int64_t intermediate = 1;   // of one expert, before tensor parallelism
  std::int64_t top_k = 1;
  std::int64_t experts = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t expert_parallel = 1;
  double power_law = 0;            // exponent of the load over experts; 0: balanced
  bool gated = true;               // three matrices, else two
};

class KernelForecast {
 public:
  KernelForecast(const topology::Gpu& gpu, const Profile& profile);

  [[nodiscard]] bool supports(plan::Dtype dtype) const { return gpu_.short_run.supports(dtype); }

  // fp8: with the quantisation of the activations.
  [[nodiscard]] double gemm_seconds(std::int64_t m, std::int64_t n, std::int64_t k, plan::Dtype dtype) const;

  // A kernel that a benchmark times alone, start to end on the device, at the sustained clock.
  [[nodiscard]] double alone_seconds(const plan::Kernel& kernel) const { return gpu_.sustained.time(kernel).seconds(); }

  // Causal forward of an inference engine: writes keys and values into the cache, then attends; its call has an overhead of its own.
  [[nodiscard]] double attention_seconds(const AttentionCase& c, plan::Dtype dtype) const;

  [[nodiscard]] double moe_seconds(const MoeCase& c, plan::Dtype dtype) const;

 private:
  // One GPU at both clocks.
  struct Clocks {
    gpu::GpuModel short_run;
    gpu::GpuModel sustained;
  };
  // An engine's call of attention.
  struct Engine {
    std::optional<double> overhead_s;
    double cache_efficiency = 1;   // [1] of streams
  };

  template <class Seconds>
  double measured(const Clocks& gpu, Seconds seconds) const;

  Clocks gpu_;
  std::optional<Clocks> vllm_gpu_;   // with the rate of vLLM's attention
  double power_response_s_;
  Engine engine_;
  Engine vllm_;
};

// Tokens of each expert on the most loaded rank, most loaded expert first. Balanced: equal shares.
// Power law: quantiles of the bounded law x^-alpha on [1, 0.8 tokens], scaled to tokens * top_k and dealt to
// the ranks in turn.
std::vector<std::int64_t> expert_loads(const MoeCase& c);

}  // namespace stepcast::calibration
