// sim/flow/system.hpp — one max-min problem as plain arrays, the naive solution, and the certificate.
//
// Problem   flows f with weight w_f > 0, cap u_f and coefficients a_lf > 0; links l with capacity C_l.
//           x_f = w_f * level_f,  x_f <= u_f,  sum_f a_lf * x_f <= C_l.  Maximise the smallest level,
//           then the next smallest, and so on (lexicographic max-min). The solution is unique.
// Solution  progressive filling: raise all levels together; a flow stops when it reaches its cap or when
//           one of its links is full.
// Certificate   rates are the solution if and only if (1) no link is over capacity and (2) every flow is
//           at its cap or has a full link on which no other flow has a larger level
//           (Bertsekas & Gallager, Data Networks, 2nd ed. 1992, section 6.5.2; with weights and
//           coefficients by scaling x_f).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stepcast::flow {

struct System {
  std::vector<double> capacity;          // by link
  std::vector<double> weight;            // by flow
  std::vector<double> cap;               // by flow; may be infinite if the flow uses a link
  std::vector<std::uint32_t> use_begin;  // by flow, one more at the end: its range in the two below
  std::vector<std::uint32_t> use_link;   // each link at most once a flow
  std::vector<double> use_coefficient;

  [[nodiscard]] std::size_t flows() const { return weight.size(); }
  [[nodiscard]] std::size_t links() const { return capacity.size(); }
  void clear();
  // Flows are added whole: add_flow(w, u), then its uses.
  void add_flow(double flow_weight, double flow_cap);
  void add_use(std::uint32_t link, double coefficient);
};

// The obviously right way: O(rounds * uses). Oracle of the tests; Method::kFull of the solver.
std::vector<double> naive_max_min(const System& system);

// Empty if `rates` carries the certificate within tolerance::kCertificate, else what is wrong.
std::optional<std::string> certificate_fault(const System& system, std::span<const double> rates);

}  // namespace stepcast::flow
