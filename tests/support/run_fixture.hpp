// tests/support/run_fixture.hpp — a cluster of round numbers and small plans for interpreter tests.
#pragma once

#include <memory>

#include "sim/plan/builder.hpp"
#include "sim/run/simulator.hpp"
#include "tests/support/gpu_fixture.hpp"
#include "tests/support/topology_hardware.hpp"

namespace stepcast::run::testing {

// Owns what a Machine refers to. A millisecond of work is 0.8 GB of elementwise traffic: 1 us floor
// and 0.5 us gap come on top, so every kernel() takes ms + 1.5 us and costs the host 5 us.
class TestCluster {
 public:
  explicit TestCluster(std::int64_t nodes, const char* preset = "rail-clos", double oversubscription = 1.0, std::int64_t nvlink_domain = 1)
      : fabric_{build(nodes, preset, oversubscription, nvlink_domain)}, router_{fabric_}, gpu_{gpu::testing::round_gpu()} {}

  [[nodiscard]] Machine machine() const {
    return {.fabric = fabric_, .router = router_, .gpu = gpu_, .collectives = {}, .forced = {},
            .communicator_bytes = Bytes{0}, .communication_launch = Duration::microseconds(5)};
  }
  [[nodiscard]] const topology::Fabric& fabric() const { return fabric_; }

 private:
  static topology::Fabric build(std::int64_t nodes, const char* preset, double oversubscription, std::int64_t nvlink_domain) {
    scenario::Cluster cluster = topology::test::cluster_of(nodes, preset);
    cluster.fabric->oversubscription = oversubscription;
    topology::ClusterHardware box = topology::test::nvswitch_box();
    box.nvlink_domain = nvlink_domain;
    return topology::build_fabric(box, cluster);
  }

  topology::Fabric fabric_;
  topology::Router router_;
  gpu::GpuModel gpu_;
};

inline plan::Kernel milliseconds_of_work(double ms) {
  const auto bytes = static_cast<std::int64_t>(ms * 0.8e9);
  return {.op = plan::OpClass::kElementwise, .flops = Flops{}, .read = Bytes{bytes}, .written = Bytes{0}};
}

inline plan::Plan one_program(plan::Program program, std::int32_t tp, std::int32_t dp,
                              std::vector<plan::Group> groups = {}) {
  plan::Plan plan;
  plan.name = "test";
  plan.degrees[plan::Axis::kTensor] = tp;
  plan.degrees[plan::Axis::kData] = dp;
  plan.groups = std::move(groups);
  plan.programs.push_back(std::move(program));
  plan.program_of_stage = {plan::ProgramId{0u}};
  return plan;
}

}  // namespace stepcast::run::testing
