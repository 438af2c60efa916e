// app/importers/imported_network.hpp — a network that an importer read, and the file it becomes: a cluster with
// the network written out (sim/scenario/network_section.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::app {

struct ImportedLinks {
  std::vector<std::string> from;             // hosts, NICs (host/nic0) or switches
  std::string to;                            // a switch
  std::int64_t count = 1;
  std::optional<Bandwidth> rate;             // where it is not the NIC's
};

struct ImportedNetwork {
  std::vector<std::string> hosts;
  std::vector<std::string> switches;
  std::vector<ImportedLinks> links;
  std::optional<std::int64_t> nics_per_node; // none: the node's own
  std::optional<std::string> nic;            // catalogue name, where the file tells
  std::vector<std::string> remarks;          // what was left out, assumed or not understood
};

// Throws UserError when there is no host or no switch.
std::string imported_network_text(const ImportedNetwork& network, const std::string& node, const std::string& kind, const std::string& file);

// A name that a scenario may hold: letters, digits, '.', '_' and '-'; others become '-'.
std::string plain_name(const std::string& name);

}  // namespace stepcast::app
