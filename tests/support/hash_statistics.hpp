// tests/support/hash_statistics.hpp — how evenly a hash lays flows on links. For tests and bench_paths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/network/hash.hpp"
#include "sim/base/random.hpp"

namespace stepcast::network::testing {

// Most flows of a link over the mean.
inline double max_over_mean(const SwitchHash& how, HashFields fields, std::size_t flows, std::size_t links,
                            const std::function<FlowHeader(std::size_t)>& header) {
  std::vector<std::size_t> count(links, 0);
  for (std::size_t f = 0; f < flows; ++f) ++count[hashed_choice(how, HashKey{header(f), fields}, links)];
  return static_cast<double>(*std::max_element(count.begin(), count.end())) * static_cast<double>(links) / static_cast<double>(flows);
}

// The mean over `rounds` draws of seed, hosts and ports: hosts of two racks, a random port a flow.
inline double mean_max_over_mean(HashFunction function, std::size_t flows, std::size_t links, int rounds) {
  double sum = 0.0;
  for (int round = 0; round < rounds; ++round) {
    Rng rng{static_cast<std::uint64_t>(round), "balls in bins"};
    const SwitchHash how{.function = function, .seed = static_cast<std::uint32_t>(rng.next())};
    sum += max_over_mean(how, HashFields::kFiveTuple, flows, links, [&](std::size_t) {
      return FlowHeader{.source = 0x0a000000 | static_cast<std::uint32_t>(rng.below(32)),
                        .destination = 0x0a000100 | static_cast<std::uint32_t>(rng.below(32)),
                        .source_port = static_cast<std::uint16_t>(kFirstSourcePort | rng.below(1 << 14))};
    });
  }
  return sum / rounds;
}

// Headers whose free fields are numbers in sequence, as drivers hand them out; one source port for all.
enum class Pattern : std::uint8_t { kOnePair, kIncast, kRing };
inline FlowHeader structured_header(Pattern pattern, std::size_t flow) {
  const auto i = static_cast<std::uint32_t>(flow);
  FlowHeader header{.source = 0x0a000000, .destination = 0x0a001000, .destination_qp = 0x1000 + i};
  if (pattern == Pattern::kIncast) header.source = 0x0a000000 + i;  // sender i meets QP i of one receiver
  if (pattern == Pattern::kRing) {                                  // host i to host i + 1, QP numbers alike everywhere
    header.source = 0x0a000000 + i;
    header.destination = 0x0a000000 + i + 1;
    header.destination_qp = 0x1000;
  }
  return header;
}

}  // namespace stepcast::network::testing
