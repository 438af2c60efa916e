#include "models/collective/nccl_constants.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace stepcast::collective {
namespace {

constexpr std::size_t kGenerations = 4;
constexpr std::array<std::array<double, 3>, kGenerations> kLlCeiling{{   // 1, 2, more hosts [GB/s]
    {39.0, 22.5, 19.0}, {87.7, 22.5, 19.0}, {141.0, 22.5, 19.0}, {282.0, 22.5, 19.0}}};
constexpr std::array<double, kGenerations> kLl128PerChannel{20.0, 20.0, 36.7, 73.4};
constexpr std::array<std::array<double, 2>, kGenerations> kTreePerChannel{{{18.5, 10.0}, {23.6, 17.8}, {41.4, 36.0}, {82.8, 72.0}}};  // 2, more hosts
constexpr std::array<double, kGenerations> kNvlsEfficiency{0.0, 0.0, 0.85, 0.74};
constexpr std::array<std::int64_t, kGenerations> kChannels{12, 24, 16, 24};

// Powers of two from 64 B to 256 MiB.
constexpr std::array<double, 23> kTreeLl{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1};
constexpr std::array<double, 23> kTreeLl128{1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1};

}  // namespace

Generation generation_of(const std::string& architecture) {
  if (architecture.starts_with("6.") || architecture.starts_with("7.")) return Generation::kVolta;
  if (architecture.starts_with("9.")) return Generation::kHopper;
  if (architecture.starts_with("10.") || architecture.starts_with("11.") || architecture.starts_with("12.")) return Generation::kBlackwell;
  return Generation::kAmpere;
}

double ll_ceiling(Generation generation, std::size_t hosts) {
  return 1e9 * kLlCeiling[static_cast<std::size_t>(generation)][std::clamp<std::size_t>(hosts, 1, 3) - 1];
}

Parameters nccl_constants(Generation generation) {
  const auto g = static_cast<std::size_t>(generation);
  Parameters p;
  p.channels = kChannels[g];
  p.nvls = kNvlsEfficiency[g] > 0.0;
  p.local.ll_ceiling = ll_ceiling(generation, 1);
  p.local.ll128_channel_ceiling = 1e9 * kLl128PerChannel[g];
  if (p.nvls) p.local.nvls_efficiency = kNvlsEfficiency[g];
  p.network.ll_ceiling = ll_ceiling(generation, 3);
  p.network.tree_channel_ceiling_two = 1e9 * kTreePerChannel[g][0];
  p.network.tree_channel_ceiling_many = 1e9 * kTreePerChannel[g][1];
  if (generation == Generation::kVolta) p.network.ring_plateau = 1.9;
  return p;
}

std::int64_t channels_used(Algorithm algorithm, Protocol protocol, Bytes bytes, std::size_t ranks, std::int64_t channels) {
  constexpr PerProtocol<std::int64_t> kThreads{512, 640, 512};
  constexpr PerProtocol<std::int64_t> kLeast{8, 8, 64};
  const auto p = static_cast<std::size_t>(protocol);
  std::int64_t work = kThreads[p] * kLeast[p];
  if (algorithm == Algorithm::kRing && protocol == Protocol::kLl) work *= static_cast<std::int64_t>(ranks);
  return std::clamp<std::int64_t>(bytes.count() / work, 1, channels);
}

double tree_correction(Protocol protocol, Bytes bytes) {
  if (protocol == Protocol::kSimple || bytes.count() < 64) return 1.0;
  const auto& table = protocol == Protocol::kLl ? kTreeLl : kTreeLl128;
  const auto index = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes.count()) >> 6U)) - 1;
  return index < table.size() ? table[index] : 1.0;
}

}  // namespace stepcast::collective
