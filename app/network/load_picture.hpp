// app/network/load_picture.hpp — the links of a fabric by how busy they were, as one SVG: a band a tier, a row a device
// that sends, a cell a link; darker is busier, and a cell's tooltip names its link. Tiers of many devices show the
// busiest rows.
#pragma once

#include <string>
#include <vector>

#include "topologies/link_slots.hpp"

namespace stepcast::app {

// `carried` [B] by slot over `makespan_s`.
std::string draw_loads(const std::string& title, const topology::LinkSlots& slots, const std::vector<double>& carried, double makespan_s);

}  // namespace stepcast::app
