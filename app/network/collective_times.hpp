// app/network/collective_times.hpp — a collective alone on a cluster, size by size: what nccl-tests measures, out of the
// simulator that plays training steps.
//
// Model    A plan whose one program issues the collective over and over on all ranks; time = that of one more
//          call once the stream is busy. A process that drives g GPUs issues g calls for each (launch, and for
//          grouped sends each send and receive): where the host takes longer than the collective, its time counts.
// Ignores  warm-up, timing noise, buffers that are registered
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/collective/cost.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::app {

struct CollectiveJob {
  plan::CollectiveKind kind = plan::CollectiveKind::kAllReduce;
  std::int32_t ranks = 1;
  std::int64_t element_bytes = 4;
  std::int32_t gpus_per_process = 1;
  Duration launch;          // host time of a call
  Duration issue;           // of each send or receive of a group
  std::optional<plan::VolumeTable> volumes{};  // of an all-to-all of unequal parts; sizes are what a rank holds on average
  plan::Purpose purpose = plan::Purpose::kData;  // as whose traffic it travels, where there are several networks
};

struct CollectiveTime {
  Bytes size;               // as nccl-tests states it
  std::int64_t count = 0;
  Duration time;
  collective::Algorithm algorithm = collective::Algorithm::kRing;
  collective::Protocol protocol = collective::Protocol::kSimple;
  bool host_bound = false;  // the host's issuing is what takes the time
  double algbw = 0.0;       // [B/s]
  double busbw = 0.0;
};

// nccl-tests' factor between the two bandwidths.
double bus_factor(plan::CollectiveKind kind, std::int64_t ranks);

// Sizes are cut down as nccl-tests does: to whole elements, or to 16 B a rank where the buffer is split.
// Requires: 2 <= ranks <= GPUs of the fabric.
std::vector<CollectiveTime> time_collective(const CollectiveJob& job, std::span<const Bytes> sizes, const run::Machine& machine);

}  // namespace stepcast::app
