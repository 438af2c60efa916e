#include "models/collective/device_use.hpp"

#include "models/collective/nccl_constants.hpp"

namespace stepcast::collective {
namespace {

// Bytes of device memory traffic for each byte of the algorithm's.
double traffic_factor(plan::CollectiveKind kind, Algorithm algorithm) {
  constexpr double kCopy = 2.0;
  constexpr double kSum = 3.0;
  if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree) return kCopy;
  if (algorithm == Algorithm::kTree) return kCopy + kSum;
  if (kind == plan::CollectiveKind::kAllReduce) return (kCopy + kSum) / 2.0;
  return kind == plan::CollectiveKind::kReduceScatter ? kSum : kCopy;
}

}  // namespace

DeviceUse device_use(plan::CollectiveKind kind, Bytes bytes, const Choice& choice, std::size_t ranks, Duration moving,
                     const Parameters& parameters) {
  const double traffic = traffic_factor(kind, choice.algorithm) * choice.wire_bytes;
  return {channels_used(choice.algorithm, choice.protocol, bytes, ranks, parameters.channels),
          Bandwidth::from_si(traffic / moving.seconds())};
}

}  // namespace stepcast::collective
