#include "models/parallel/estimators.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast::parallel {
namespace {

constexpr double kBufferFactor = 1.5;
constexpr double kLowPrecision = 2.0;     // bytes of an fp16 parameter
constexpr double kFullPrecision = 4.0;    // of an fp32 one, as a model is loaded
constexpr double kStates = 18.0;          // with gradients
constexpr double kHostStates = 16.0;      // without the fp16 gradient
constexpr double kRule = 40.0;

}  // namespace

std::vector<DeepSpeedEstimate> deepspeed_estimates(const EstimatorInput& input) {
  const double p = input.parameters;
  const auto per_node = static_cast<double>(input.gpus_per_node);
  const auto nodes = static_cast<double>(input.nodes);
  const double gpus = per_node * nodes;
  const double gathered = 2.0 * kLowPrecision * input.largest_layer;  // parameters and gradients of one layer
  std::vector<DeepSpeedEstimate> all;
  for (const auto& [offload_parameters, offload_optimizer] : {std::pair{true, true}, {false, true}, {false, false}}) {
    for (const bool zero_init : {true, false}) {
      DeepSpeedEstimate row{.stage = 3, .offload_parameters = offload_parameters, .offload_optimizer = offload_optimizer, .zero_init = zero_init};
      if (offload_optimizer) {
        const double held = offload_parameters ? kStates : kHostStates;
        row.device_bytes = gathered + (offload_parameters ? 0.0 : kLowPrecision * p / gpus);
        row.host_bytes_per_node = (zero_init ? held * p / nodes : p * std::max(kFullPrecision * per_node, held / nodes)) * kBufferFactor;
      } else {
        row.device_bytes = gathered + kStates * p / gpus;
        row.host_bytes_per_node = kFullPrecision * (zero_init ? input.largest_layer : p) * per_node * kBufferFactor;
      }
      all.push_back(row);
    }
  }
  all.push_back({.stage = 2, .offload_optimizer = true, .zero_init = {},
                 .host_bytes_per_node = p * std::max(kFullPrecision * gpus, kHostStates) * kBufferFactor, .device_bytes = kLowPrecision * p});
  all.push_back({.stage = 2, .offload_optimizer = false, .zero_init = {}, .host_bytes_per_node = kFullPrecision * p * per_node * kBufferFactor,
                 .device_bytes = kLowPrecision * p + kStates * p / gpus});
  return all;
}

ZeroStates zero_states(double parameters, std::int64_t replicas, double optimizer_bytes) {
  const auto n = static_cast<double>(replicas);
  const double k = optimizer_bytes;
  return {.baseline = (4.0 + k) * parameters,
          .optimizer = 4.0 * parameters + k * parameters / n,
          .gradients = 2.0 * parameters + (2.0 + k) * parameters / n,
          .parameters = (4.0 + k) * parameters / n};
}

RuleOfThumb rule_of_40(double parameters, double device_bytes) {
  const double bytes = kRule * parameters;
  return {bytes, static_cast<std::int64_t>(std::ceil(bytes / device_bytes))};
}

}  // namespace stepcast::parallel
