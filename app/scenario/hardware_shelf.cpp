#include "app/scenario/hardware_shelf.hpp"

#include "app/scenario/placed.hpp"
#include "app/scenario/transport_choice.hpp"
#include "sim/scenario/read.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
topology::Catalogue load_catalogue(const DataFiles& data) {
  return topology::load_catalogue((data.topologies() / "data").string());
}

HardwareShelf load_shelf(const DataFiles& data) {
  return {load_catalogue(data), calibration::read_profiles(data.profiles().string()),
          calibration::read_network_profiles((data.profiles() / "network").string()),
          calibration::read_transport_profiles((data.profiles() / "transport").string()), (data.profiles() / "machines").string()};
}

topology::ClusterHardware pick_hardware(const HardwareShelf& shelf, const scenario::Loaded& loaded) {
  topology::ClusterHardware hardware = placed(loaded.where, [&] { return topology::resolve_cluster(shelf.catalogue, loaded.scenario.cluster); });
  apply_transport(shelf, loaded, hardware);
  return hardware;
}

calibration::ChosenProfile pick_profile(const HardwareShelf& shelf, const scenario::Loaded& loaded,
                                        const topology::Gpu& gpu) {
  if (!loaded.scenario.profile) return calibration::choose_profile(shelf.profiles, gpu);
  return {calibration::read_profile(*loaded.scenario.profile), true};
}

topology::Fabric lay_fabric(const topology::ClusterHardware& hardware, const scenario::Loaded& loaded) {
  return placed(loaded.where, [&] { return topology::build_fabric(hardware, loaded.scenario.cluster); });
}

namespace {

// NCCL's constants between hosts on these cards, with what profiles replace.
collective::Parameters parameters_on(const HardwareShelf& shelf, const topology::ClusterHardware& hardware, const topology::Nic& nic,
                                     const calibration::ChosenProfile& profile) {
  const auto& local = profile.profile.collectives;
  // A card's profile was measured with the card's own transport.
  const auto listed = shelf.catalogue.nics.find(nic.name);
  const bool as_listed = listed == shelf.catalogue.nics.end() || listed->second.transport == nic.transport;
  const calibration::NetworkCollectives* network = nullptr;
  std::vector<calibration::NetworkCollectives> own;
  if (profile.profile.network_collectives) own.push_back(*profile.profile.network_collectives);
  if (as_listed) network = calibration::find_network_profile(own, nic.name, hardware.node.name);
  if (as_listed && network == nullptr) network = calibration::find_network_profile(shelf.networks, nic.name, hardware.node.name);
  collective::Parameters parameters = calibration::collective_parameters(hardware.gpu, local ? &*local : nullptr, network);
  if (network == nullptr) parameters.network.latency_s = step_latency(shelf, nic).seconds();
  return parameters;
}

}  // namespace

collective::Parameters pick_collectives(const HardwareShelf& shelf, const topology::ClusterHardware& hardware,
                                        const calibration::ChosenProfile& profile) {
  return parameters_on(shelf, hardware, hardware.nic, profile);
}

std::vector<collective::NetworkParameters> pick_side_networks(const HardwareShelf& shelf, const topology::ClusterHardware& hardware,
                                                              const calibration::ChosenProfile& profile) {
  std::vector<collective::NetworkParameters> networks;
  for (const topology::NetworkCards& cards : hardware.side_networks) networks.push_back(parameters_on(shelf, hardware, cards.nic, profile).network);
  return networks;
}

}  // namespace stepcast::app
