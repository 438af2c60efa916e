// app/scenario/setup.hpp — a scenario with everything it names found, checked and planned: what `simulate`,
// `plan`, `memory` and `validate` start from.
#pragma once

#include <string>
#include <vector>

#include "app/forecast/forecast.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "models/gpu/gpu_model.hpp"
#include "models/network/transport_cost.hpp"
#include "models/workload/model_shape.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/path_rules.hpp"
#include "sim/scenario/load.hpp"
#include "topologies/generate.hpp"

namespace stepcast::app {

// Of cluster.other_gpus.
struct OtherGpus {
  std::vector<std::uint32_t> nodes;
  topology::Gpu gpu;
  calibration::ChosenProfile profile;
};

struct Setup {
  scenario::Scenario scenario;
  workload::ModelShape shape;
  topology::ClusterHardware hardware;
  topology::Fabric fabric;
  run::PathRules paths;
  network::TransportCosts transports;
  scenario::Positions where;                      // of the scenario's keys
  calibration::ChosenProfile profile;
  std::vector<OtherGpus> other_gpus;
  collective::Parameters collectives;
  std::vector<collective::NetworkParameters> side_networks;  // of cluster.networks
  plan::Plan plan;
  plan::Dtype matrix_dtype = plan::Dtype::kBf16;  // of matrix products
  FlopRate peak;                                  // the data sheet's dense rate for it, at its own clock
};

// What the setup's hardware and profile determine beside them, anew: collectives, fabric, paths, transports.
void lay_network(Setup& setup, const HardwareShelf& shelf, const scenario::Loaded& loaded);

// Throws UserError with the scenario's positions for anything that cannot be.
Setup prepare(const HardwareShelf& shelf, const scenario::Loaded& loaded);

struct ForecastOptions {
  bool fold = true;
  std::size_t trace_workers = 0;  // workers whose spans are recorded: the first of each stage first
};

Forecast forecast(const Setup& setup, const ForecastOptions& options);

// Workers that run at once on a host.
std::int64_t workers_of_host(const Setup& setup);

// Of the cluster's usual GPUs.
gpu::GpuModel gpu_model_of(const Setup& setup);
Duration step_time(const Setup& setup, bool fold);

// One worker a stage stands for all, whether or not something can tell them apart (sim/run/traffic.hpp): for how the step moves with a
// figure, in a thousandth of the time of a large cluster.
struct EstimatedStep {
  Duration time;
  bool exact = true;  // nothing can
};
EstimatedStep estimated_step(const Setup& setup);

}  // namespace stepcast::app
