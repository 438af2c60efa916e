// `stepcast topology`: the fabric of a scenario's cluster, or of a file that has only a cluster.
#include <span>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/scenario/cluster_file.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "app/scenario/routing_choice.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "topologies/bisection.hpp"
#include "topologies/inventory.hpp"
#include "topologies/picture.hpp"
#include "topologies/routing.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList topology_options() {
  OptionList options;
  options.add_options()
      ("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
       "change one key, e.g. cluster.nodes=16; may be repeated")
      ("svg", po::value<std::string>()->value_name("FILE"), "draw the fabric");
  add_output_options(options);
  return options;
}

std::string report(const topology::Fabric& fabric, const topology::Router& router, const scenario::Scenario& scenario,
                   const Terminal& terminal) {
  std::string text = paint(terminal, Tone::kStrong, scenario.name) + fmt::format("\n{}\n", fabric.name);
  if (routing_given(scenario.cluster)) text += fmt::format("routing {}\n", routing_text(scenario.cluster));
  text += '\n';
  text += topology::inventory_text(topology::take_inventory(fabric));
  for (const topology::NetworkPart& part : fabric.networks) {
    const auto cut = topology::bisection(fabric, part);
    if (!cut) continue;
    text += fmt::format("\nbisection{}: {} from {} first {} nodes to the rest, {:.0f} % of what their NICs could send\n",
                        part.name.empty() ? "" : " of " + part.name, human_bit_rate(cut->capacity), part.name.empty() ? "the" : "its",
                        cut->first_half, 100 * cut->fraction());
    if (cut->first_half % fabric.nodes_per_domain != 0) text += "  (the network alone: NVLink joins the two halves besides)\n";
  }
  for (const topology::PathExample& example : topology::example_paths(fabric, router)) {
    text += '\n' + topology::path_text(fabric, example);
  }
  for (const std::string& note : fabric.notes) text += "\nnote: " + note + '\n';
  for (const std::string& note : routing_notes(scenario.cluster, fabric)) text += "\nnote: " + note + '\n';
  return text;
}

nlohmann::ordered_json path_json(const topology::Fabric& fabric, const topology::PathExample& example) {
  nlohmann::ordered_json path{{"what", example.what}, {"from", example.from}, {"to", example.to},
                              {"latency_s", exact_seconds(example.path.latency)}, {"switches", example.path.switch_hops}};
  for (const auto& share : example.path.shares) {
    path["bundles"].push_back({{"name", topology::bundle_name(fabric, share.bundle)}, {"share", share.share},
                               {"capacity_bytes_per_s", fabric.bundles[share.bundle].capacity.si()}});
  }
  return path;
}

nlohmann::ordered_json to_json(const topology::Fabric& fabric, const topology::Router& router, const scenario::Scenario& scenario) {
  const topology::Inventory inventory = topology::take_inventory(fabric);
  nlohmann::ordered_json json;
  json["name"] = scenario.name;
  json["fabric"] = fabric.name;
  json["routing"] = routing_text(scenario.cluster);
  json["nodes"] = fabric.nodes;
  json["gpus"] = fabric.gpus.size();
  for (const topology::DeviceCount& device : inventory.devices) {
    json["devices"][std::string{topology::device_kind_name(device.kind)}] = device.count;
  }
  for (const topology::LinkCount& link : inventory.links) {
    json["links"].push_back({{"kind", topology::link_kind_name(link.kind)}, {"from", topology::device_kind_name(link.from)},
                             {"to", topology::device_kind_name(link.to)}, {"count", link.count},
                             {"rate_bytes_per_s", link.rate.si()}, {"efficiency", link.efficiency},
                             {"latency_s", exact_seconds(link.latency)}});
  }
  const auto cut = topology::bisection(fabric);
  json["bisection_bytes_per_s"] = cut ? nlohmann::ordered_json(cut->capacity.si()) : nlohmann::ordered_json(nullptr);
  json["bisection_fraction"] = cut ? nlohmann::ordered_json(cut->fraction()) : nlohmann::ordered_json(nullptr);
  for (const topology::NetworkPart& part : std::span{fabric.networks}.subspan(1)) {
    const auto beside = topology::bisection(fabric, part);
    json["networks"].push_back({{"name", part.name}, {"nodes", part.nodes.size()}, {"nics_per_node", part.nics}, {"switches", part.switches},
                                {"bisection_bytes_per_s", beside ? nlohmann::ordered_json(beside->capacity.si()) : nlohmann::ordered_json(nullptr)}});
  }
  for (const topology::PathExample& example : topology::example_paths(fabric, router)) {
    json["paths"].push_back(path_json(fabric, example));
  }
  return json;
}

Status run_topology(const Invocation& invocation, Session& session) {
  const scenario::Loaded loaded = load_cluster(invocation.operands[0], invocation.list("set"));
  const topology::ClusterHardware hardware = pick_hardware(load_shelf(session.data), loaded);
  const topology::Fabric fabric = lay_fabric(hardware, loaded);
  const topology::Router router{fabric};
  pick_paths(loaded, fabric);  // names of failures are checked
  write_json(invocation, json_text(to_json(fabric, router, loaded.scenario)));
  if (const auto file = invocation.text("svg")) write_file(*file, topology::draw_fabric(fabric));
  print_text(invocation, report(fabric, router, loaded.scenario, session.terminal));
  return Status::kDone;
}

}  // namespace

Command topology_command() {
  return {.name = "topology",
          .summary = "inventory, bisection, paths and picture of a cluster",
          .operands = {.usage = "FILE.yaml", .min = 1, .max = 1},
          .details = "FILE is a scenario, a file with only a cluster: section, or a node's description as in topologies/data/nodes.",
          .options = topology_options(),
          .run = run_topology};
}

}  // namespace stepcast::app
