// sim/run/calls.hpp — how each communicator makes each of its collective calls: NCCL's choice for its
// size on its links, and whether the call loads the network at all.
//
// A call whose bytes would take less than kNegligible of its latency on an idle network is a matter
// of latency only: it ends latency + bytes / rate after its last arrival and takes no share of the
// links. (A gradient norm of four bytes must not make one data-parallel host differ from another.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/collective/cost.hpp"
#include "sim/run/compiled_program.hpp"
#include "sim/run/groups.hpp"
#include "sim/run/traffic.hpp"

namespace stepcast::run {

inline constexpr double kNegligible = 0.01;  // [1] of the latency; the error is below this share of it

struct Call {
  collective::Choice choice;
  Way way;
  Duration alone;             // moving the bytes when nothing else does
  bool loads_network = true;
  gpu::Taken taken;           // from each of its GPUs while it is there; nothing where it does not load the network
};

class CallTable {
 public:
  CallTable(const Machine& machine, const CompiledPlan& compiled, const GroupTable& groups, LinkPaths& paths);
  // Valid until the next call for another pair. Requires: the communicator is of the site's group.
  const Call& call(std::uint32_t communicator, std::uint32_t site);

 private:
  // Of the algorithm on an idle network. Cost O(its edges), once a communicator and algorithm.
  const collective::IdleRate& idle(std::uint32_t communicator, const Way& way);

  const Machine& machine_;
  const CompiledPlan& compiled_;
  const GroupTable& groups_;
  LinkPaths& paths_;
  UseBuilder uses_;
  std::map<std::pair<std::uint32_t, std::optional<plan::VolumesId>>, collective::IdleRates> rates_;
  std::unordered_map<std::uint64_t, Call> calls_;    // lookup only
};

}  // namespace stepcast::run
