// models/network/transport/transport_models.hpp — the transports by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/network/transport/traffic.hpp"

namespace stepcast::network {

struct TransportModel {
  std::string_view name;
  std::string_view summary;
  bool random = true;  // the seed matters: to the model, or by the ways back that it chooses
  std::vector<Completion> (*run)(const Traffic& traffic, const RunOptions& options);  // by message
};

// plain first, then in alphabetical order.
std::span<const TransportModel> transport_models();

// Null when there is none of that name.
const TransportModel* find_transport(std::string_view name);

}  // namespace stepcast::network
