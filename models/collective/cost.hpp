// models/collective/cost.hpp — latency of a collective and NCCL's choice of algorithm and protocol.
//
// Model    T = base + steps * hop latency + traffic * wire factor / rate                       (1)
//          ring: 2 (n-1) steps for all-reduce, n-1 otherwise, of which 2 (N-1) or N-1 cross hosts
//          tree: 2 ((n/N - 1) local + log2(N) network hops)
//          NCCL evaluates (1) for every algorithm and protocol with the bandwidths its topology
//          search found and takes the least; so do we, with the bandwidths of the modelled links.
// Symbols  n ranks, N hosts. Rates are those of an otherwise idle network; contention is the flow
//          model's business, not this file's.
// Source   NVIDIA/nccl src/graph/tuning (ncclTopoTuneModel), restated
// Valid    one communicator, ranks spread evenly over the hosts
// Ignores  NVLS, CollNet, PAT; NCCL's per-size correction factors for trees
#pragma once

#include <optional>

#include "models/collective/edges.hpp"
#include "models/collective/parameters.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/instruction.hpp"

namespace stepcast::collective {

struct Layout {
  std::size_t ranks = 1;
  std::size_t hosts = 1;
  bool nvlink = true;  // GPUs of a host talk over NVLink; else PCIe
};

struct Choice {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Duration latency;                 // before the fluid starts to move
  double wire_bytes = 0.0;          // traffic times wire factor: the work of the fluid
  std::optional<double> rate_cap;   // [wire B/s]
};

Duration latency_of(plan::CollectiveKind kind, Algorithm algorithm, Protocol protocol, const Layout& layout,
                    const Parameters& parameters);

// `ring_rate`, `tree_rate`: [B/s] the fluid reaches alone on its links. `forced`: the user's choice.
// Deterministic: ties go to the earlier algorithm, then protocol.
Choice choose(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, double ring_rate, double tree_rate,
              std::optional<Algorithm> forced, const Parameters& parameters);

}  // namespace stepcast::collective
