#include "calibration/truth_cluster.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace stepcast::calibration {
namespace {

using topology::Catalogue;
using topology::Gpu;
using topology::Interconnect;
using topology::Nic;
using topology::Node;
using topology::Transport;

constexpr std::int64_t kUsualGpusPerNode = 8;

// "Ampere (A100-class)": a paper that calls its GPU no more than that.
std::string gpu_name(const std::string& stated) {
  constexpr std::string_view kClass = "-class)";
  const std::size_t open = stated.find('(');
  if (open == std::string::npos || !stated.ends_with(kClass)) return stated;
  return stated.substr(open + 1, stated.size() - open - 1 - kClass.size());
}

bool is_called(const Gpu& gpu, const std::string& stated) {
  const std::string name = gpu_name(stated);
  return gpu.name == name || std::find(gpu.aliases.begin(), gpu.aliases.end(), name) != gpu.aliases.end();
}

double gigabytes(Bytes bytes) { return bytes.si() / 1073741824.0; }

// The GPU of that name; where the row's memory size contradicts it, the relative whose name starts
// alike and whose memory agrees (a100-sxm-80 and a100-sxm-40).
const Gpu* find_gpu(const Catalogue& catalogue, const TruthClusterRequest& request) {
  const Gpu* named = nullptr;
  for (const auto& [name, gpu] : catalogue.gpus) {
    if (is_called(gpu, request.gpu)) named = &gpu;
  }
  if (named == nullptr || !request.gpu_memory_gb) return named;
  const auto agrees = [&](const Gpu& gpu) { return std::abs(gigabytes(gpu.memory.value) - *request.gpu_memory_gb) < 4.0; };
  if (agrees(*named)) return named;
  const std::string stem = named->name.substr(0, named->name.rfind('-'));
  for (const auto& [name, gpu] : catalogue.gpus) {
    if (name.starts_with(stem) && gpu.architecture == named->architecture && agrees(gpu)) return &gpu;
  }
  return named;
}

std::int64_t domain_of(const Node& node) { return node.nvlink_domain ? node.nvlink_domain->value : 1; }

std::int64_t largest_divisor(std::int64_t number, std::int64_t most) {
  while (number % most != 0) --most;
  return most;
}

bool wants_pcie(const std::string& intra_node) { return intra_node.starts_with("PCIe"); }

// Nodes that carry this GPU, then those that carry a relative with the same links; the vendor's own
// box (dgx-) first, then by name.
const Node* find_node(const Catalogue& catalogue, const Gpu& gpu, const TruthClusterRequest& request,
                      std::int64_t gpus_per_node) {
  const Node* best = nullptr;
  int best_score = 0;
  for (const auto& [name, node] : catalogue.nodes) {
    if (node.gpus < gpus_per_node) continue;
    const auto own = catalogue.gpus.find(node.gpu);
    if (own == catalogue.gpus.end()) continue;
    const bool same = own->second.name == gpu.name;
    const bool relative = own->second.architecture == gpu.architecture &&
                          own->second.scale_up.has_value() == gpu.scale_up.has_value();
    if (!same && !relative) continue;
    if (!request.intra_node.empty() && wants_pcie(request.intra_node) != (node.interconnect == Interconnect::kPcie)) continue;
    if (request.intra_node.find("NVSwitch") != std::string::npos && node.interconnect != Interconnect::kNvswitch) continue;
    int score = same ? 100 : 10;
    if (node.gpus == gpus_per_node) score += 20;
    if (node.nvlink_domain && request.intra_node.find("domain") != std::string::npos) score += 10;
    if (name.starts_with("dgx-")) score += 5;
    if (score > best_score) {
      best = &node;
      best_score = score;
    }
  }
  return best;
}

std::optional<Transport> transport_of(const std::string& words) {
  const auto has = [&](std::string_view word) { return words.find(word) != std::string::npos; };
  if (has("RoCE")) return Transport::kRoce;
  if (has("Ethernet") || has("TCP") || has("GbE")) return Transport::kTcp;
  if (has("IB") || has("InfiniBand") || has("HDR") || has("NDR") || has("EDR") || has("Omni")) return Transport::kInfiniBand;
  return std::nullopt;
}

struct NicChoice {
  const Nic* nic = nullptr;
  std::int64_t count = 0;
};

bool fits(const Nic& nic, std::int64_t count, double node_rate, const TruthClusterRequest& request) {
  if (std::abs(nic.line_rate.value.si() * static_cast<double>(count) / node_rate - 1.0) > 0.01) return false;
  const bool omni = request.inter_node.find("Omni") != std::string::npos;
  const bool efa = request.inter_node.find("EFA") != std::string::npos;
  if (omni || efa) return nic.name.starts_with(omni ? "opa" : "efa");
  const std::optional<Transport> transport = transport_of(request.inter_node);
  const bool cloud_own = nic.name.starts_with("opa") || nic.name.starts_with("efa") || nic.name.starts_with("tcpx") ||
                         nic.name.starts_with("slingshot");
  return !cloud_own && (!transport || nic.transport == *transport);
}

// NICs of one kind whose line rates add up to the node's: at the rate of the node's own NICs where
// that divides, else as many as the node has, else fewer.
std::optional<NicChoice> find_nics(const Catalogue& catalogue, const Node& node, const TruthClusterRequest& request) {
  const double node_rate = *request.node_gbit_per_s * 1e9 / 8.0;
  std::vector<std::int64_t> counts;
  if (const auto own = catalogue.nics.find(node.nic); own != catalogue.nics.end()) {
    counts.push_back(std::max<std::int64_t>(1, std::llround(node_rate / own->second.line_rate.value.si())));
  }
  counts.insert(counts.end(), {node.nics, 8, 4, 2, 1});
  for (const std::int64_t count : counts) {
    for (const auto& [name, nic] : catalogue.nics) {
      if (fits(nic, count, node_rate, request)) return NicChoice{&nic, count};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<TruthCluster> place(const Catalogue& catalogue, const TruthClusterRequest& request,
                                  std::vector<std::string>& assumed, std::string& refusal) {
  const Gpu* gpu = find_gpu(catalogue, request);
  if (gpu == nullptr) {
    refusal = fmt::format("GPU '{}' is not in the catalogue", request.gpu);
    return std::nullopt;
  }
  const std::int64_t stated = request.gpus_per_node.value_or(kUsualGpusPerNode);
  if (!request.gpus_per_node) assumed.push_back(fmt::format("{} GPUs a node", kUsualGpusPerNode));
  const std::int64_t per_node = std::min(stated, request.gpus);
  if (request.gpus % per_node != 0) {
    refusal = fmt::format("{} GPUs do not fill nodes of {}", request.gpus, per_node);
    return std::nullopt;
  }
  const Node* node = find_node(catalogue, *gpu, request, per_node);
  if (node == nullptr) {
    refusal = fmt::format("no node in the catalogue has {} x {} on '{}'", per_node, gpu->name, request.intra_node);
    return std::nullopt;
  }
  const std::int64_t nodes = request.gpus / per_node;
  TruthCluster cluster;
  cluster.yaml = fmt::format("  nodes: {}\n  node: {}\n  gpus_per_node: {}\n", nodes, node->name, per_node);
  if (node->gpu != gpu->name) cluster.yaml += fmt::format("  gpu: {}\n", gpu->name);
  if (nodes == 1) return cluster;
  if (const std::int64_t domain = domain_of(*node); nodes > domain && nodes % domain != 0) {
    const std::int64_t used = largest_divisor(nodes, domain);
    cluster.yaml += fmt::format("  nvlink_domain: {}\n", used);
    assumed.push_back(fmt::format("{} nodes of each rack", used));
  }
  if (!request.node_gbit_per_s) {
    assumed.push_back(fmt::format("the {}'s own network", node->name));
    cluster.yaml += "  fabric: {preset: rail-clos}\n";
    return cluster;
  }
  const std::optional<NicChoice> nics = find_nics(catalogue, *node, request);
  if (!nics) {
    refusal = fmt::format("no NICs in the catalogue add up to '{}' ({:g} Gb/s a node)", request.inter_node, *request.node_gbit_per_s);
    return std::nullopt;
  }
  cluster.yaml += fmt::format("  fabric: {{preset: rail-clos, nic: {}, nics_per_node: {}}}\n", nics->nic->name, nics->count);
  return cluster;
}

}  // namespace stepcast::calibration
