#include "app/scenario/setup.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "app/scenario/model_choice.hpp"
#include "app/scenario/placed.hpp"
#include "app/scenario/routing_choice.hpp"
#include "app/scenario/transport_choice.hpp"
#include "models/parallel/planner.hpp"
#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/check.hpp"
#include "sim/scenario/check.hpp"
#include "topologies/catalogue.hpp"
#include "topologies/side_networks.hpp"

namespace stepcast::app {
namespace {

void check_workers(const scenario::Loaded& loaded, const topology::ClusterHardware& hardware) {
  Diagnostics problems;
  scenario::check_worker_count(loaded.scenario, loaded.where, hardware.gpus_per_node,
                               loaded.scenario.cluster.gpus_per_node
                                   ? loaded.where.cite("cluster.gpus_per_node")
                                   : hardware.node.name,
                               problems);
  problems.throw_if_any();
}

FlopRate peak_of(const scenario::Loaded& loaded, const topology::Gpu& gpu, plan::Dtype dtype) {
  const std::map<plan::Dtype, const std::optional<topology::Figure<FlopRate>>*> rates{
      {plan::Dtype::kFp32, &gpu.fp32}, {plan::Dtype::kTf32, &gpu.tf32}, {plan::Dtype::kFp16, &gpu.fp16},
      {plan::Dtype::kBf16, &gpu.bf16}, {plan::Dtype::kFp8, &gpu.fp8}};
  if (const auto& rate = *rates.at(dtype)) return rate->value;
  std::vector<std::string> known;
  for (const auto& [other, figure] : rates) {
    if (*figure) known.emplace_back(plan::name_of(other));
  }
  throw UserError(loaded.where.error("training.precision",
                                     fmt::format("{} has no {} rate in the catalogue", gpu.name, plan::name_of(dtype)),
                                     fmt::format("{} ({})", one_of(known), loaded.where.cite("cluster.node")),
                                     plan::name_of(dtype)));
}

std::vector<OtherGpus> pick_other_gpus(const HardwareShelf& shelf, const scenario::Loaded& loaded) {
  const scenario::Cluster& cluster = loaded.scenario.cluster;
  std::vector<OtherGpus> others;
  std::vector<bool> taken(static_cast<std::size_t>(cluster.nodes), false);
  for (std::size_t i = 0; i < cluster.other_gpus.size(); ++i) {
    const std::string path = fmt::format("cluster.other_gpus[{}]", i);
    OtherGpus other;
    placed(loaded.where, [&] {
      other.nodes = topology::read_node_list(path + ".nodes", cluster.other_gpus[i].nodes, static_cast<std::uint32_t>(cluster.nodes));
      other.gpu = topology::find_gpu(shelf.catalogue, cluster.other_gpus[i].gpu, path + ".gpu");
      return 0;
    });
    for (const std::uint32_t node : other.nodes) {
      if (taken[node]) throw UserError(loaded.where.error(path + ".nodes", fmt::format("node {} has other GPUs already", node), "each node once", cluster.other_gpus[i].nodes));
      taken[node] = true;
    }
    other.profile = calibration::choose_profile(shelf.profiles, other.gpu);
    others.push_back(std::move(other));
  }
  return others;
}

// The mean of all GPUs.
FlopRate mean_peak(const scenario::Loaded& loaded, const Setup& setup) {
  const auto nodes = static_cast<double>(loaded.scenario.cluster.nodes);
  double sum = 0.0;
  double first = nodes;
  for (const OtherGpus& other : setup.other_gpus) {
    sum += static_cast<double>(other.nodes.size()) * peak_of(loaded, other.gpu, setup.matrix_dtype).si();
    first -= static_cast<double>(other.nodes.size());
  }
  return FlopRate::from_si((sum + first * peak_of(loaded, setup.hardware.gpu, setup.matrix_dtype).si()) / nodes);
}

// A plan of ours that is not sound is a bug, not the user's mistake.
void check_plan(const plan::Plan& plan) {
  const std::vector<plan::PlanError> errors = plan::check(plan);
  SIM_CHECK(errors.empty(), errors.empty() ? "" : plan::to_text(errors.front()));
}

}  // namespace

void lay_network(Setup& setup, const HardwareShelf& shelf, const scenario::Loaded& loaded) {
  setup.collectives = pick_collectives(shelf, setup.hardware, setup.profile);
  setup.side_networks = pick_side_networks(shelf, setup.hardware, setup.profile);
  setup.fabric = lay_fabric(setup.hardware, loaded);
  setup.paths = pick_paths(loaded, setup.fabric);
  setup.transports = pick_transports(shelf, loaded, setup.hardware);
  for (const calibration::MeasuredCost& cost : setup.profile.profile.costs)
    if (cost.what == "copy") setup.transports.network.ahead.copy_rate = cost.bandwidth.value.si();
}

std::int64_t workers_of_host(const Setup& setup) {
  return std::min<std::int64_t>(setup.plan.world_size(), setup.fabric.gpus_per_node);
}

Setup prepare(const HardwareShelf& shelf, const scenario::Loaded& loaded) {
  Setup setup;
  setup.scenario = loaded.scenario;
  setup.hardware = pick_hardware(shelf, loaded);
  setup.profile = pick_profile(shelf, loaded, setup.hardware.gpu);
  setup.shape = pick_model(loaded);
  check_workers(loaded, setup.hardware);
  lay_network(setup, shelf, loaded);
  setup.where = loaded.where;
  setup.matrix_dtype = matrix_dtype(loaded.scenario.training);
  setup.other_gpus = pick_other_gpus(shelf, loaded);
  setup.peak = setup.other_gpus.empty() ? peak_of(loaded, setup.hardware.gpu, setup.matrix_dtype) : mean_peak(loaded, setup);
  const parallel::Strategy strategy = pick_strategy(loaded, setup.shape);
  setup.plan = parallel::make_plan(setup.shape, strategy);
  setup.plan.name = loaded.scenario.name;
  check_plan(setup.plan);
  return setup;
}

}  // namespace stepcast::app
