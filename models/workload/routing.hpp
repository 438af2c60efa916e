// models/workload/routing.hpp — how many tokens experts and ranks get.
//
// Symbols  T tokens of a rank, E experts, k experts a token, p expert-parallel ranks, c capacity factor,
//          z skew, q_i share of expert i
// Model    dropless        a rank sends T k rows, as many as it receives on average                  (1)
//          capacity        an expert takes C = ceil(c T k / E) rows of each rank, padded up to it    (2)
//          skew            q_i ~ i^-z (Zipf), the same for all ranks; experts dealt to ranks in a random
//                          order of the seed; a rank gets p sum of its q_i times the mean             (3)
// Source   (2) GShard (arXiv 2006.16668) section 2.2, Megatron-Core moe_pad_expert_input_to_capacity;
//          (3) power laws as in measured routing: NVIDIA AIConfigurator's MoE tables
// Ignores  shares that change from layer to layer and step to step; padding of rows to a multiple of 16
// Tests    unit/workload_experts_test
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast::workload {

struct Routing {
  std::optional<double> capacity_factor;  // empty: dropless
  double skew = 0.0;                      // z; without effect under a capacity
  std::uint64_t seed = 0;
  friend bool operator==(const Routing&, const Routing&) = default;
};

// (3), of each rank over the mean; all 1 without skew. Requires: ranks divides experts.
std::vector<double> rank_loads(std::int64_t experts, std::int64_t ranks, const Routing& routing);
// The largest of them.
double busiest_rank_load(std::int64_t experts, std::int64_t ranks, const Routing& routing);

struct RoutedRows {
  std::int64_t sent = 0;      // by each rank, to all ranks
  std::int64_t received = 0;  // by the busiest rank
};
RoutedRows routed_rows(std::int64_t tokens, std::int64_t experts, std::int64_t top_k, std::int64_t ranks,
                       const Routing& routing);

// Hosts that a token's experts lie on, of `hosts` or of the `limit` that it may choose from (0: of all):
// L (1 - (1 - 1/L)^k), every expert of L hosts equally likely.
double hosts_of_a_token(std::int64_t hosts, std::int64_t limit, std::int64_t top_k);

}  // namespace stepcast::workload
