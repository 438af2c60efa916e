#include "app/hardware_shelf.hpp"

#include "app/placed.hpp"
#include "sim/scenario/read.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
topology::Catalogue load_catalogue(const DataFiles& data) {
  return topology::load_catalogue((data.topologies() / "data").string());
}

HardwareShelf load_shelf(const DataFiles& data) {
  return {load_catalogue(data), calibration::read_profiles(data.profiles().string()),
          calibration::read_network_profiles((data.profiles() / "network").string())};
}

topology::ClusterHardware pick_hardware(const topology::Catalogue& catalogue, const scenario::Loaded& loaded) {
  return placed(loaded.where, [&] { return topology::resolve_cluster(catalogue, loaded.scenario.cluster); });
}

calibration::ChosenProfile pick_profile(const HardwareShelf& shelf, const scenario::Loaded& loaded,
                                        const topology::Gpu& gpu) {
  if (!loaded.scenario.profile) return calibration::choose_profile(shelf.profiles, gpu);
  return {scenario::read_yaml_file<calibration::Profile>(*loaded.scenario.profile), true};
}

topology::Fabric lay_fabric(const topology::ClusterHardware& hardware, const scenario::Loaded& loaded) {
  return placed(loaded.where, [&] { return topology::build_fabric(hardware, loaded.scenario.cluster); });
}

collective::Parameters pick_collectives(const HardwareShelf& shelf, const topology::ClusterHardware& hardware,
                                        const calibration::ChosenProfile& profile) {
  const auto& local = profile.profile.collectives;
  std::vector<calibration::NetworkCollectives> own;
  if (profile.profile.network_collectives) own.push_back(*profile.profile.network_collectives);
  const calibration::NetworkCollectives* network = calibration::find_network_profile(own, hardware.nic.name, hardware.node.name);
  if (network == nullptr) network = calibration::find_network_profile(shelf.networks, hardware.nic.name, hardware.node.name);
  return calibration::collective_parameters(hardware.gpu, local ? &*local : nullptr, network);
}

}  // namespace stepcast::app
