#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include "app/forecast/extrapolation.hpp"
#include "app/scenario/communication_choice.hpp"
#include "app/scenario/evidence.hpp"
#include "app/scenario/model_choice.hpp"
#include "app/scenario/placed.hpp"
#include "app/scenario/routing_choice.hpp"
#include "app/scenario/setup.hpp"
#include "app/scenario/transport_choice.hpp"
#include "calibration/gpu_parameters.hpp"
#include "calibration/interference.hpp"
#include "models/collective/communicator_memory.hpp"
#include "models/gpu/gpu_model.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/run/simulator.hpp"
#include "topologies/inventory.hpp"
#include "topologies/routing.hpp"

namespace stepcast::app {
namespace {

// NCCL's usual choice within an NVSwitch box; the scenario's communication.channels overrides it.
// PyTorch makes a cuBLAS handle, with a workspace, for each thread: of the forward pass and of autograd
// (aten/src/ATen/cuda/CublasHandlePool.cpp).
constexpr std::int64_t kLibraryHandles = 2;

calibration::AttentionGeneration attention_generation(scenario::AttentionChoice choice) {
  if (choice == scenario::AttentionChoice::kFlash2) return calibration::AttentionGeneration::kFlash2;
  if (choice == scenario::AttentionChoice::kFlash1) return calibration::AttentionGeneration::kFlash1;
  return calibration::AttentionGeneration::kNewest;
}

std::int64_t communicators_of(const plan::Plan& plan) {
  // One communicator a group that has more than one member, one for all workers (barriers, the loss), and one for the
  // pipeline's messages.
  std::int64_t count = (plan.world_size() > 1 ? 1 : 0) + (plan.degrees[plan::Axis::kPipeline] > 1 ? 1 : 0);
  for (const plan::Group& group : plan.groups) {
    std::int64_t size = 1;
    for (const plan::Axis axis : group.axes) size *= plan.degrees[axis];
    if (size > 1) ++count;
  }
  return count;
}

// Of the smallest GPU.
Bytes memory_of_all(const Setup& setup) {
  Bytes least = setup.hardware.gpu.device_memory().value;
  for (const OtherGpus& other : setup.other_gpus) least = std::min(least, other.gpu.device_memory().value);
  return least;
}

gpu::GpuModel model_of(const Setup& setup, const topology::Gpu& gpu, const calibration::ChosenProfile& profile) {
  gpu::GpuParameters parameters = calibration::with_attention(calibration::make_parameters(gpu, profile.profile), gpu,
                                                              attention_generation(setup.scenario.model.attention));
  parameters.crowding = calibration::crowding_of(profile.profile.interference, workers_of_host(setup));
  return gpu::GpuModel{std::move(parameters)};
}

run::Machine machine_of(const Setup& setup, const topology::Fabric& fabric, const topology::Router& router,
                        const gpu::GpuModel& model) {
  const scenario::Communication& communication = setup.scenario.communication;
  const collective::Parameters collectives = with_choices(setup.collectives, communication);
  return {.fabric = fabric,
          .router = router,
          .gpu = model,
          .collectives = collectives,
          .forced = forced_choices(communication),
          .communicator_bytes = collective::communicator_memory(collectives.channels) * communicators_of(setup.plan),
          .library_workspace = setup.scenario.memory.library_workspace.value_or(model.parameters().gemm_workspace * kLibraryHandles),
          .device_memory = memory_of_all(setup),
          .expandable_segments = setup.scenario.memory.expandable_segments,
          .context = setup.scenario.memory.context.value_or(model.parameters().context),
          .communication_launch = model.parameters().host_collective,
          .copy_launch = model.parameters().host_launch,
          .collective_wait = model.parameters().collective_wait,
          .host_step = model.parameters().host_step,
          .host_recompute = model.parameters().host_recompute,
          .copies_per_shard = setup.scenario.parallel.copies_per_shard,
          .copies_per_gathered_shard = setup.scenario.parallel.copies_per_gathered_shard,
          .paths = setup.paths,
          .transports = setup.transports,
          .side_networks = setup.side_networks,
          .beside_collective = calibration::beside_collective(setup.profile.profile.interference, workers_of_host(setup))};
}

// The first worker of each stage, then the rest in rank order.
std::vector<RankId> recorded_workers(const plan::Plan& plan, std::size_t wanted) {
  std::vector<RankId> workers;
  const auto world = static_cast<std::size_t>(plan.world_size());
  std::set<std::uint32_t> taken;
  for (std::int32_t stage = 0; stage < plan.degrees[plan::Axis::kPipeline] && workers.size() < wanted; ++stage) {
    const RankId rank = plan.peer(RankId{0u}, stage);
    taken.insert(rank.value());
    workers.push_back(rank);
  }
  for (std::size_t r = 0; r < world && workers.size() < wanted; ++r) {
    if (!taken.contains(static_cast<std::uint32_t>(r))) workers.push_back(RankId{r});
  }
  return workers;
}

std::string cluster_title(const Setup& setup, const topology::Fabric& fabric) {
  const topology::ClusterHardware& h = setup.hardware;
  std::string text = fmt::format("{} x {} ({} x {})", setup.scenario.cluster.nodes, h.node.name, h.gpus_per_node, h.gpu.title);
  if (fabric.nodes_per_domain > 1) text += fmt::format(", {} nodes an NVLink domain", fabric.nodes_per_domain);
  if (!fabric.ports.empty()) {
    text += fmt::format(", {} x {} a node, {}", fabric.networks[0].nics, h.nic.title, setup.scenario.cluster.fabric->preset);
    for (std::size_t i = 0; i < h.side_networks.size(); ++i) text += "; " + topology::network_text(fabric, i + 1, h.side_networks[i].nic.title);
  }
  return text;
}

// Of the networks whose transport is worth a word: chosen, or one that costs the hosts something.
std::string transports_text(const Setup& setup, const topology::Fabric& fabric) {
  if (fabric.ports.empty()) return "";
  const scenario::Cluster& cluster = setup.scenario.cluster;
  std::vector<std::string> texts;
  for (std::uint32_t n = 0; n < fabric.networks.size(); ++n) {
    const scenario::Transport& chosen = n == 0 ? cluster.fabric->transport : cluster.networks[n - 1].fabric.transport;
    if (setup.transports.of(n).copies == 0 && chosen == scenario::Transport{}) continue;
    const std::string& name = fabric.networks[n].name;
    texts.push_back((name.empty() ? "" : name + ": ") + transport_text(setup.transports, cluster, setup.hardware, n));
  }
  return join(texts, "; ");
}

std::vector<std::string> notes_of(const Setup& setup, const topology::Fabric& fabric) {
  std::vector<std::string> notes = fabric.notes;
  for (std::string& note : routing_notes(setup.scenario.cluster, fabric)) notes.push_back(std::move(note));
  if (!setup.shape.note.empty()) notes.push_back(setup.shape.note);
  for (std::size_t i = 0; i < setup.other_gpus.size(); ++i) {
    notes.push_back(fmt::format("nodes {} have {}; links and hosts as {}; memory is the smallest GPU's, peak FLOP/s the mean", setup.scenario.cluster.other_gpus[i].nodes,
                                setup.other_gpus[i].gpu.title, setup.hardware.node.name));
  }
  if (!setup.profile.own) {
    notes.push_back(fmt::format("no profile of {}: {} stands in for its architecture", setup.hardware.gpu.name,
                                setup.profile.profile.name));
  }
  return notes;
}

run::Result simulated(const Setup& setup, const run::SimulationOptions& options) {
  const topology::Router router{setup.fabric};
  const gpu::GpuModel model = gpu_model_of(setup);
  std::vector<gpu::GpuModel> others;
  for (const OtherGpus& other : setup.other_gpus) others.push_back(model_of(setup, other.gpu, other.profile));
  run::Machine machine = machine_of(setup, setup.fabric, router, model);
  for (std::size_t i = 0; i < others.size(); ++i) machine.other_gpus.push_back({setup.other_gpus[i].nodes, &others[i]});
  return placed(setup.where, [&] {
    return run::simulate(setup.plan, machine, options);
  });
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

gpu::GpuModel gpu_model_of(const Setup& setup) { return model_of(setup, setup.hardware.gpu, setup.profile); }

Duration step_time(const Setup& setup, bool fold) { return simulated(setup, {.fold = fold, .memory = false}).step; }

EstimatedStep estimated_step(const Setup& setup) {
  const run::Result result = simulated(setup, {.fold = true, .fold_unlike = true, .memory = false});
  return {.time = result.step, .exact = !result.folded || result.fold_note.empty()};
}

Forecast forecast(const Setup& setup, const ForecastOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  const topology::Fabric& fabric = setup.fabric;
  Forecast f;
  f.scenario = setup.scenario;
  f.plan = setup.plan;
  f.result = simulated(setup, {.fold = options.fold, .record = recorded_workers(setup.plan, options.trace_workers)});
  f.parameters = static_cast<double>(workload::count_parameters(setup.shape).total);
  f.trained_parameters = f.parameters;
  f.model_title = fmt::format("{}, {} parameters", setup.shape.name, human_count(f.parameters));
  if (const auto adapters = pick_adapters(setup.scenario.training)) {
    f.trained_parameters = static_cast<double>(workload::count_adapters(setup.shape, *adapters).total);
    f.model_title += fmt::format("{}, {} trained in adapters of rank {}", adapters->base ? ", 4-bit" : "",
                                 human_count(f.trained_parameters), adapters->rank);
  }
  f.cluster_title = cluster_title(setup, fabric);
  f.transport = transports_text(setup, fabric);
  f.gpus = setup.plan.world_size();
  f.peak = setup.peak;
  f.device_memory = memory_of_all(setup);
  f.evidence = count_evidence(setup.hardware, setup.profile, plan::name_of(setup.matrix_dtype),
                              setup.scenario.cluster.nodes > 1);
  f.extrapolated = extrapolated(setup);
  f.notes = notes_of(setup, fabric);
  f.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  f.peak_rss_bytes = peak_rss_bytes();
  return f;
}

}  // namespace stepcast::app
