#include "app/importers/imported_network.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/name_ranges.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/quantity.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::app {
namespace {

std::string quoted(const std::vector<std::string>& names) { return scenario::yaml_scalar(compress_names(names), true); }

}  // namespace

std::string plain_name(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    out += kept ? c : '-';
  }
  return out;
}

std::string imported_network_text(const ImportedNetwork& network, const std::string& node, const std::string& kind, const std::string& file) {
  if (network.hosts.empty() || network.switches.empty()) {
    throw UserError{Diagnostic{.where = {file, 0, 0}, .path = {}, .problem = network.switches.empty() ? "no switch in this file" : "no host with a way to the others in this file",
                               .expected = "a network of hosts and switches", .got = {}, .hint = "without -o, what was read is printed"}};
  }
  const std::string stem = std::filesystem::path{file}.stem().string();
  std::string text = fmt::format("# Read by `stepcast import {} {}`: {} hosts, {} switches.\n", kind, std::filesystem::path{file}.filename().string(), network.hosts.size(),
                                 network.switches.size());
  for (const std::string& remark : network.remarks) text += "# Note: " + remark + ".\n";
  text += fmt::format("schema: 1\nname: {}\ncluster:\n  nodes: {}\n  node: {}\n  fabric:\n", scenario::yaml_scalar(stem), network.hosts.size(), scenario::yaml_scalar(node));
  if (network.nic) text += fmt::format("    nic: {}\n", *network.nic);
  if (network.nics_per_node) text += fmt::format("    nics_per_node: {}\n", *network.nics_per_node);
  text += fmt::format("    network:\n      hosts: [{}]\n      switches: [{}]\n      links:\n", quoted(network.hosts), quoted(network.switches));
  for (const ImportedLinks& links : network.links) {
    text += fmt::format("        - {{from: {}, to: {}", quoted(links.from), quoted({links.to}));
    if (links.count > 1) text += fmt::format(", count: {}", links.count);
    if (links.rate) text += fmt::format(", rate: {}", scenario::print_quantity(links.rate->si(), scenario::Dimension::kBandwidth));
    text += "}\n";
  }
  return text;
}

}  // namespace stepcast::app
