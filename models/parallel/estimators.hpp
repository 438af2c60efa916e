// models/parallel/estimators.hpp — closed formulas by which others size a training run, to stand beside what the
// plan's own buffers come to. None of them is used by the planner or the simulator.
//
// Symbols   P parameters, L parameters of the largest layer, g GPUs of a node, n nodes, G = g n,
//           N replicas that shard, K bytes of optimizer state per parameter, f = 1.5 a buffer factor
// DeepSpeed stage 2, optimizer on the host    GPU 2 P            host P max(4 G, 16) f
//           stage 2, no offload               GPU 2 P + 18 P/G   host 4 P g f
//           stage 3, parameters and optimizer GPU 4 L            host zero-init 18 P/n f, else P max(4 g, 18/n) f
//           stage 3, optimizer                GPU 4 L + 2 P/G    host zero-init 16 P/n f, else P max(4 g, 16/n) f
//           stage 3, no offload               GPU 4 L + 18 P/G   host zero-init 4 L g f, else 4 P g f
//           18 = 2 (gradient) + 4 (fp32 gradient) + 4 (fp32 parameter) + 8 (Adam's moments)          [bytes]
// ZeRO      baseline (4 + K) P; os 4 P + K P/N; os+g 2 P + (2 + K) P/N; os+g+p (4 + K) P/N            [bytes]
// Rule      40 bytes per parameter, whatever the model, batch and sequence
// Source    DeepSpeed: estimate_zero{2,3}_model_states_mem_needs of runtime/zero, revision edaa7221.
//           ZeRO: Rajbhandari et al., SC20, table 1 (K = 12). Rule: NAIRR Pilot resource guide (withdrawn in 2026)
// Ignores   activations, workspace, buckets and fragmentation (DeepSpeed, ZeRO): model states only
// Tests     unit/estimators_test, diff/estimators_test (DeepSpeed's own printed values)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast::parallel {

struct EstimatorInput {
  double parameters = 0.0;
  double largest_layer = 0.0;  // parameters
  std::int64_t gpus_per_node = 8;
  std::int64_t nodes = 1;
};

struct DeepSpeedEstimate {
  int stage = 3;
  bool offload_parameters = false;
  bool offload_optimizer = false;
  std::optional<bool> zero_init;      // stage 3: the model is never whole on a host
  double host_bytes_per_node = 0.0;
  double device_bytes = 0.0;          // of one GPU
};

// In the order in which DeepSpeed prints them: stage 3, then stage 2.
std::vector<DeepSpeedEstimate> deepspeed_estimates(const EstimatorInput& input);

struct ZeroStates {                   // [bytes] of one GPU
  double baseline = 0.0;
  double optimizer = 0.0;             // ZeRO-1
  double gradients = 0.0;             // ZeRO-2
  double parameters = 0.0;            // ZeRO-3
};
// Requires: replicas > 0.
ZeroStates zero_states(double parameters, std::int64_t replicas, double optimizer_bytes = 12.0);

// [bytes] over all GPUs, and how many GPUs of `device_bytes` hold them.
struct RuleOfThumb {
  double bytes = 0.0;
  std::int64_t gpus = 0;
};
RuleOfThumb rule_of_40(double parameters, double device_bytes);

}  // namespace stepcast::parallel
