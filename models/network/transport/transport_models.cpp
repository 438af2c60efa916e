#include "models/network/transport/transport_models.hpp"

#include <array>

#include "models/network/transport/fluid_transport.hpp"
#include "models/network/transport/pull_transport.hpp"
#include "models/network/transport/roce_transport.hpp"
#include "models/network/transport/uec_transport.hpp"

namespace stepcast::network {

std::span<const TransportModel> transport_models() {
  static constexpr std::array kModels{
      TransportModel{"plain", "max-min fair fluids, no transport", false,
                     [](const Traffic& traffic, const RunOptions&) { return run_fluid(traffic, kRoceFormat); }},
      TransportModel{"eqds", "receiver-driven on trimming switches, packets spread by header values", true,
                     [](const Traffic& traffic, const RunOptions& options) { return run_pull(traffic, eqds_parameters(), options); }},
      TransportModel{"ndp", "receiver-driven on trimming switches, packets spread over permuted routes", true,
                     [](const Traffic& traffic, const RunOptions& options) { return run_pull(traffic, ndp_parameters(), options); }},
      TransportModel{"roce_pfc", "line rate under priority flow control alone", true,
                     [](const Traffic& traffic, const RunOptions& options) { return run_roce(traffic, {}, options); }},
      TransportModel{"uec", "congestion window at the sender (NSCC) on trimming switches", true,
                     [](const Traffic& traffic, const RunOptions& options) { return run_uec(traffic, {}, options); }},
  };
  return kModels;
}

const TransportModel* find_transport(std::string_view name) {
  for (const TransportModel& model : transport_models()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace stepcast::network
