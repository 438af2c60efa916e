#include "app/importers/slurm_topology.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/name_ranges.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/node.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::app {
namespace {

[[noreturn]] void refuse(SourcePosition at, std::string problem, std::string expected = {}, std::string got = {}) {
  throw UserError{Diagnostic{.where = std::move(at), .path = {}, .problem = std::move(problem), .expected = std::move(expected), .got = std::move(got), .hint = {}}};
}

std::vector<std::string> names_at(const SourcePosition& at, const std::string& text) {
  NameList list = expand_names(text);
  if (list.error) {
    SourcePosition place = at;
    place.column += static_cast<int>(list.error->offset);
    refuse(place, list.error->problem, "a host list such as tux[0-3,12]", text.substr(list.error->offset, 16));
  }
  return std::move(list.names);
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// One line of topology.conf.
void read_line(const std::string& whole, int number, const std::string& file, SlurmTopology& out) {
  const std::string line = whole.substr(0, whole.find('#'));
  struct Field {
    std::string key;
    std::string value;
    SourcePosition at;
  };
  std::vector<Field> fields;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') ++end;
    const std::string word = line.substr(i, end - i);
    const std::size_t equals = word.find('=');
    const SourcePosition at{file, number, static_cast<int>(i) + 1};
    if (equals == std::string::npos) refuse(at, "no key=value", "SwitchName=s0 Nodes=tux[0-3] or BlockName=b0 Nodes=tux[0-3]", word);
    fields.push_back({lower(word.substr(0, equals)), word.substr(equals + 1), {file, number, static_cast<int>(i + equals) + 2}});
    i = end;
  }
  if (fields.empty()) return;
  const std::string& kind = fields[0].key;
  if (kind == "blocksizes") {
    out.block_sizes = fields[0].value;
    return;
  }
  if (kind == "ringname") {
    out.remarks.push_back(fmt::format("line {}: a ring, left out", number));
    return;
  }
  if (kind != "switchname" && kind != "blockname") refuse({file, number, 1}, "no such record", "one of SwitchName, BlockName, BlockSizes, RingName", line);
  SlurmSwitch record{.name = fields[0].value, .nodes = {}, .switches = {}, .at = {file, number, 1}};
  for (std::size_t f = 1; f < fields.size(); ++f) {
    if (fields[f].key == "nodes") {
      record.nodes = names_at(fields[f].at, fields[f].value);
    } else if (fields[f].key == "switches" && kind == "switchname") {
      record.switches = names_at(fields[f].at, fields[f].value);
    } else if (fields[f].key != "linkspeed") {
      refuse(fields[f].at, "no such key", kind == "switchname" ? "one of LinkSpeed, Nodes, Switches" : "Nodes", fields[f].key);
    }
  }
  if (record.name.empty()) refuse(fields[0].at, "a name is missing");
  if (record.nodes.empty() == record.switches.empty()) {
    refuse(record.at, record.nodes.empty() ? fmt::format("'{}' has nothing below it", record.name) : fmt::format("'{}' has both nodes and switches", record.name),
           kind == "switchname" ? "Nodes= or Switches=" : "Nodes=");
  }
  (kind == "switchname" ? out.switches : out.blocks).push_back(std::move(record));
}

std::string text_at(const scenario::Node& mapping, const char* key) {
  const scenario::Entry* entry = mapping.find(key);
  return entry != nullptr && entry->value.kind == scenario::NodeKind::kScalar ? entry->value.scalar : std::string{};
}

void read_records(const scenario::Node& list, const char* name_key, const char* below_key, std::vector<SlurmSwitch>& out) {
  for (const scenario::Node& item : list.items) {
    SlurmSwitch record{.name = text_at(item, name_key), .nodes = {}, .switches = {}, .at = item.at};
    if (record.name.empty()) refuse(item.at, fmt::format("no {} in this item", name_key), fmt::format("{}: name", name_key));
    if (const scenario::Entry* nodes = item.find("nodes")) record.nodes = names_at(nodes->value.at, nodes->value.scalar);
    if (const scenario::Entry* below = below_key == nullptr ? nullptr : item.find(below_key)) record.switches = names_at(below->value.at, below->value.scalar);
    if (record.nodes.empty() == record.switches.empty()) refuse(item.at, fmt::format("'{}' has nothing below it, or both nodes and switches", record.name), "nodes or children");
    out.push_back(std::move(record));
  }
}

SlurmTopology read_yaml_form(const std::string& text, const std::string& file) {
  Diagnostics diagnostics;
  const std::optional<scenario::Node> root = scenario::parse_yaml(text, file, diagnostics);
  diagnostics.throw_if_any();
  if (!root || root->kind != scenario::NodeKind::kList || root->items.empty()) refuse({file, 1, 1}, "no topologies in it", "a list of topologies, as in topology.yaml(5)");
  const scenario::Node* chosen = &root->items.front();
  for (const scenario::Node& item : root->items)
    if (text_at(item, "cluster_default") == "true") chosen = &item;
  SlurmTopology out;
  out.name = text_at(*chosen, "topology");
  for (const scenario::Node& item : root->items) {
    if (&item != chosen) out.remarks.push_back(fmt::format("topology {} left out: {} is the cluster's default", text_at(item, "topology"), out.name));
  }
  if (const scenario::Entry* tree = chosen->find("tree")) {
    const scenario::Entry* list = tree->value.find("switches");
    if (list == nullptr) refuse(tree->key_at, "no switches in the tree", "switches: [...]");
    read_records(list->value, "switch", "children", out.switches);
  } else if (const scenario::Entry* block = chosen->find("block")) {
    const scenario::Entry* list = block->value.find("blocks");
    if (list == nullptr) refuse(block->key_at, "no blocks in it", "blocks: [...]");
    read_records(list->value, "block", nullptr, out.blocks);
    if (const scenario::Entry* sizes = block->value.find("block_sizes")) {
      for (const scenario::Node& size : sizes->value.items) out.block_sizes += (out.block_sizes.empty() ? "" : ",") + size.scalar;
    }
  } else {
    refuse(chosen->at, fmt::format("topology {} is neither a tree nor blocks", out.name), "tree: or block:");
  }
  return out;
}

class Builder {
 public:
  Builder(const SlurmTopology& topology, std::int64_t nics) : topology_{topology}, nics_{nics} {}

  ImportedNetwork run() {
    out_.remarks = topology_.remarks;
    if (topology_.switches.empty()) {
      blocks();
    } else {
      if (!topology_.blocks.empty()) out_.remarks.emplace_back("blocks left out: the tree says more");
      tree();
    }
    out_.remarks.push_back(fmt::format("the file says neither rates nor numbers of links: all {} NICs of a host on its switch, and as many links upwards as NICs below (1:1); count and rate change that",
                                       nics_));
    return std::move(out_);
  }

 private:
  static constexpr std::int64_t kMostLinks = 100'000;  // as `count` takes

  void add_host(const SlurmSwitch& record, const std::string& name) {
    if (!hosts_.emplace(name, record.name).second) refuse(record.at, fmt::format("node {} is on two switches", name), "each node once", fmt::format("{} and {}", hosts_[name], record.name));
    out_.hosts.push_back(name);
  }

  void blocks() {
    for (const SlurmSwitch& block : topology_.blocks) {
      out_.switches.push_back(block.name);
      for (const std::string& node : block.nodes) add_host(block, node);
      out_.links.push_back({block.nodes, block.name, 1, {}});
    }
    if (topology_.blocks.size() < 2) return;
    std::string top = "between-blocks";
    while (std::find(out_.switches.begin(), out_.switches.end(), top) != out_.switches.end()) top += "-";
    for (const SlurmSwitch& block : topology_.blocks)
      out_.links.push_back({{block.name}, top, std::min(kMostLinks, nics_ * static_cast<std::int64_t>(block.nodes.size())), {}});
    out_.switches.push_back(top);
    out_.remarks.push_back(fmt::format("the file does not say what joins the blocks: a switch '{}' is assumed", top));
    if (!topology_.block_sizes.empty()) out_.remarks.push_back("BlockSizes left out: they limit placement, not the network");
  }

  void tree() {
    std::map<std::string, std::size_t> index;
    for (std::size_t s = 0; s < topology_.switches.size(); ++s) {
      const SlurmSwitch& record = topology_.switches[s];
      if (!index.emplace(record.name, s).second) refuse(record.at, fmt::format("a second switch {}", record.name), "each switch once");
    }
    std::vector<std::optional<std::size_t>> parent(topology_.switches.size());
    for (std::size_t s = 0; s < topology_.switches.size(); ++s) {
      for (const std::string& child : topology_.switches[s].switches) {
        const auto found = index.find(child);
        if (found == index.end()) refuse(topology_.switches[s].at, fmt::format("no switch {}", child), "a SwitchName record for every switch");
        if (parent[found->second]) refuse(topology_.switches[s].at, fmt::format("switch {} is below two others", child), "a tree");
        parent[found->second] = s;
      }
    }
    std::vector<std::size_t> root(topology_.switches.size());
    std::map<std::size_t, std::size_t> nodes_below_root;
    for (std::size_t s = 0; s < root.size(); ++s) {
      std::size_t at = s;
      for (std::size_t steps = 0; parent[at]; at = *parent[at])
        if (++steps > root.size()) refuse(topology_.switches[s].at, fmt::format("switch {} is below itself", topology_.switches[s].name), "a tree");
      root[s] = at;
      nodes_below_root[at] += topology_.switches[s].nodes.size();
    }
    std::size_t kept = nodes_below_root.begin()->first;
    for (const auto& [at, nodes] : nodes_below_root)
      if (nodes > nodes_below_root[kept]) kept = at;
    for (const auto& [at, nodes] : nodes_below_root)
      if (at != kept) out_.remarks.push_back(fmt::format("nothing joins {} to {}: its {} nodes left out", topology_.switches[at].name, topology_.switches[kept].name, nodes));
    std::vector<std::int64_t> below(root.size(), 0);
    for (std::size_t s = 0; s < root.size(); ++s) {
      if (root[s] != kept) continue;
      out_.switches.push_back(topology_.switches[s].name);
      const SlurmSwitch& record = topology_.switches[s];
      for (const std::string& node : record.nodes) add_host(record, node);
      if (!record.nodes.empty()) out_.links.push_back({record.nodes, record.name, 1, {}});
      for (std::optional<std::size_t> at = s; at; at = parent[*at]) below[*at] += static_cast<std::int64_t>(record.nodes.size());
    }
    bool capped = false;
    for (std::size_t s = 0; s < root.size(); ++s) {
      if (root[s] != kept) continue;
      const SlurmSwitch& record = topology_.switches[s];
      std::map<std::int64_t, std::vector<std::string>> alike;  // children by their number of links
      for (const std::string& child : record.switches) {
        const std::int64_t links = nics_ * below[index.at(child)];
        capped = capped || links > kMostLinks;
        if (links > 0) alike[std::min(links, kMostLinks)].push_back(child);
      }
      for (auto& [links, children] : alike) out_.links.push_back({std::move(children), record.name, links, {}});
    }
    if (capped) out_.remarks.push_back(fmt::format("at most {} links of a pair are written", kMostLinks));
  }

  const SlurmTopology& topology_;
  std::int64_t nics_;
  ImportedNetwork out_;
  std::map<std::string, std::string> hosts_;
};

std::size_t count_nodes(const std::vector<SlurmSwitch>& records) {
  std::size_t count = 0;
  for (const SlurmSwitch& record : records) count += record.nodes.size();
  return count;
}

}  // namespace

std::size_t SlurmTopology::nodes_on_switches() const { return count_nodes(switches); }
std::size_t SlurmTopology::nodes_in_blocks() const { return count_nodes(blocks); }

SlurmTopology read_slurm_topology(const std::string& text, const std::string& file) {
  if (file.ends_with(".yaml") || file.ends_with(".yml")) return read_yaml_form(text, file);
  SlurmTopology out;
  int number = 0;
  for (const std::string& line : split(text, '\n')) read_line(line, ++number, file, out);
  if (out.switches.empty() && out.blocks.empty()) refuse({file, 0, 0}, "no switch and no block in it", "SwitchName= or BlockName= records, as in topology.conf(5)");
  return out;
}

ImportedNetwork network_of(const SlurmTopology& topology, std::int64_t nics_per_node) { return Builder{topology, nics_per_node}.run(); }

}  // namespace stepcast::app
