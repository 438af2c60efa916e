// sim/flow/filling.hpp — progressive filling of one System, fast.
//
// While levels rise together, link l is full at  level_l = (C_l - load of fixed flows) / (weight of
// unfixed flows); fixing a flow can only raise level_l. So a heap may hold levels that are too low:
// the top is brought up to date, and only if it stays on top its flows are fixed. Caps have a heap
// of their own. Cost O(uses + fixed uses + (links + stale tops) * log links).
// The result depends on the system alone; systems that share no link do not disturb each other's bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/flow/system.hpp"

namespace stepcast::flow {

class Filling {
 public:
  // Rates by flow, valid until the next call. Reuses its memory.
  std::span<const double> solve(const System& system);

 private:
  struct Link {
    double fixed_load = 0.0;       // sum of a * x over fixed flows
    double unfixed_weight = 0.0;   // sum of a * w over flows that still rise
    double exact_weight = 0.0;     // unfixed_weight when last summed
    std::uint32_t unfixed = 0;     // flows that still rise; 0: done
    bool summed = true;            // both sums are formed anew since the last change
  };
  struct Candidate {
    double level;
    std::uint32_t index;
  };
  static bool later(const Candidate& a, const Candidate& b) {
    return a.level > b.level || (a.level == b.level && a.index > b.index);
  }

  void prepare();
  void sum_anew(std::uint32_t link);
  [[nodiscard]] bool is_next(const Candidate& link) const;
  [[nodiscard]] double full_level(std::uint32_t link) const;
  void fill_link(std::uint32_t link, double level);
  void fix(std::uint32_t flow, double rate);

  const System* system_ = nullptr;
  std::vector<Link> links_;
  std::vector<std::uint32_t> link_begin_;  // by link: its range in the two below, flows ascending
  std::vector<std::uint32_t> link_flow_;
  std::vector<double> link_coefficient_;
  std::vector<double> rate_;
  std::vector<std::uint8_t> fixed_;
  std::vector<Candidate> full_;    // heap of links
  std::vector<Candidate> capped_;  // heap of flows
};

}  // namespace stepcast::flow
