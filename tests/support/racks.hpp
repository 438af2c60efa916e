// tests/support/racks.hpp — racks of 16 GPUs below one leaf, as in Meta's RoCE clusters, and what rate rings
// between the racks get on them: real fabric, chosen paths, max-min solver. For tests and bench_paths.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "models/collective/edges.hpp"
#include "sim/flow/solver.hpp"
#include "sim/run/traffic.hpp"
#include "tests/support/gpu_fixture.hpp"
#include "tests/support/topology_hardware.hpp"

namespace stepcast::run::testing {

inline constexpr std::uint32_t kRackGpus = 16;

// Two hosts of eight GPUs with a NIC each a rack; `uplinks` links of a NIC's rate to as many spines.
class Racks {
 public:
  Racks(std::uint32_t racks, std::uint32_t uplinks)
      : racks_{racks}, fabric_{build(racks, uplinks)}, router_{fabric_}, gpu_{gpu::testing::round_gpu()} {}

  [[nodiscard]] const topology::Fabric& fabric() const { return fabric_; }
  [[nodiscard]] Machine machine() const {
    return {.fabric = fabric_, .router = router_, .gpu = gpu_, .collectives = {}, .forced = {},
            .communicator_bytes = Bytes{0}, .communication_launch = Duration{}};
  }

  // Sixteen rings, one for each place in a rack, from rack to rack: every NIC sends and receives one ring's traffic.
  // `order`: racks in ring order. Fills `solver` with a link a slot and a flow a ring.
  void load_rings(LinkPaths& paths, std::span<const std::uint32_t> order, flow::Solver& solver,
                  std::vector<flow::FlowIndex>& rings) const {
    const Machine with = machine();
    UseBuilder builder{with.router, paths};
    for (std::uint32_t slot = 0; slot < paths.slots().size(); ++slot) solver.add_link(paths.capacity(slot));
    for (std::uint32_t place = 0; place < kRackGpus; ++place) {
      std::vector<collective::Member> members;
      for (const std::uint32_t rack : order) {
        const std::uint32_t gpu = rack * kRackGpus + place;
        members.push_back({.gpu = gpu, .node = gpu / 8});
      }
      std::vector<flow::Use> uses;
      for (const BundleUse& use : builder.build(collective::edges_of(collective::Algorithm::kRing, members), {place}))
        uses.push_back({flow::LinkIndex{use.bundle}, use.coefficient});
      rings.push_back(solver.add_flow(uses));
    }
    solver.solve();
  }

  // Rate of the slowest ring over a NIC's: the step waits for all.
  [[nodiscard]] double ring_share(const PathRules& rules) const {
    LinkPaths paths{fabric_, rules};
    std::vector<std::uint32_t> order(racks_);
    for (std::uint32_t r = 0; r < racks_; ++r) order[r] = r;
    flow::Solver solver;
    std::vector<flow::FlowIndex> rings;
    load_rings(paths, order, solver, rings);
    double slowest = std::numeric_limits<double>::infinity();
    for (const flow::FlowIndex ring : rings) slowest = std::min(slowest, solver.rate(ring));
    return slowest / fabric_.bundles[fabric_.ports.front().up].capacity.si();
  }

  // The mean over path seeds 1 to `seeds`.
  [[nodiscard]] double mean_ring_share(PathRules rules, int seeds) const {
    double sum = 0.0;
    for (int seed = 1; seed <= seeds; ++seed) {
      rules.seed = static_cast<std::uint64_t>(seed);
      sum += ring_share(rules);
    }
    return sum / seeds;
  }

 private:
  static topology::Fabric build(std::uint32_t racks, std::uint32_t uplinks) {
    scenario::Cluster cluster = topology::test::cluster_of(2 * std::int64_t{racks}, "clos");
    cluster.fabric->leaf_ports = kRackGpus;
    cluster.fabric->oversubscription = static_cast<double>(kRackGpus) / uplinks;
    return topology::build_fabric(topology::test::nvswitch_box(), cluster);
  }

  std::uint32_t racks_;
  topology::Fabric fabric_;
  topology::Router router_;
  gpu::GpuModel gpu_;
};

// E-ECMP as its ideal: every QP of a connection hashes independently.
inline PathRules e_ecmp(std::uint32_t qps) {
  return {.policy = network::PathPolicy::kEEcmp, .qps = qps, .qp_mode = network::QpMode::kSplit};
}

}  // namespace stepcast::run::testing
