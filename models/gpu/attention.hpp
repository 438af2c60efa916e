// models/gpu/attention.hpp — fused (flash) attention: blocks of queries run over blocks of keys.
// Model    one work item per (batch, head, query block i); it visits K_i key blocks: all of them, or
//          for causal attention those up to its own diagonal, or those within the window.             (1)
//            t_step = max(t_mma, t_exp) + (1 - o) min(t_mma, t_exp)                                  (2)
//            t_mma = 2 q_b k_b (d + d_v) / (e peak/SMs),   t_exp = q_b k_b / (x f)                    (3)
//            t = max(sum_i (K_i t_step + t_b) / SMs + u (1 - SMs/N) t_longest, t_longest, bytes / (e_m B_mem))   (4)
//          Backward: items are key blocks, five products instead of two, its own e.                  (5)
// Symbols  q_b, k_b [1] block sizes; d, d_v [1] head dimensions; x [1/clock] scores that one SM's
//          special-function units and CUDA cores finish; f [Hz] clock; o [1] overlap; t_b [s] per item; N items;
//          u [1] tail: items of causal attention differ in length, and where they are dealt in the grid's order the last one
//          may begin when all others end (u = 1, list scheduling); kernels that take the longest first leave little (u ~ 0.1)
// Source   Graham 1966 (bounds for list scheduling) for the tail of (4); Dao 2023 (arXiv 2307.08691) sections 3.1-3.3 for (1), (5); Shah et al. 2024 (arXiv
//          2407.08608) section 3.1 for (2): 16 exponentials per clock and SM against 4096 FLOP
// Valid    one kernel, keys and values in device memory
// Ignores  how the tail shrinks with many items of equal length; softmax rescaling, page tables, dropout, atomics of dQ
#pragma once

#include "models/gpu/gpu_parameters.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::gpu {

// Key blocks visited, over all query blocks of one head: the longest row and the sum.
struct BlockCount {
  std::int64_t items = 0;
  std::int64_t longest = 0;
  std::int64_t total = 0;
};
BlockCount count_blocks(const plan::AttentionShape& shape, std::int64_t query_block, std::int64_t key_block);

// Without the kernel latency.
double attention_seconds(const GpuParameters& gpu, const plan::AttentionShape& shape, plan::Dtype dtype,
                         plan::Pass pass, double bytes);

}  // namespace stepcast::gpu
