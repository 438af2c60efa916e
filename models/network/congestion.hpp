// models/network/congestion.hpp — what congestion control leaves of a link at which several sources meet.
//
// Model    A link of capacity C that n sources share at once carries  C eta(n),
//            eta(1) = 1;   eta(n) = 1 - loss - per_doubling * (floor(log2 n) - 1),  n >= 2, never below 0.05      (1)
//          n at a receiver's port is its fan-in, at an up-link how many senders its oversubscription puts on it; a flow
//          that meets both is held back by the worse of the two (max-min over both links).
//          Steps at powers of two: as flows come and go a link's capacity changes O(log n) times.
// When     n counts the sources whose flows are under way at the instant of a solve; the solver sees fixed capacities, its
//          certificate holds for C eta(n). Starts and ends of one instant count together.
// Source   form and figures: bench/bench_congestion runs the packet models over fan-in 1 to 64 and oversubscription 1 to
//          4 (calibration/data/congestion.csv); the fit and its error on sizes held out: diff/congestion_test,
//          docs/guide/transports.md
// Valid    flows of 4 MB and more that all last; figures belong to one transport
// Ignores  time to converge after each change (short flows lose more: 1 MB 3 to 5 % instead of 1.5); flows that wait behind
//          paused ones without crossing the link that is full; unfairness (a collective waits for its last flow)
// Tests    unit/congestion_test (by hand), property/run_property_test (folded = unfolded, more sources never faster)
#pragma once

#include <algorithm>
#include <cmath>

namespace stepcast::network {

struct Congestion {
  double loss = 0.0;          // of the capacity, as soon as two sources meet
  double per_doubling = 0.0;  // further, each time that their number doubles

  [[nodiscard]] bool ideal() const { return loss == 0.0 && per_doubling == 0.0; }
  // (1). Sums of parts of sources may be a rounding below a whole number.
  [[nodiscard]] double eta(double sources) const {
    constexpr double kRounding = 1e-6;
    constexpr double kLeast = 0.05;
    if (sources < 2.0 - kRounding) return 1.0;
    return std::max(kLeast, 1.0 - loss - per_doubling * (std::floor(std::log2(sources + kRounding)) - 1.0));
  }
};

}  // namespace stepcast::network
