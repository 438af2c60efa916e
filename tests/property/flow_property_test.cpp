// The solver on random systems: the bottleneck certificate, the naive solver, and histories of changes.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/flow/solver.hpp"
#include "sim/flow/tolerance.hpp"

using namespace stepcast;
using namespace stepcast::flow;

namespace {

double pick(Rng& rng, std::initializer_list<double> values) {
  return values.begin()[rng.below(values.size())];
}

std::vector<Use> random_uses(Rng& rng, std::size_t links) {
  std::vector<Use> uses;
  const std::uint64_t count = 1 + rng.below(std::min<std::uint64_t>(6, links));
  for (std::uint64_t i = 0; i < count; ++i) {
    uses.push_back({LinkIndex{static_cast<std::uint32_t>(rng.below(links))},
                    rng.below(2) == 0 ? 1.0 : rng.uniform(0.1, 4.0)});
  }
  return uses;
}
double random_weight(Rng& rng) { return rng.below(2) == 0 ? 1.0 : rng.uniform(0.1, 10.0); }
double random_cap(Rng& rng) { return rng.below(3) == 0 ? rng.uniform(0.05, 5.0) : Solver::kUncapped; }
// Few distinct values make ties common; the others make them rare.
double random_capacity(Rng& rng) {
  return rng.below(2) == 0 ? pick(rng, {1.0, 2.0, 4.0}) : rng.uniform(0.5, 20.0);
}

Solver random_net(Rng& rng, Method method = Method::kIncremental) {
  Solver net(method);
  const std::uint64_t links = 1 + rng.below(20);
  const std::uint64_t flows = 1 + rng.below(40);
  for (std::uint64_t l = 0; l < links; ++l) net.add_link(random_capacity(rng));
  for (std::uint64_t f = 0; f < flows; ++f) {
    const std::vector<Use> uses = random_uses(rng, links);
    const double weight = random_weight(rng);
    net.add_flow(uses, weight, random_cap(rng));
  }
  return net;
}

std::vector<double> rates_of(const Solver& net, const std::vector<FlowIndex>& flows) {
  std::vector<double> rates;
  for (const FlowIndex flow : flows) rates.push_back(net.rate(flow));
  return rates;
}

void require_near(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::abs(got[i] - want[i]) <= tolerance::kCertificate * std::max(got[i], want[i]));
  }
}

}  // namespace

TEST_SUITE_BEGIN("property");

// On 2500 systems the solution carries the certificate and equals the naive one; and the
// certificate is worth something: lowering or raising any one rate by 0.1 % breaks it.
TEST_CASE("flow: every flow has a bottleneck, and a change of 0.1 % to any rate is caught") {
  std::size_t changes = 0;
  for (std::uint64_t seed = 1; seed <= 2500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "system");
    Solver net = random_net(rng);
    net.solve();
    std::vector<FlowIndex> flows;
    const System system = net.system(flows);
    std::vector<double> rates = rates_of(net, flows);
    const std::optional<std::string> fault = certificate_fault(system, rates);
    INFO(fault.value_or(""));
    REQUIRE_FALSE(fault.has_value());
    require_near(rates, naive_max_min(system));
    for (std::size_t i = 0; i < rates.size(); ++i) {
      CAPTURE(i);
      const double right = rates[i];
      rates[i] = right * 0.999;
      REQUIRE(certificate_fault(system, rates).has_value());
      rates[i] = right * 1.001;
      REQUIRE(certificate_fault(system, rates).has_value());
      rates[i] = right;
      changes += 2;
    }
  }
  CHECK(changes > 80'000);
}

// Random histories: what incremental solving leaves is what solving everything at once gives, bit for
// bit; what solve() returns is exactly what changed.
TEST_CASE("flow: incremental equals solving everything, bit for bit") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "history");
    Solver net;
    const std::uint64_t links = 2 + rng.below(40);
    for (std::uint64_t l = 0; l < links; ++l) net.add_link(random_capacity(rng));
    std::vector<FlowIndex> alive;
    std::vector<double> known;  // rate by index, as reported
    for (int step = 0; step < 120; ++step) {
      for (std::uint64_t change = rng.below(4); change > 0; --change) {
        const std::uint64_t dice = rng.below(10);
        if (dice < 5 || alive.empty()) {
          const std::vector<Use> uses = random_uses(rng, links);
          const double weight = random_weight(rng);
          alive.push_back(net.add_flow(uses, weight, random_cap(rng)));
        } else if (dice < 8) {
          const std::size_t victim = rng.below(alive.size());
          net.remove_flow(alive[victim]);
          alive[victim] = alive.back();
          alive.pop_back();
        } else if (dice < 9) {
          net.set_cap(alive[rng.below(alive.size())], random_cap(rng));
        } else {
          net.set_capacity(LinkIndex{static_cast<std::uint32_t>(rng.below(links))},
                           rng.below(8) == 0 ? 0.0 : random_capacity(rng));
        }
      }
      for (const FlowIndex flow : net.solve()) {
        known.resize(std::max(known.size(), flow.index() + 1), 0.0);
        known[flow.index()] = net.rate(flow);
      }
      std::vector<FlowIndex> flows;
      const System system = net.system(flows);
      for (std::size_t i = 0; i < flows.size(); ++i) {
        CAPTURE(step);
        CAPTURE(i);
        REQUIRE(known[flows[i].index()] == net.rate(flows[i]));
      }
      // A second solver that gets the same flows at once, in index order: equal bits.
      Solver fresh;
      for (const double capacity : system.capacity) fresh.add_link(capacity);
      std::vector<FlowIndex> copies;
      for (std::size_t f = 0; f < system.flows(); ++f) {
        std::vector<Use> uses;
        for (std::uint32_t u = system.use_begin[f]; u < system.use_begin[f + 1]; ++u) {
          uses.push_back({LinkIndex{system.use_link[u]}, system.use_coefficient[u]});
        }
        copies.push_back(fresh.add_flow(uses, system.weight[f], system.cap[f]));
      }
      fresh.solve();
      REQUIRE(rates_of(fresh, copies) == rates_of(net, flows));
      require_near(rates_of(net, flows), naive_max_min(system));
    }
  }
}

// Method::kFull is the same solver to its user: same changes reported but for the last bits.
TEST_CASE("flow: the full method gives the same rates") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng a(seed, "method");
    Rng b(seed, "method");
    Solver incremental = random_net(a);
    Solver full = random_net(b, Method::kFull);
    incremental.solve();
    full.solve();
    std::vector<FlowIndex> flows;
    const System system = incremental.system(flows);
    REQUIRE(system.flows() == flows.size());
    require_near(rates_of(incremental, flows), rates_of(full, flows));
  }
}

// Weights over nine orders of magnitude on few links: the running sums cancel badly, the certificate
// must hold all the same.
TEST_CASE("flow: weights of very different size") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "weights");
    Solver net;
    for (int l = 0; l < 4; ++l) net.add_link(random_capacity(rng));
    for (int f = 0; f < 60; ++f) {
      const std::vector<Use> uses = random_uses(rng, 4);
      net.add_flow(uses, std::pow(10.0, rng.uniform(-6.0, 3.0)), random_cap(rng));
    }
    net.solve();
    std::vector<FlowIndex> flows;
    const System system = net.system(flows);
    const std::optional<std::string> fault = certificate_fault(system, rates_of(net, flows));
    INFO(fault.value_or(""));
    REQUIRE_FALSE(fault.has_value());
  }
}

// Adding bandwidth to the only bottleneck never slows anyone down.
TEST_CASE("flow: a larger single bottleneck slows nobody") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "monotone");
    Solver net;
    const LinkIndex bottleneck = net.add_link(rng.uniform(1.0, 10.0));
    std::vector<FlowIndex> flows;
    for (std::uint64_t f = 0; f < 2 + rng.below(20); ++f) {
      const std::vector<Use> uses = {{bottleneck, rng.uniform(0.1, 4.0)}, {net.add_link(1000.0)}};
      const double weight = random_weight(rng);
      flows.push_back(net.add_flow(uses, weight, random_cap(rng)));
    }
    net.solve();
    const std::vector<double> before = rates_of(net, flows);
    net.set_capacity(bottleneck, net.capacity(bottleneck) * rng.uniform(1.0, 3.0));
    net.solve();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      REQUIRE(net.rate(flows[i]) >= before[i] * (1.0 - tolerance::kCertificate));
    }
  }
}

TEST_SUITE_END();
