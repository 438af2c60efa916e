#include "calibration/interference.hpp"

#include <algorithm>

namespace stepcast::calibration {
namespace {

bool is_copy(const std::string& beside) { return beside.starts_with("copy"); }

// The measured number of workers that stands for `workers`: the largest that is not more.
std::optional<std::int64_t> nearest(std::span<const Interference> measured, std::int64_t workers, bool beside) {
  std::optional<std::int64_t> best;
  for (const Interference& i : measured) {
    if (!i.kernels || !i.workers || i.beside.has_value() != beside || *i.workers > workers || *i.workers < 2) continue;
    if (beside && is_copy(*i.beside)) continue;
    best = std::max(best.value_or(0), *i.workers);
  }
  return best;
}

}  // namespace

gpu::Crowding crowding_of(std::span<const Interference> measured, std::int64_t workers) {
  gpu::Crowding crowding;
  const std::optional<std::int64_t> at = nearest(measured, workers, false);
  if (!at) return crowding;
  for (const Interference& i : measured) {
    if (!i.kernels || i.workers != at || i.beside) continue;
    const double slowdown = i.slowdown.value;
    if (*i.kernels == "products") crowding.products = slowdown;
    if (*i.kernels == "attention") crowding.attention = slowdown;
    if (*i.kernels == "streams") crowding.streams = slowdown;
    if (*i.kernels == "reductions") crowding.reductions = slowdown;
  }
  return crowding;
}

std::optional<double> beside_collective(std::span<const Interference> measured, std::int64_t workers) {
  const std::optional<std::int64_t> at = nearest(measured, workers, true);
  if (!at) return std::nullopt;
  double slowdown = 1.0;
  for (const Interference& i : measured)
    if (i.kernels == "products" && i.workers == at && i.beside && !is_copy(*i.beside)) slowdown = std::max(slowdown, i.slowdown.value);
  return slowdown;
}

std::optional<std::int64_t> measured_workers(std::span<const Interference> measured, std::int64_t workers) {
  for (const bool beside : {false, true}) {
    const std::optional<std::int64_t> at = nearest(measured, workers, beside);
    if (at && *at != workers) return at;
  }
  return std::nullopt;
}

}  // namespace stepcast::calibration
