#include "sim/run/breakdown.hpp"

namespace stepcast::run {

Duration Breakdown::total() const {
  return compute + exposed_tp + exposed_pp + exposed_dp + exposed_ep + exposed_cp + exposed_offload + input_wait +
         optimizer + bubble + host_wait;
}

Breakdown to_breakdown(const PartTimes& times) {
  const auto at = [&](Part part) { return times[static_cast<std::size_t>(part)]; };
  return {.compute = at(Part::kCompute), .exposed_tp = at(Part::kTensor), .exposed_pp = at(Part::kPipeline),
          .exposed_dp = at(Part::kData), .exposed_ep = at(Part::kExpert), .exposed_cp = at(Part::kContext),
          .exposed_offload = at(Part::kOffload), .input_wait = at(Part::kInput), .optimizer = at(Part::kOptimizer),
          .bubble = at(Part::kBubble), .host_wait = at(Part::kHost)};
}

}  // namespace stepcast::run
