// models/collective/cost.hpp — latency of a collective and NCCL's choice of algorithm and protocol.
//
// Model    T = L + O / c + (V + F) / r,  V = traffic * wire factor                              (1)
//          L = base + steps * hop latency, per algorithm and protocol (latency.cpp)
//          r = min(rate of the links when idle, efficiency of the protocol * rate of the links inside the
//              hosts, ceilings of LL, of LL128 and Simple trees by channel, of a pair of GPUs)  (2)
//              in steps: 1/r = 1/(efficiency * rate inside the hosts) + 1/(rate between them)
//          F = min(share * V, bytes), Simple only: chunks fill the pipeline before all of its hops move;
//              NCCL's chunks grow with the message up to 512 KiB a channel; between hosts each NIC has its channels, and
//              `bytes` is a NIC's for each hop between hosts: 2 log2 N of a tree, 1 else          (3)
//          O = S / n of a ring or all-to-all, at c: a rank's own block, which its channels copy or sum into the result with
//          nothing on a link: an all-gather's own part, the last sum of a reduce-scatter. Of two ranks it is half of all (4)
//          NCCL evaluates T for every algorithm and protocol and takes the least; so do we, with
//          the bandwidths of the modelled links in place of those its topology search finds.
// Symbols  n ranks, N hosts. Rates are those of an otherwise idle network; contention is the flow
//          model's business, not this file's.
// Source   NVIDIA/nccl src/graph/tuning.cc (ncclTopoTuneModel), restated; (3): src/enqueue.cc, where chunk
//          sizes are chosen. NCCL's own table for Simple trees stands for the same loss. (4): the first and last primitive of
//          src/device/{all_gather,reduce_scatter,all_reduce,sendrecv}.h; its law is that of 2, 4 and 8 GPUs in nine tables
// Valid    one communicator, ranks spread evenly over the hosts
// Ignores  NCCL's table of Simple trees' correction, (3) in its place; several operations in one launch; the part of
//          an SM that a channel's threads leave
// Tests    unit/collective_test (worked by hand), diff/nccl_logs_test (measured)
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "models/collective/edges.hpp"
#include "models/collective/parameters.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/instruction.hpp"

namespace stepcast::collective {

struct Layout {
  std::size_t ranks = 1;
  std::size_t hosts = 1;
  bool nvlink = true;    // GPUs of a host talk over NVLink; else PCIe
  bool nvswitch = false; // through a switch that all of them share
  std::size_t nics = 1;  // of a host, beside its ranks: each has its own channels

  [[nodiscard]] bool even() const { return ranks % hosts == 0; }
  [[nodiscard]] std::size_t local() const { return ranks / hosts; }  // ranks of a host
};

// What the user fixed; empty: NCCL's choice.
struct Forced {
  std::optional<Algorithm> algorithm;
  std::optional<Protocol> protocol;
  std::optional<std::int32_t> nccl;  // 4 is NCCL 2.4; empty: as parameters.hpp
};

// Of an algorithm's edges on idle links [B/s].
struct IdleRate {
  double whole = 0.0;          // 0: not asked for
  double local = kNoCeiling;   // of the edges inside hosts alone
  double network = kNoCeiling; // of those between hosts; asked for where has_steps()
};
using IdleRates = std::array<IdleRate, kAlgorithmCount>;  // index: Algorithm

struct Choice {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  Duration latency;                 // before the fluid starts to move, the pipeline's fill included
  double wire_bytes = 0.0;          // traffic times wire factor: the work of the fluid
  std::optional<double> rate_cap;   // [wire B/s]
};

// Algorithms that NCCL considers, in order of preference among equals. Where the forced one cannot make the
// collective on this layout, those that can: as NCCL, which then ignores the wish.
std::vector<Algorithm> candidates(plan::CollectiveKind kind, const Layout& layout, const Parameters& parameters,
                                  const Forced& forced = {});
// What a wish for the algorithm means for this collective: pxn of send and receive is pxn-shift, and so on.
Algorithm counterpart(Algorithm algorithm, plan::CollectiveKind kind);
bool can_make(Algorithm algorithm, plan::CollectiveKind kind, const Layout& layout, const Parameters& parameters);
// Its levels follow each other, the next after the last: hierarchical and two-step.
bool has_steps(Algorithm algorithm);
bool has_protocol(Algorithm algorithm, Protocol protocol, const Layout& layout);

Duration latency_of(plan::CollectiveKind kind, Algorithm algorithm, Protocol protocol, const Layout& layout,
                    const Parameters& parameters);

// The cost (1) of one algorithm and protocol, and its parts.
struct Cost {
  Choice choice;
  double seconds = 0.0;
};
Cost evaluate(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, Algorithm algorithm, Protocol protocol,
              const IdleRate& idle, const Parameters& parameters);

// Requires: `idle` holds the rates of all candidates.
// Deterministic: ties go to the earlier candidate, then protocol.
Choice choose(plan::CollectiveKind kind, Bytes bytes, const Layout& layout, const IdleRates& idle, const Forced& forced,
              const Parameters& parameters);

}  // namespace stepcast::collective
