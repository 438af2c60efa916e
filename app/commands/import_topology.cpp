#include "app/commands/import_topology.hpp"

#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/forecast/forecast_json.hpp"
#include "app/importers/ibnetdiscover.hpp"
#include "app/importers/nccl_topology.hpp"
#include "app/importers/slurm_topology.hpp"
#include "app/importers/smi_topology.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "sim/base/file.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

// What an importer has to show: rows of "what: value", and the file to write.
struct Shown {
  std::string title;
  std::vector<std::pair<std::string, Json>> rows;
  std::vector<std::string> remarks;
  // The YAML and what it left out; called only with -o: some files describe too little for one.
  struct Written {
    std::string text;
    std::vector<std::string> remarks;
  };
  std::function<Written()> write;
};

Json as_json(const std::map<std::string, std::size_t>& counts) {
  Json json = Json::object();
  for (const auto& [what, count] : counts) json[what.empty() ? "(empty)" : what] = count;
  return json;
}

NodeChoices choices_of(const Invocation& invocation) { return {.gpu = invocation.text("gpu"), .nic = invocation.text("nic"), .like = invocation.text("like")}; }

std::function<Shown::Written()> node_writer(NodeFacts facts, const std::string& kind, const std::string& file, const Invocation& invocation, const Session& session) {
  return [facts = std::move(facts), kind, file, choices = choices_of(invocation), &session] {
    const ImportedNode node = describe_node(facts, load_catalogue(session.data), choices, file);
    return Shown::Written{imported_node_text(node, kind, file), node.remarks};
  };
}

Shown nccl_topo(const std::string& text, const std::string& file, const Invocation& invocation, const Session& session) {
  NcclTopology read = read_nccl_topology(text, file);
  Shown shown{.title = "NCCL topology", .rows = {}, .remarks = read.facts.remarks, .write = {}};
  shown.rows = {{"cpu", read.cpus},          {"pci", read.pcis},        {"gpu", read.gpus},
                {"nvlink", read.nvlinks},    {"nic", read.nics},        {"net", read.nets},
                {"gpu0_nvlinks", read.gpu0_nvlinks}, {"pci_link_speeds", as_json(read.pci_speeds)}, {"net_speeds_mbps", as_json(read.net_speeds)},
                {"pci_bridges", read.bridges}, {"pci_gpus", read.gpu_devices}, {"pci_nics", read.nic_devices}, {"pci_unknown", read.unknown_devices}};
  shown.write = node_writer(std::move(read.facts), "nccl-topo", file, invocation, session);
  return shown;
}

Shown smi_topo(const std::string& text, const std::string& file, const Invocation& invocation, const Session& session) {
  SmiTopology read = read_smi_topology(text, file);
  Shown shown{.title = "nvidia-smi topo -m", .rows = {}, .remarks = read.facts.remarks, .write = {}};
  Json nearest = Json::array();
  for (const std::size_t nic : read.nearest_nic) nearest.push_back(nic);
  shown.rows = {{"gpu", read.gpus}, {"nic", read.nics}, {"rows", read.rows}, {"cpu", read.facts.cpus}, {"gpu_links", read.gpu_links}, {"nearest_nic_of_gpu", nearest}};
  shown.write = node_writer(std::move(read.facts), "nvidia-smi-topo", file, invocation, session);
  return shown;
}

constexpr const char* kUsualNode = "dgx-h100";

// Networks do not say what a host is.
std::pair<std::string, std::string> node_of(const Invocation& invocation) {
  if (const auto node = invocation.text("node")) return {*node, {}};
  return {kUsualNode, fmt::format("the file does not say what a host is: {} is assumed, --node says otherwise", kUsualNode)};
}

Shown ibnetdiscover(const std::string& text, const std::string& file, const Invocation& invocation, const Session& session) {
  const IbFabric read = read_ibnetdiscover(text, file);
  ImportedNetwork network = network_of(read);
  const auto [node, remark] = node_of(invocation);
  if (!remark.empty()) network.remarks.push_back(remark);
  if (read.port_lines == 0) network.remarks.emplace_back("no link in this file: no fabric");
  Shown shown{.title = "ibnetdiscover", .rows = {}, .remarks = network.remarks, .write = {}};
  shown.rows = {{"switches", read.switch_blocks}, {"adapters", read.ca_blocks}, {"port_lines", read.port_lines}, {"links_on_switches", read.switch_links()},
                {"switch_switch_port_lines", read.switch_switch_lines}, {"rates_on_switches", as_json(read.rates_on_switches)},
                {"hosts_kept", network.hosts.size()}, {"nics_per_host", network.nics_per_node ? Json(*network.nics_per_node) : Json(nullptr)}};
  shown.write = [network, node = node, file, &session] {
    topology::find_node(load_catalogue(session.data), node, "--node");
    return Shown::Written{imported_network_text(network, node, "ibnetdiscover", file), {}};
  };
  return shown;
}

Shown slurm(const std::string& text, const std::string& file, const Invocation& invocation, const Session& session) {
  const SlurmTopology read = read_slurm_topology(text, file);
  const auto [node, remark] = node_of(invocation);
  ImportedNetwork network = network_of(read, topology::find_node(load_catalogue(session.data), node, "--node").nics);
  if (!remark.empty()) network.remarks.push_back(remark);
  Shown shown{.title = "Slurm topology" + (read.name.empty() ? "" : " " + read.name), .rows = {}, .remarks = network.remarks, .write = {}};
  shown.rows = {{"switches", read.switches.size()}, {"nodes_on_switches", read.nodes_on_switches()}, {"blocks", read.blocks.size()},
                {"nodes_in_blocks", read.nodes_in_blocks()}, {"hosts_kept", network.hosts.size()}};
  shown.write = [network, node = node, file] { return Shown::Written{imported_network_text(network, node, "slurm-topology", file), {}}; };
  return shown;
}

using Importer = Shown (*)(const std::string&, const std::string&, const Invocation&, const Session&);
const std::map<std::string, Importer>& importers() {
  static const std::map<std::string, Importer> table{{"nccl-topo", nccl_topo}, {"nvidia-smi-topo", smi_topo}, {"ibnetdiscover", ibnetdiscover}, {"slurm-topology", slurm}};
  return table;
}

std::string row_text(const std::string& what, const Json& value) {
  std::string name = what;
  for (char& c : name) c = c == '_' ? ' ' : c;
  std::string text;
  if (value.is_object()) {
    for (const auto& [key, count] : value.items()) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count.dump(), key);
  } else if (value.is_string()) {
    text = value.get<std::string>();
  } else {
    text = value.dump();
  }
  return fmt::format("  {:<26} {}\n", name, text.empty() ? "none" : text);
}

}  // namespace

std::vector<std::string> topology_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, importer] : importers()) kinds.push_back(kind);
  return kinds;
}

void add_topology_import_options(OptionList& options) {
  options.add_options()
      ("output,o", po::value<std::string>()->value_name("FILE"), "write what was read as a file: a machine or fabric that `stepcast topology` reads, or a scenario")
      ("gpu", po::value<std::string>()->value_name("NAME"), "GPU of the catalogue, where the file does not say")
      ("nic", po::value<std::string>()->value_name("NAME"), "network card of the catalogue, instead of the one found")
      ("like", po::value<std::string>()->value_name("NODE"), "node of the catalogue that lends what the file does not say")
      ("node", po::value<std::string>()->value_name("NODE"), "what each host of a fabric is (default: dgx-h100)");
}

Status import_topology(const std::string& kind, const std::string& file, const Invocation& invocation, Session& session) {
  Shown shown = importers().at(kind)(read_text_file(file, fmt::format("output of {}", kind)), file, invocation, session);
  if (const auto output = invocation.text("output")) {
    const Shown::Written written = shown.write();
    if (!written.remarks.empty()) shown.remarks = written.remarks;
    write_file(*output, written.text);
  }
  Json json{{"kind", kind}};
  std::string text = shown.title + '\n';
  for (const auto& [what, value] : shown.rows) {
    json[what] = value;
    text += row_text(what, value);
  }
  json["notes"] = shown.remarks;
  for (const std::string& remark : shown.remarks) text += "note: " + remark + '\n';
  if (const auto output = invocation.text("output")) text += fmt::format("wrote {}\n", *output);
  write_json(invocation, json_text(json));
  print_text(invocation, text);
  return Status::kDone;
}

}  // namespace stepcast::app
