// sim/scenario/include.hpp — parts of a scenario that stand in files of their own, put in their place in the
// tree before it is read, so that every error names the file it is in.
#pragma once

#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/node.hpp"

namespace stepcast::scenario {

// `cluster.fabric.file: F` becomes `network:` with what F holds: hosts, switches and links at its top, or
// the `cluster.fabric.network` of a whole cluster. F is looked for from the folder of `path`.
void include_network(Node& root, const std::string& path, Diagnostics& diagnostics);

}  // namespace stepcast::scenario
