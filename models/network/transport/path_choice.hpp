// models/network/transport/path_choice.hpp — on which of its routes a message sends its next packet.
//
// Model    Routes permuted: every route once, in random order, then in another order (NDP, source-routed).
//          Entropies: the sender cycles through n header values; switches hash each to one of the routes, so that
//            routes get unequal numbers of them. A value whose packet was marked or trimmed is passed over as often
//            as it was so. With recycling, values that came back clean are used again before any other.
// Source   NDP (SIGCOMM 2017); EQDS (NSDI 2022); UE specification 1.0, load balancing
// Ignores  hash functions: a value's route is random and never changes
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/base/random.hpp"

namespace stepcast::network {

enum class Spreading : std::uint8_t { kPermuted, kEntropies, kRecycled };

class PathChoice {
 public:
  struct Path {
    std::uint32_t route = 0;    // index into the message's routes
    std::uint32_t entropy = 0;
  };

  // Requires: routes > 0, entropies > 0.
  PathChoice(Spreading spreading, std::uint32_t routes, std::uint32_t entropies, Rng& random);

  Path next(Rng& random);
  void good(std::uint32_t entropy);
  void bad(std::uint32_t entropy, std::uint32_t penalty = 1);

 private:
  void shuffle(Rng& random);

  Spreading spreading_;
  std::vector<std::uint32_t> route_of_;   // by entropy
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> penalty_;    // by entropy
  std::deque<std::uint32_t> clean_;
  std::size_t at_ = 0;
};

}  // namespace stepcast::network
