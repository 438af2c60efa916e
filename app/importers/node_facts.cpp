#include "app/importers/node_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
namespace {

using topology::Interconnect;

[[noreturn]] void refuse(const std::string& file, std::string problem, std::string expected = {}, std::string hint = {}) {
  throw UserError{Diagnostic{.where = {file, 0, 0}, .path = {}, .problem = std::move(problem), .expected = std::move(expected), .got = {}, .hint = std::move(hint)}};
}

class Describer {
 public:
  Describer(const NodeFacts& facts, const topology::Catalogue& catalogue, const NodeChoices& choices, const std::string& file)
      : facts_{facts}, catalogue_{catalogue}, choices_{choices}, file_{file} {}

  ImportedNode run() {
    if (facts_.gpus.empty()) refuse(file_, "no GPU in it that could be told", "GPUs, to describe a node with", "without -o, what was read is printed");
    out_.remarks = facts_.remarks;
    const topology::Gpu& gpu = pick_gpu();
    const std::optional<Interconnect> joined = interconnect();
    const topology::Node& like = pick_like(gpu, joined);
    topology::Node& node = out_.node;
    node = like;
    out_.like = like.name;
    node.name = std::filesystem::path{file_}.stem().string();
    node.title = fmt::format("{} x {}, read from a description", facts_.gpus.size(), gpu.title);
    node.aliases.clear();
    node.gpu = gpu.name;
    node.gpus = static_cast<std::int64_t>(facts_.gpus.size());
    taken("gpus");
    if (facts_.gpus.front().model && !choices_.gpu) taken("gpu");
    wires(node, joined);
    if (node.interconnect != Interconnect::kNvswitch) node.nvlink_domain.reset();
    if (node.nvlink_domain) remark(fmt::format("{} nodes an NVLink domain, as in {}", node.nvlink_domain->value, out_.like));
    sockets(node);
    pcie(node, gpu);
    nics(node);
    return std::move(out_);
  }

 private:
  void taken(const char* key) { out_.from_file.emplace_back(key); }
  void remark(std::string text) { out_.remarks.push_back(std::move(text)); }

  const topology::Gpu& pick_gpu() {
    if (choices_.gpu) return topology::find_gpu(catalogue_, *choices_.gpu, "--gpu");
    std::set<std::string> models;
    for (const GpuFact& gpu : facts_.gpus)
      if (gpu.model) models.insert(*gpu.model);
    if (models.size() > 1) refuse(file_, "GPUs of several kinds", "one kind of GPU in a node", join(std::vector<std::string>{models.begin(), models.end()}, ", "));
    if (models.empty()) refuse(file_, "the file does not say which GPU it is", "--gpu NAME, a GPU of the catalogue (stepcast list)");
    return topology::find_gpu(catalogue_, *models.begin(), "gpu");
  }

  std::optional<Interconnect> interconnect() const {
    if (!facts_.tells_nvlink) return std::nullopt;
    bool to_switch = false;
    bool to_peer = false;
    for (const GpuFact& gpu : facts_.gpus) {
      to_switch = to_switch || gpu.switch_links > 0;
      to_peer = to_peer || !gpu.peer_links.empty();
    }
    return to_switch ? Interconnect::kNvswitch : to_peer ? Interconnect::kNvlinkMesh : Interconnect::kPcie;
  }

  const topology::Node& pick_like(const topology::Gpu& gpu, std::optional<Interconnect> joined) {
    if (choices_.like) return topology::find_node(catalogue_, *choices_.like, "--like");
    // The same GPU first, then the same links between GPUs, as many GPUs and NICs; then the name.
    const topology::Node* best = nullptr;
    const auto distance = [&](const topology::Node& node) {
      return std::tuple{joined && node.interconnect != *joined, node.gpus != static_cast<std::int64_t>(facts_.gpus.size()),
                        node.nics != static_cast<std::int64_t>(facts_.nics.size()), !node.name.starts_with("dgx")};
    };
    for (const auto& [name, node] : catalogue_.nodes) {
      if (node.gpu != gpu.name) continue;
      if (best == nullptr || distance(node) < distance(*best)) best = &node;
    }
    if (best == nullptr) refuse(file_, fmt::format("no node of the catalogue has the GPU {}, to lend figures that the file lacks", gpu.name), "--like NODE (stepcast list)");
    return *best;
  }

  void wires(topology::Node& node, std::optional<Interconnect> joined) {
    if (!joined) {
      remark(fmt::format("NVLinks are not in the file: as in {}", out_.like));
      if (node.interconnect == Interconnect::kNvlinkMesh && node.gpus != topology::find_node(catalogue_, out_.like).gpus) node.mesh.clear();
      return;
    }
    const topology::Node lent = node;
    node.interconnect = *joined;
    node.mesh.clear();
    taken("interconnect");
    if (*joined == Interconnect::kPcie) {
      node.scale_up_efficiency.reset();
      node.scale_up_latency.reset();
      return;
    }
    if (!lend_scale_up(node)) return;
    if (*joined == Interconnect::kNvswitch) {
      std::set<std::uint32_t> counts;
      for (const GpuFact& gpu : facts_.gpus) counts.insert(gpu.switch_links);
      if (counts.size() > 1) remark("GPUs with different numbers of NVLinks to the switches: each counts as having all of its kind's");
      return;
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs;
    for (std::uint32_t g = 0; g < facts_.gpus.size(); ++g)
      for (const auto& [peer, links] : facts_.gpus[g].peer_links) {
        std::uint32_t& both = pairs[{std::min(g, peer), std::max(g, peer)}];
        both = std::max(both, links);
      }
    for (const auto& [pair, links] : pairs) node.mesh.push_back({pair.first, pair.second, links});
    taken("mesh");
  }

  // Efficiency and latency of NVLinks, from another node of the same GPU or generation where `like` has none.
  bool lend_scale_up(topology::Node& node) {
    const topology::Gpu& gpu = topology::find_gpu(catalogue_, node.gpu);
    if (gpu.scale_up && (!node.scale_up_efficiency || !node.scale_up_latency)) {
      const auto lends = [&](const topology::Node& other) {
        return other.scale_up_efficiency && other.scale_up_latency && topology::find_gpu(catalogue_, other.gpu).architecture == gpu.architecture;
      };
      const topology::Node* from = nullptr;
      for (const auto& [name, other] : catalogue_.nodes)
        if (lends(other) && (from == nullptr || (other.gpu == gpu.name && from->gpu != gpu.name))) from = &other;
      if (from != nullptr) {
        node.scale_up_efficiency = from->scale_up_efficiency;
        node.scale_up_latency = from->scale_up_latency;
        remark(fmt::format("scale_up_efficiency and scale_up_latency from {}", from->name));
      }
    }
    if (gpu.scale_up && node.scale_up_efficiency && node.scale_up_latency) return true;
    remark("no figures for its NVLinks in the catalogue: the GPUs meet over PCIe");
    node.interconnect = Interconnect::kPcie;
    node.mesh.clear();
    return false;
  }

  void sockets(topology::Node& node) {
    std::map<std::uint32_t, std::size_t> gpus_of;
    for (const GpuFact& gpu : facts_.gpus)
      if (gpu.cpu) ++gpus_of[*gpu.cpu];
    if (gpus_of.empty()) return;
    node.sockets = static_cast<std::int64_t>(gpus_of.size());
    taken("sockets");
    if (facts_.cpus > gpus_of.size())
      remark(fmt::format("{} CPU{} without a GPU left out", facts_.cpus - gpus_of.size(), facts_.cpus - gpus_of.size() == 1 ? "" : "s"));
    std::set<std::size_t> sizes;
    for (const auto& [cpu, count] : gpus_of) sizes.insert(count);
    if (sizes.size() > 1) remark("CPUs with different numbers of GPUs: the node's form spreads them evenly");
    if (node.sockets > 2) remark(fmt::format("{} NUMA nodes count as sockets of their own, joined pair by pair", node.sockets));
    if (node.sockets == 1) {
      node.socket_link.reset();
      node.socket_latency.reset();
    } else if (!node.socket_link) {
      const auto other = std::find_if(catalogue_.nodes.begin(), catalogue_.nodes.end(), [&](const auto& entry) { return entry.second.gpu == node.gpu && entry.second.socket_link; });
      if (other == catalogue_.nodes.end()) {
        remark("no figure for the link between sockets: GPUs meet over NVLink only");
      } else {
        node.socket_link = other->second.socket_link;
        node.socket_latency = other->second.socket_latency;
        remark(fmt::format("socket_link and socket_latency from {}", other->first));
      }
    }
  }

  void pcie(topology::Node& node, const topology::Gpu& gpu) {
    std::map<std::uint32_t, std::size_t> below;
    std::size_t direct = 0;
    for (const GpuFact& fact : facts_.gpus) {
      if (fact.pcie_switch) {
        ++below[*fact.pcie_switch];
      } else {
        ++direct;
      }
    }
    if (facts_.tells_nvlink || !below.empty() || std::any_of(facts_.gpus.begin(), facts_.gpus.end(), [](const GpuFact& g) { return g.cpu.has_value(); })) {
      std::set<std::size_t> sizes;
      for (const auto& [id, count] : below) sizes.insert(count);
      if (below.empty()) {
        node.gpus_per_pcie_switch = 0;
      } else {
        node.gpus_per_pcie_switch = static_cast<std::int64_t>(*sizes.rbegin());
        if (sizes.size() > 1 || direct > 0) remark("PCIe switches with different numbers of GPUs: the node's form has as many on each as on the fullest");
      }
      taken("gpus_per_pcie_switch");
    }
    if (!facts_.pcie_generation) return;
    if (static_cast<std::int64_t>(*facts_.pcie_generation) != gpu.pcie_generation) {
      remark(fmt::format("PCIe generation {} in the file, {} in the GPU's data sheet: not believed, as in {}", *facts_.pcie_generation, gpu.pcie_generation, out_.like));
      return;
    }
    if (node.pcie_generation == *facts_.pcie_generation) taken("pcie_generation");
    else remark(fmt::format("PCIe generation {} in the file, {} in {}: the latter's rates are kept", *facts_.pcie_generation, node.pcie_generation, out_.like));
  }

  void nics(topology::Node& node) {
    if (facts_.nics.empty()) {
      remark(fmt::format("no network card in the file: as in {}", out_.like));
    } else {
      // The rate that most have is the fabric's; the others serve storage and people.
      std::map<double, std::size_t> rates;
      for (const NicFact& nic : facts_.nics)
        if (nic.rate) ++rates[nic.rate->si()];
      std::optional<double> rate;
      for (const auto& [value, count] : rates)
        if (!rate || count >= rates[*rate]) rate = value;
      std::vector<const NicFact*> used;
      for (const NicFact& nic : facts_.nics)
        if (!rate || (nic.rate && nic.rate->si() == *rate)) used.push_back(&nic);
      if (used.size() < facts_.nics.size()) remark(fmt::format("{} of {} NICs are of another rate: left out", facts_.nics.size() - used.size(), facts_.nics.size()));
      node.nics = static_cast<std::int64_t>(used.size());
      taken("nics");
      if (choices_.nic) {
        node.nic = topology::find_nic(catalogue_, *choices_.nic, "--nic").name;
      } else if (rate) {
        nic_kind(node, Bandwidth::from_si(*rate), used.front()->transport);
      } else {
        remark(fmt::format("rates of the NICs are not in the file: {} as in {}", node.nic, out_.like));
      }
      places(used);
      return;
    }
    if (choices_.nic) node.nic = topology::find_nic(catalogue_, *choices_.nic, "--nic").name;
  }

  void nic_kind(topology::Node& node, Bandwidth rate, std::optional<topology::Transport> transport) {
    const topology::Nic& lent = topology::find_nic(catalogue_, node.nic);
    const auto fits = [&](const topology::Nic& nic) {
      // Ports that sit on both planes of a card report 180 of 200 Gb/s: within 10 %.
      const double ratio = rate / nic.line_rate.value;
      return ratio > 0.899 && ratio < 1.01 && (!transport || nic.transport == *transport);
    };
    if (fits(lent)) return taken("nic");
    for (const auto& [name, nic] : catalogue_.nics) {
      if (!fits(nic) || nic.transport != transport.value_or(lent.transport)) continue;
      node.nic = name;
      return taken("nic");
    }
    remark(fmt::format("no NIC of {} in the catalogue that fits: {} as in {}; --nic chooses another", human_bit_rate(rate), node.nic, out_.like));
  }

  // The form pairs NIC i with the GPUs of slot i; other wirings are said, not drawn.
  void places(const std::vector<const NicFact*>& used) {
    std::size_t lost = 0;
    for (const NicFact* nic : used) {
      const bool beside = std::any_of(facts_.gpus.begin(), facts_.gpus.end(), [&](const GpuFact& gpu) {
        return nic->pcie_switch ? gpu.pcie_switch == nic->pcie_switch : nic->cpu && gpu.cpu == nic->cpu;
      });
      lost += beside ? 0 : 1;
    }
    if (lost > 0) remark(fmt::format("{} NIC{} near no GPU: the node's form spreads NICs evenly over the GPUs", lost, lost == 1 ? "" : "s"));
  }

  const NodeFacts& facts_;
  const topology::Catalogue& catalogue_;
  const NodeChoices& choices_;
  const std::string& file_;
  ImportedNode out_;
};

}  // namespace

ImportedNode describe_node(const NodeFacts& facts, const topology::Catalogue& catalogue, const NodeChoices& choices, const std::string& file) {
  return Describer{facts, catalogue, choices, file}.run();
}

std::string imported_node_text(const ImportedNode& imported, const std::string& kind, const std::string& file) {
  std::string text = fmt::format("# {}\n# Read by `stepcast import {} {}`.\n# From the file: {}.\n# All else, with its source, from {} of the catalogue: check it.\n", imported.node.title,
                                 kind, std::filesystem::path{file}.filename().string(), join(imported.from_file, ", "), imported.like);
  for (const std::string& remark : imported.remarks) text += "# Note: " + remark + ".\n";
  return text + topology::node_text(imported.node);
}

}  // namespace stepcast::app
