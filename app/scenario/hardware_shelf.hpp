// app/scenario/hardware_shelf.hpp — the catalogue and the calibration profiles, read once, and what a scenario
// picks from them. Errors name the scenario's key and the nearest word.
#pragma once

#include <vector>

#include "app/scenario/data_files.hpp"
#include "calibration/profile.hpp"
#include "calibration/transport_profile.hpp"
#include "sim/scenario/load.hpp"
#include "topologies/generate.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::app {

struct HardwareShelf {
  topology::Catalogue catalogue;
  std::vector<calibration::Profile> profiles;
  std::vector<calibration::NetworkCollectives> networks;
  std::vector<calibration::TransportProfile> transports;
  std::string machines;  // folder of profiles of single machines
};
topology::Catalogue load_catalogue(const DataFiles& data);
HardwareShelf load_shelf(const DataFiles& data);

// The cluster's hardware, its network cards speaking what the scenario says (transport_choice.hpp).
topology::ClusterHardware pick_hardware(const HardwareShelf& shelf, const scenario::Loaded& loaded);

// The cluster's fabric; what the generator refuses is reported at the scenario's keys.
topology::Fabric lay_fabric(const topology::ClusterHardware& hardware, const scenario::Loaded& loaded);

// The scenario's `profile:` file, or the shelf's for that GPU.
calibration::ChosenProfile pick_profile(const HardwareShelf& shelf, const scenario::Loaded& loaded,
                                        const topology::Gpu& gpu);

// NCCL's constants, with what the profiles of the GPU and the NIC replace.
collective::Parameters pick_collectives(const HardwareShelf& shelf, const topology::ClusterHardware& hardware,
                                        const calibration::ChosenProfile& profile);
// The same between hosts, for each of cluster.networks.
std::vector<collective::NetworkParameters> pick_side_networks(const HardwareShelf& shelf, const topology::ClusterHardware& hardware,
                                                              const calibration::ChosenProfile& profile);

}  // namespace stepcast::app
