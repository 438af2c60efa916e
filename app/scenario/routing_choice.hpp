// app/scenario/routing_choice.hpp — from a scenario's `cluster.fabric.routing` and `failures` to the simulator's
// rules, and to what people read.
#pragma once

#include <string>
#include <vector>

#include "sim/run/path_rules.hpp"
#include "sim/scenario/load.hpp"
#include "topologies/fabric.hpp"

namespace stepcast::app {

// Throws UserError at the key for links and switches that the fabric does not have.
run::PathRules pick_paths(const scenario::Loaded& loaded, const topology::Fabric& fabric);

// "e-ecmp: 4 QPs a connection (split), hash crc16-ccitt, a seed per switch, source ports random; 1 failure".
// Empty without a network between nodes.
std::string routing_text(const scenario::Cluster& cluster);

// Whether the scenario says anything about routing that is not the default.
bool routing_given(const scenario::Cluster& cluster);

// What a reader should know of the choice: linear hashes that a seed does not help, reordering.
std::vector<std::string> routing_notes(const scenario::Cluster& cluster, const topology::Fabric& fabric);

}  // namespace stepcast::app
