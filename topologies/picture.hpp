// topologies/picture.hpp — a fabric as one SVG: tiers of switches over the nodes, and one node inside.
// Long rows show their first items and then how many more there are, so that thousands of GPUs stay
// readable. Rates stand in a column of their own. The text is UTF-8 and needs no other file.
#pragma once

#include <string>

#include "topologies/fabric.hpp"

namespace stepcast::topology {

std::string draw_fabric(const Fabric& fabric);

}  // namespace stepcast::topology
