#include "calibration/collective_profile.hpp"

#include <algorithm>
#include <filesystem>

#include "models/collective/nccl_constants.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/scenario/read.hpp"

namespace stepcast::calibration {
namespace {

void apply(const LocalCollectives& from, collective::LocalParameters& to) {
  to.ring_base_s = {from.ll_base.value.seconds(), from.ll128_base.value.seconds(), from.simple_base.value.seconds()};
  to.tree_base_s = to.ring_base_s;
  // The hop over whatever joins the GPUs of a box of this kind.
  to.ring_nvlink_s = {from.ll_hop.value.seconds(), from.ll128_hop.value.seconds(), from.simple_hop.value.seconds()};
  to.ring_pcie_s = to.ring_nvlink_s;
  to.efficiency = {1.0, from.ll128_efficiency.value, from.simple_efficiency.value};
  to.ll_ceiling = from.ll_ceiling.value.si();
  to.nvls_s = from.nvls_base.value.seconds();
  to.nvls_efficiency = from.nvls_efficiency.value;
  to.pairwise_ll_base_s = from.pairwise_ll_base.value.seconds();
  to.pairwise_simple_base_s = from.pairwise_simple_base.value.seconds();
  to.pairwise_ll_ceiling = from.pairwise_ll_ceiling.value.si();
  to.pairwise_efficiency = from.pairwise_efficiency.value;
  if (from.pair_ceiling) to.pair_ceiling = from.pair_ceiling->value.si();
  if (from.own_rate) to.own_rate = from.own_rate->value.si();
  if (from.pairwise_own_rate) to.pairwise_own_rate = from.pairwise_own_rate->value.si();
  to.fill = {from.fill_share.value, from.fill_bytes.value.si()};
}

void apply(const NetworkCollectives& from, collective::NetworkParameters& to) {
  constexpr auto kSimple = static_cast<std::size_t>(collective::Protocol::kSimple);
  to.latency_s = from.latency.value.seconds();
  to.ring_s[kSimple] = from.simple_hop.value.seconds();
  to.tree_s[kSimple] = from.simple_hop.value.seconds();
  to.nvls_tree_s = from.nvls_tree_hop.value.seconds();
  to.ll_ceiling = from.ll_ceiling.value.si();
  to.ll128_ceiling = from.nic_ll128_ceiling.value.si();
  if (from.simple_ceiling) to.simple_ceiling = from.simple_ceiling->value.si();
  to.tree_efficiency = from.tree_efficiency.value;
  to.fill = {from.fill_share.value, from.nic_fill_bytes.value.si()};
}

}  // namespace

std::vector<NetworkCollectives> read_network_profiles(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  Diagnostics diagnostics;
  std::vector<NetworkCollectives> profiles;
  for (const std::string& path : paths) profiles.push_back(scenario::read_yaml_file<NetworkCollectives>(path, diagnostics));
  diagnostics.throw_if_any();
  return profiles;
}

const NetworkCollectives* find_network_profile(const std::vector<NetworkCollectives>& profiles, const std::string& nic, const std::string& node) {
  const auto lists = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const NetworkCollectives* usual = nullptr;
  for (const NetworkCollectives& profile : profiles) {
    if (!lists(profile.nics, nic)) continue;
    if (lists(profile.nodes, node)) return &profile;
    if (profile.nodes.empty() && usual == nullptr) usual = &profile;
  }
  return usual;
}

collective::Parameters collective_parameters(const topology::Gpu& gpu, const LocalCollectives* local, const NetworkCollectives* network) {
  collective::Parameters parameters = collective::nccl_constants(collective::generation_of(gpu.architecture));
  if (local != nullptr) apply(*local, parameters.local);
  if (network != nullptr) apply(*network, parameters.network);
  return parameters;
}

}  // namespace stepcast::calibration
