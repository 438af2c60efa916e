#include "sim/flow/system.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/flow/tolerance.hpp"

namespace stepcast::flow {

void System::clear() {
  capacity.clear();
  weight.clear();
  cap.clear();
  use_begin.clear();
  use_link.clear();
  use_coefficient.clear();
}

void System::add_flow(double flow_weight, double flow_cap) {
  if (use_begin.empty()) use_begin.push_back(0);
  weight.push_back(flow_weight);
  cap.push_back(flow_cap);
  use_begin.push_back(use_begin.back());
}

void System::add_use(std::uint32_t link, double coefficient) {
  use_link.push_back(link);
  use_coefficient.push_back(coefficient);
  ++use_begin.back();
}

std::vector<double> naive_max_min(const System& system) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> rate(system.flows(), 0.0);
  std::vector<bool> fixed(system.flows(), false);
  for (std::size_t left = system.flows(); left > 0;) {
    // The level at which each link would be full, all sums formed anew.
    std::vector<double> load(system.links(), 0.0);
    std::vector<double> growth(system.links(), 0.0);
    for (std::size_t f = 0; f < system.flows(); ++f) {
      for (std::uint32_t u = system.use_begin[f]; u < system.use_begin[f + 1]; ++u) {
        const double a = system.use_coefficient[u];
        if (fixed[f]) {
          load[system.use_link[u]] += a * rate[f];
        } else {
          growth[system.use_link[u]] += a * system.weight[f];
        }
      }
    }
    double level = kInfinity;
    std::vector<double> full_at(system.links(), kInfinity);
    for (std::size_t l = 0; l < system.links(); ++l) {
      if (growth[l] > 0.0) full_at[l] = std::max(0.0, system.capacity[l] - load[l]) / growth[l];
      level = std::min(level, full_at[l]);
    }
    for (std::size_t f = 0; f < system.flows(); ++f) {
      if (!fixed[f]) level = std::min(level, system.cap[f] / system.weight[f]);
    }
    SIM_CHECK(level < kInfinity, "a flow with neither cap nor link");
    for (std::size_t f = 0; f < system.flows(); ++f) {
      if (fixed[f]) continue;
      bool stops = system.cap[f] / system.weight[f] <= level;
      for (std::uint32_t u = system.use_begin[f]; u < system.use_begin[f + 1]; ++u) {
        stops = stops || full_at[system.use_link[u]] <= level;
      }
      if (!stops) continue;
      fixed[f] = true;
      rate[f] = std::min(system.cap[f], level * system.weight[f]);
      --left;
    }
  }
  return rate;
}

std::optional<std::string> certificate_fault(const System& system, std::span<const double> rates) {
  constexpr double kSlack = tolerance::kCertificate;
  SIM_CHECK(rates.size() == system.flows(), rates.size(), system.flows());
  std::vector<double> load(system.links(), 0.0);
  std::vector<double> top_level(system.links(), 0.0);
  for (std::size_t f = 0; f < system.flows(); ++f) {
    for (std::uint32_t u = system.use_begin[f]; u < system.use_begin[f + 1]; ++u) {
      const std::uint32_t l = system.use_link[u];
      load[l] += system.use_coefficient[u] * rates[f];
      top_level[l] = std::max(top_level[l], rates[f] / system.weight[f]);
    }
  }
  for (std::size_t l = 0; l < system.links(); ++l) {
    if (load[l] > system.capacity[l] * (1.0 + kSlack)) {
      return fmt::format("link {} carries {} of {}", l, load[l], system.capacity[l]);
    }
  }
  for (std::size_t f = 0; f < system.flows(); ++f) {
    if (rates[f] > system.cap[f] * (1.0 + kSlack)) {
      return fmt::format("flow {} at {} exceeds its cap {}", f, rates[f], system.cap[f]);
    }
    bool bound = rates[f] >= system.cap[f] * (1.0 - kSlack);
    for (std::uint32_t u = system.use_begin[f]; u < system.use_begin[f + 1] && !bound; ++u) {
      const std::uint32_t l = system.use_link[u];
      bound = load[l] >= system.capacity[l] * (1.0 - kSlack) &&
              rates[f] / system.weight[f] >= top_level[l] * (1.0 - kSlack);
    }
    if (!bound) return fmt::format("flow {} at {} has neither cap nor bottleneck", f, rates[f]);
  }
  return std::nullopt;
}

}  // namespace stepcast::flow
