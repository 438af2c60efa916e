// `stepcast network`: flows alone on a fabric, by a file of traffic, or recorded ones beside what a transport model makes of them.
#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/commands/network_collective.hpp"
#include "app/network/connection_matrix.hpp"
#include "app/network/flow_report.hpp"
#include "app/network/load_picture.hpp"
#include "app/network/packet_run.hpp"
#include "app/network/replay.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "app/scenario/routing_choice.hpp"
#include "app/scenario/traffic_file.hpp"
#include "app/scenario/transport_choice.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostRuns = 1000;
constexpr std::int64_t kMostQuantum = 64;  // more than a trimming queue holds

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const network::TransportModel& model : network::transport_models()) names.emplace_back(model.name);
  return names;
}

OptionList network_options() {
  OptionList options;
  options.add_options()
      ("replay", po::value<std::string>()->value_name("FCT.csv"),
       "recorded flows: flow_id, src, dst, size_bytes, start_us, end_us, fct_us, path")
      ("topology", po::value<std::string>()->value_name("T.topo"), "the fat tree that they were recorded on (htsim's form)")
      ("transport", po::value<std::string>()->value_name("NAME"), ("model of the transport: " + one_of(transport_names())).c_str())
      ("plain", "max-min fair fluids, no transport model (the default)")
      ("seed", po::value<std::int64_t>()->value_name("N"), "seed of random choices: paths, which packet is trimmed (default 1)")
      ("runs", po::value<std::int64_t>()->value_name("N"), "runs to average, each with the next seed (default 3)")
      ("quantum", po::value<std::int64_t>()->value_name("N"), "packets that move as one (default 1): N times faster, less exact")
      ("matrix", po::value<std::string>()->value_name("M.cm"), "which flows wait for which, instead of recorded start times");
  options.add_options()
      ("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"), "change one key of FILE; may be repeated")
      ("csv", po::value<std::string>()->value_name("FILE"), "write a row for each flow of FILE.yaml: when it started and ended")
      ("svg", po::value<std::string>()->value_name("FILE"), "draw the links by how busy they were");
  add_collective_options(options);
  add_output_options(options);
  return options;
}

const network::TransportModel& chosen_transport(const Invocation& invocation) {
  const std::string name = invocation.text("transport").value_or("plain");
  if (invocation.has("plain") && name != "plain") {
    throw UserError(Diagnostic{.path = "stepcast network", .problem = "--plain and --transport exclude each other", .expected = "one of them"});
  }
  if (const network::TransportModel* model = network::find_transport(name)) return *model;
  const std::vector<std::string> names = transport_names();
  const auto near = nearest_word(name, names);
  throw UserError(Diagnostic{.path = "--transport", .problem = "unknown transport '" + name + "'", .expected = one_of(names),
                             .hint = near ? "did you mean '" + *near + "'?" : ""});
}

std::int64_t count(const Invocation& invocation, const std::string& option, std::int64_t otherwise, std::int64_t most) {
  const std::int64_t value = invocation.integer(option).value_or(otherwise);
  if (value >= 1 && value <= most) return value;
  throw UserError(Diagnostic{.path = "--" + option, .problem = "out of range", .expected = "1 to " + std::to_string(most),
                             .got = std::to_string(value)});
}

Status replay_recorded(const Invocation& invocation) {
  const auto recording = invocation.text("replay");
  const auto topology = invocation.text("topology");
  if (!recording || !topology) {
    throw UserError(Diagnostic{.path = "stepcast network", .problem = recording ? "--topology is missing" : "--replay is missing",
                               .expected = "--replay FCT.csv --topology T.topo"});
  }
  const network::TransportModel& transport = chosen_transport(invocation);
  const std::int64_t runs = count(invocation, "runs", 3, kMostRuns);
  const network::RunOptions options{.seed = static_cast<std::uint64_t>(invocation.integer("seed").value_or(1)),
                                    .quantum = static_cast<std::uint32_t>(count(invocation, "quantum", 1, kMostQuantum))};
  const topology::HtsimFabric fabric{topology::read_htsim_topology(*topology)};
  RecordedCase recorded = read_recorded_case(*recording, fabric);
  if (const auto matrix = invocation.text("matrix")) follow_matrix(recorded, *matrix);
  const ReplayReport report =
      compare(recorded, replay(recorded, fabric, transport, options, static_cast<std::size_t>(runs)), transport);
  write_json(invocation, to_json(report));
  print_text(invocation, to_text(report));
  return Status::kDone;
}

// Simulated time ends after 106 days: even one after another over the slowest link, flows must fit.
void refuse_endless(const TrafficFile& file, const std::vector<run::FlowSpec>& flows, const topology::Fabric& fabric) {
  constexpr double kMost_s = 9e6;
  double slowest = std::numeric_limits<double>::infinity();
  for (const topology::Link& link : fabric.links) slowest = std::min(slowest, link.capacity().si());
  double bytes = 0.0;
  for (const run::FlowSpec& flow : flows) bytes += flow.bytes.si();
  if (bytes <= kMost_s * slowest) return;
  throw UserError(file.loaded.where.error("traffic", "may take more than 106 days",
                                          fmt::format("{} in all at most, on links of {}", human_bytes(Bytes{static_cast<std::int64_t>(kMost_s * slowest)}),
                                                      human_bit_rate(Bandwidth::from_si(slowest))),
                                          fmt::format("{:.3g} bytes", bytes)));
}

// Flows on the cluster of a file, by its routing.
Status run_traffic(const Invocation& invocation, Session& session) {
  const TrafficFile file = load_traffic_file(invocation.operands[0], invocation.list("set"));
  const HardwareShelf shelf = load_shelf(session.data);
  const topology::ClusterHardware hardware = pick_hardware(shelf, file.loaded);
  const network::TransportCosts transports = pick_transports(shelf, file.loaded, hardware);
  const topology::Fabric fabric = lay_fabric(hardware, file.loaded);
  const std::vector<run::FlowSpec> flows = flows_of(file, static_cast<std::uint32_t>(fabric.gpus.size()));
  refuse_endless(file, flows, fabric);
  const run::PathRules rules = pick_paths(file.loaded, fabric);
  run::LinkPaths paths{fabric, rules};
  const run::FlowRunResult result = run::run_flows(topology::Router{fabric}, paths, flows, transports);
  FlowReport report = make_report(flows, result, paths.slots());
  report.name = file.loaded.scenario.name;
  report.fabric = fabric.name;
  report.routing = routing_text(file.loaded.scenario.cluster);
  if (file.loaded.scenario.cluster.nodes > 1) report.transport = transport_text(transports, file.loaded.scenario.cluster, hardware);
  if (invocation.has("transport") && !invocation.has("plain")) {
    const network::TransportModel& model = chosen_transport(invocation);
    const network::RunOptions options{.seed = static_cast<std::uint64_t>(invocation.integer("seed").value_or(1)),
                                      .quantum = static_cast<std::uint32_t>(count(invocation, "quantum", 1, kMostQuantum))};
    report.packets = make_packet_report(model.name, flows, run_packets(fabric, rules, flows, transports, model, options));
  }
  write_json(invocation, to_json(report));
  if (const auto csv = invocation.text("csv")) write_file(*csv, to_csv(flows, result));
  if (const auto svg = invocation.text("svg")) write_file(*svg, draw_loads(report.name, paths.slots(), result.carried, report.makespan_s));
  print_text(invocation, to_text(report, session.terminal));
  return Status::kDone;
}

Status run_network(const Invocation& invocation, Session& session) {
  if (invocation.has("collective")) return run_collective(invocation, session);
  const bool recorded = invocation.has("replay") || invocation.has("topology");
  if (recorded != invocation.operands.empty()) {
    throw UserError(Diagnostic{.path = "stepcast network", .problem = recorded ? "a file and --replay exclude each other" : "no flows",
                               .expected = "FILE.yaml, --collective NAME FILE.yaml, or --replay FCT.csv --topology T.topo"});
  }
  return recorded ? replay_recorded(invocation) : run_traffic(invocation, session);
}

}  // namespace

Command network_command() {
  return {.name = "network",
          .summary = "collectives, flows or recorded flows alone on a fabric",
          .operands = {.usage = "[FILE.yaml]", .min = 0, .max = 1},
          .details = "--collective times one on the cluster of FILE (a scenario, or a file with only a cluster: section; without FILE one "
                     "dgx-h100, which --set changes) size by size and prints nccl-tests' own table. Without --collective, FILE has a cluster: section as a scenario has, and the flows in traffic:; with --transport they also run packet by packet. "
                     "--replay replays flows of a packet-level recording on the paths that they took and prints mean, p99 and makespan, "
                     "simulated and recorded, and the error of single flows.",
          .options = network_options(),
          .run = run_network};
}

}  // namespace stepcast::app
