#include "models/collective/nccl_releases.hpp"

#include <cmath>
#include <limits>

namespace stepcast::collective {

bool has_algorithm(std::optional<std::int32_t> nccl, Algorithm algorithm) {
  if (!nccl) return true;
  switch (algorithm) {
    case Algorithm::kPxn:
    case Algorithm::kPxnShift: return *nccl >= 12;
    case Algorithm::kNvls: return *nccl >= 17;
    case Algorithm::kNvlsTree: return *nccl >= 18;
    case Algorithm::kPat: return *nccl >= 23;
    default: return true;
  }
}

std::int64_t tree_limit(const Layout& layout, std::int64_t channels) {
  constexpr double kRate = 5000.0;  // B/us
  if (layout.hosts < 2) return 0;
  const double ring = layout.nvlink ? kRate * static_cast<double>(channels) : kRate;
  double tree = ring * (layout.nvlink ? 0.75 : 2.0 / 3.0);
  if (layout.nvlink && layout.hosts == 2) tree *= 2.0;
  const double ring_us = 6.0 * static_cast<double>(layout.ranks - 1);
  const double tree_us = 15.0 * std::floor(std::log2(static_cast<double>(layout.hosts))) + 4.0 * (static_cast<double>(layout.local()) - 1.0);
  if (ring_us <= tree_us) return 0;
  if (tree > ring) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(ring * tree / (ring - tree) * (ring_us - tree_us));
}

std::int64_t ll_limit(plan::CollectiveKind kind, Algorithm algorithm, const Layout& layout, std::int64_t channels) {
  constexpr std::int64_t kThreads = 256;
  const bool tree = algorithm == Algorithm::kTree;
  const std::int64_t a_thread = 64 * (layout.hosts > 1 ? 2 : 1) * (tree ? 4 : 1);
  const bool in_chunks = !tree && kind != plan::CollectiveKind::kBroadcast;
  return channels * kThreads * (in_chunks ? static_cast<std::int64_t>(layout.ranks) : 1) * a_thread;
}

}  // namespace stepcast::collective
