// app/scenario/cluster_file.hpp — a scenario, or a file that has only a cluster: what commands about the machine take.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/load.hpp"

namespace stepcast::app {

// Of a file without `model:` only name and cluster are set. Throws UserError.
scenario::Loaded load_cluster(const std::string& file, const std::vector<std::string>& sets);

// Of the text of a file with only a cluster; `name` stands for the file in errors.
scenario::Loaded cluster_of_text(const std::string& text, const std::string& name, const std::vector<std::string>& sets = {});

}  // namespace stepcast::app
