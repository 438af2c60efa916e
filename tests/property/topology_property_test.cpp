#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/random.hpp"
#include "tests/support/topology_hardware.hpp"
#include "topologies/bisection.hpp"
#include "topologies/path_dag.hpp"
#include "topologies/routing.hpp"
#include "topologies/spread.hpp"

namespace stepcast::topology::test {

namespace {

constexpr std::array kPresets{"clos", "rail-clos", "rail-only", "clos-3tier", "rail-clos-3tier"};

template <class T>
const T& pick(Rng& rng, const std::vector<T>& choices) { return choices[rng.below(choices.size())]; }

struct Sample {
  ClusterHardware box;
  scenario::Cluster cluster;
  Fabric fabric;
};

// A small cluster of any make: nodes with and without NVSwitch, few or many NICs, odd oversubscriptions.
Sample random_sample(std::uint64_t seed) {
  Rng rng{seed, "fabric"};
  Sample sample;
  sample.box = rng.below(2) == 0 ? nvswitch_box() : pcie_box();
  if (rng.below(4) == 0) sample.box.nic.transport = Transport::kTcp;
  if (rng.below(4) == 0) sample.box.node.peer_to_peer = false;
  sample.box.node.gpus_per_pcie_switch = pick<std::int64_t>(rng, {0, 1, 2, 4});
  sample.box.gpus_per_node = 1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(sample.box.node.gpus)));
  // Rails that no spine joins are changed over NVLink, so a rail-only node needs one.
  const bool nvlink = sample.box.gpu.scale_up.has_value() && sample.box.gpus_per_node == sample.box.node.gpus;
  const char* preset = kPresets[rng.below(kPresets.size())];
  if (std::string_view{preset} == "rail-only" && !nvlink) preset = "rail-clos";
  sample.cluster = cluster_of(2 + static_cast<std::int64_t>(rng.below(20)), preset);
  scenario::Fabric& options = *sample.cluster.fabric;
  const bool rail_only = std::string_view{preset} == "rail-only";
  options.nics_per_node = rail_only ? 8 : pick<std::int64_t>(rng, {1, 2, 4, 8, 16});
  options.leaf_ports = pick<std::int64_t>(rng, {16, 20, 32});
  options.oversubscription = pick<double>(rng, {1.0, 2.0, 3.0, 4.0, 0.5});
  options.core_oversubscription = pick<double>(rng, {1.0, 2.0, 7.0});
  if (std::string_view{preset} != "clos") options.nodes_per_pod = 2 + static_cast<std::int64_t>(rng.below(6));
  Rng domains{seed, "domain"};
  if (sample.box.node.interconnect == Interconnect::kNvswitch && domains.below(3) == 0) {
    sample.box.nvlink_domain = pick<std::int64_t>(domains, {2, 3, 4});
    while (sample.cluster.nodes % sample.box.nvlink_domain != 0) --sample.box.nvlink_domain;
  }
  sample.fabric = build_fabric(sample.box, sample.cluster);
  return sample;
}

// What each device receives less what it sends on, a bundle's share spread evenly over its links.
std::vector<double> balance(const Fabric& fabric, const Path& path) {
  std::vector<double> net(fabric.devices.size(), 0.0);
  for (const Path::Share& part : path.shares) {
    const Bundle& bundle = fabric.bundles[part.bundle];
    for (const LinkId id : bundle.links) {
      const Link& link = fabric.links[id.index()];
      net[link.from.index()] -= part.share / static_cast<double>(bundle.links.size());
      net[link.to.index()] += part.share / static_cast<double>(bundle.links.size());
    }
  }
  return net;
}

}  // namespace

TEST_SUITE_BEGIN("property");

// One unit leaves the sender, one reaches the receiver, and nothing is lost or made between: so the
// shares on every cut sum to 1.
TEST_CASE("topology: every pair has a path that conserves traffic") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Sample sample = random_sample(seed);
    const Fabric& fabric = sample.fabric;
    CAPTURE(fabric.name);
    const Router router{fabric};
    Rng rng{seed, "pair"};
    for (int trial = 0; trial < 40; ++trial) {
      const auto a = static_cast<std::uint32_t>(rng.below(fabric.gpus.size()));
      const auto b = static_cast<std::uint32_t>(rng.below(fabric.gpus.size()));
      const auto nic = static_cast<std::uint32_t>(rng.below(32));
      CAPTURE(a);
      CAPTURE(b);
      CAPTURE(nic);
      for (const Path& path : {router.path(a, b), router.path_through_nic(a, b, nic)}) {
        std::vector<double> net = balance(fabric, path);
        if (a != b) {
          net[fabric.gpus[a].index()] += 1.0;
          net[fabric.gpus[b].index()] -= 1.0;
        }
        const double worst = std::abs(*std::max_element(net.begin(), net.end(), [](double x, double y) { return std::abs(x) < std::abs(y); }));
        CHECK(worst < 1e-12);
        CHECK(std::is_sorted(path.shares.begin(), path.shares.end(), [](const auto& x, const auto& y) { return x.bundle < y.bundle; }));
      }
    }
  }
}

// Between two NICs the router's shortcut over leaves and groups equals even splitting by graph search,
// and every bundle is loaded evenly over its links, which is what lets it act as one.
TEST_CASE("topology: routes across the network agree with graph search") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Sample sample = random_sample(seed);
    const Fabric& fabric = sample.fabric;
    CAPTURE(fabric.name);
    const Router router{fabric};
    Rng rng{seed, "nics"};
    for (int trial = 0; trial < 10; ++trial) {
      const auto node_a = static_cast<std::uint32_t>(rng.below(fabric.nodes));
      const auto node_b = static_cast<std::uint32_t>(rng.below(fabric.nodes));
      if (node_a / fabric.nodes_per_domain == node_b / fabric.nodes_per_domain) continue;  // over NVLink
      const auto nic = static_cast<std::uint32_t>(rng.below(fabric.nics_per_node()));
      const Path path = router.path_through_nic(node_a * fabric.gpus_per_node, node_b * fabric.gpus_per_node, nic);
      const DeviceId from{node_a * fabric.host.devices + fabric.host.nics[nic]};
      const DeviceId to{node_b * fabric.host.devices + fabric.host.nics[nic]};
      const std::optional<Spread> oracle = spread_evenly(fabric, fabric.devices.size(), fabric.links, LinkSet::kNotNvlink, from, to);
      REQUIRE(oracle.has_value());
      std::vector<double> expected(fabric.bundles.size(), 0.0);
      for (std::size_t id = 0; id < fabric.links.size(); ++id) expected[fabric.links[id].bundle] += oracle->link_share[id];
      for (std::size_t id = 0; id < fabric.links.size(); ++id) {
        const Bundle& bundle = fabric.bundles[fabric.links[id].bundle];
        REQUIRE(oracle->link_share[id] * static_cast<double>(bundle.links.size()) == doctest::Approx(expected[fabric.links[id].bundle]));
      }
      const std::uint32_t first_network = fabric.nodes * fabric.host.bundles;
      std::vector<double> ours(fabric.bundles.size(), 0.0);
      for (const Path::Share& part : path.shares) ours[part.bundle] = part.share;
      for (std::uint32_t b = first_network; b < fabric.bundles.size(); ++b) REQUIRE(ours[b] == doctest::Approx(expected[b]));
    }
  }
}

TEST_CASE("topology: leaves and pods obey their oversubscription") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    const Sample sample = random_sample(seed);
    const Fabric& fabric = sample.fabric;
    std::vector<double> down(fabric.leaves.size(), 0.0);
    for (const Port& port : fabric.ports) down[port.leaf] += fabric.bundles[port.down].capacity.si();
    const double fullest = *std::max_element(down.begin(), down.end());
    std::vector<double> group_up(fabric.groups.size(), 0.0);
    for (const Leaf& leaf : fabric.leaves) {
      if (!leaf.up) continue;
      const double up = fabric.bundles[*leaf.up].capacity.si();
      CHECK(up * sample.cluster.fabric->oversubscription == doctest::Approx(fullest));
      CHECK(fabric.bundles[*leaf.down].capacity.si() == doctest::Approx(up));
      group_up[leaf.group] += up;
    }
    const double most = group_up.empty() ? 0.0 : *std::max_element(group_up.begin(), group_up.end());
    for (const SpineGroup& group : fabric.groups)
      if (group.up) CHECK(fabric.bundles[*group.up].capacity.si() * *sample.cluster.fabric->core_oversubscription == doctest::Approx(most));
  }
}

// The tree of bundles gives the maximum flow of the device graph; capacities there are whole bytes.
TEST_CASE("topology: bisection agrees with maximum flow") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const Sample sample = random_sample(seed);
    CAPTURE(sample.fabric.name);
    const std::optional<Bisection> cut = bisection(sample.fabric);
    REQUIRE(cut.has_value());
    CHECK(cut->capacity.si() == doctest::Approx(bisection_by_max_flow(sample.fabric).si()).epsilon(1e-6));
    CHECK(cut->fraction() <= 1.0 + 1e-12);
  }
}

// Every hop's even choice among the next hops of single links adds up to what the router puts on bundles.
TEST_CASE("next hops: even spreading over single links is the router's") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const Sample sample = random_sample(seed);
    const Fabric& fabric = sample.fabric;
    CAPTURE(fabric.name);
    const Router router{fabric};
    NextHops hops{fabric};
    Rng rng{seed, "pair of next hops"};
    for (int pair = 0; pair < 20; ++pair) {
      const auto a = static_cast<std::uint32_t>(rng.below(fabric.gpus.size()));
      const auto b = static_cast<std::uint32_t>(rng.below(fabric.gpus.size()));
      std::vector<double> share(fabric.bundles.size(), 0.0);
      const Router::Crossing crossing = router.crossing(a, b);
      for (const Path::Share& part : crossing.inside) share[part.bundle] += part.share;
      for (const Router::Crossing::Way& way : crossing.ways) {
        for (const LinkShare& part : even_shares(build_dag(hops, way.from_port, way.to_port)))
          share[fabric.links[part.link.index()].bundle] += part.share * way.weight;
      }
      for (const Path::Share& part : router.path(a, b).shares) share[part.bundle] -= part.share;
      for (std::size_t bundle = 0; bundle < share.size(); ++bundle) CHECK(std::abs(share[bundle]) < 1e-12);
    }
  }
}

// With links gone: the graph search on what is left agrees wherever its shortest paths do not climb twice.
TEST_CASE("next hops: survivors as graph search finds them") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const Sample sample = random_sample(seed);
    const Fabric& fabric = sample.fabric;
    CAPTURE(fabric.name);
    NextHops hops{fabric};
    Rng rng{seed, "failed links"};
    std::vector<Link> left;
    std::vector<LinkId> id_of;
    for (std::uint32_t id = 0; id < fabric.links.size(); ++id) {
      const bool fails = fabric.links[id].kind == LinkKind::kNetwork && rng.below(12) == 0;
      if (fails) hops.set_usable(LinkId{id}, false);
      if (fails || fabric.links[id].kind != LinkKind::kNetwork) continue;
      left.push_back(fabric.links[id]);
      id_of.push_back(LinkId{id});
    }
    for (int pair = 0; pair < 10; ++pair) {
      const auto a = static_cast<std::uint32_t>(rng.below(fabric.ports.size()));
      const auto b = static_cast<std::uint32_t>(rng.below(fabric.ports.size()));
      if (a == b) continue;
      const PathDag dag = build_dag(hops, a, b);
      const auto spread = spread_evenly(fabric, fabric.devices.size(), left, LinkSet::kNotNvlink, hops.source(a).device, hops.source(b).device);
      if (dag.reaches()) REQUIRE(spread.has_value());
      if (!dag.reaches()) continue;
      std::vector<double> share(fabric.links.size(), 0.0);
      for (std::size_t l = 0; l < left.size(); ++l) share[id_of[l].index()] += spread->link_share[l];
      double links = 0.0;
      for (const LinkShare& part : even_shares(dag)) links += part.share;
      CHECK(links > spread->links - 1e-9);  // never shorter than the shortest
      if (links > spread->links + 0.5) continue;
      ++compared;
      for (const LinkShare& part : even_shares(dag)) share[part.link.index()] -= part.share;
      for (const double rest : share) CHECK(std::abs(rest) < 1e-12);
    }
  }
  CHECK(compared > 300);
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
