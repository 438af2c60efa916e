#include "app/hardware_shelf.hpp"

#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/read.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
namespace {

// The catalogue knows keys, not files: what it refuses is reported at the scenario's position.
template <class Call>
auto placed(const scenario::Loaded& loaded, Call call) {
  try {
    return call();
  } catch (const UserError& error) {
    std::vector<Diagnostic> diagnostics(error.diagnostics().begin(), error.diagnostics().end());
    for (Diagnostic& diagnostic : diagnostics) diagnostic.where = loaded.where.of(diagnostic.path);
    throw UserError(diagnostics);
  }
}

}  // namespace

topology::Catalogue load_catalogue(const DataFiles& data) {
  return topology::load_catalogue((data.topologies() / "data").string());
}

HardwareShelf load_shelf(const DataFiles& data) {
  return {load_catalogue(data), calibration::read_profiles(data.profiles().string())};
}

topology::ClusterHardware pick_hardware(const topology::Catalogue& catalogue, const scenario::Loaded& loaded) {
  return placed(loaded, [&] { return topology::resolve_cluster(catalogue, loaded.scenario.cluster); });
}

calibration::ChosenProfile pick_profile(const HardwareShelf& shelf, const scenario::Loaded& loaded,
                                        const topology::Gpu& gpu) {
  if (!loaded.scenario.profile) return calibration::choose_profile(shelf.profiles, gpu);
  return {scenario::read_yaml_file<calibration::Profile>(*loaded.scenario.profile), true};
}

topology::Fabric lay_fabric(const topology::ClusterHardware& hardware, const scenario::Loaded& loaded) {
  return placed(loaded, [&] { return topology::build_fabric(hardware, loaded.scenario.cluster); });
}

}  // namespace stepcast::app
