// sim/run/breakdown.hpp — where a worker's time goes while the step runs: one counter a part.
#pragma once

#include <array>
#include <cstdint>

#include "sim/plan/instruction.hpp"
#include "sim/run/result.hpp"

namespace stepcast::run {

enum class Part : std::uint8_t {
  kCompute, kTensor, kPipeline, kData, kExpert, kContext, kOffload, kInput, kOptimizer, kBubble, kHost
};
inline constexpr std::size_t kPartCount = 11;
using PartTimes = std::array<Duration, kPartCount>;

constexpr Part exposed(plan::Purpose purpose) {
  switch (purpose) {
    case plan::Purpose::kTensor: return Part::kTensor;
    case plan::Purpose::kPipeline: return Part::kPipeline;
    case plan::Purpose::kData: return Part::kData;
    case plan::Purpose::kExpert: return Part::kExpert;
    case plan::Purpose::kContext: return Part::kContext;
    case plan::Purpose::kOffload: return Part::kOffload;
  }
  return Part::kOffload;
}

Breakdown to_breakdown(const PartTimes& times);

}  // namespace stepcast::run
