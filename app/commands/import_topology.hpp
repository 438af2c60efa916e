// app/commands/import_topology.hpp — the kinds of `stepcast import` that describe machines and fabrics.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/commands/common_options.hpp"

namespace stepcast::app {

// nccl-topo, nvidia-smi-topo, ibnetdiscover, slurm-topology.
std::vector<std::string> topology_kinds();
void add_topology_import_options(OptionList& options);
// What was read, for people and as JSON; with -o, the YAML that `stepcast topology` reads.
Status import_topology(const std::string& kind, const std::string& file, const Invocation& invocation, Session& session);

}  // namespace stepcast::app
