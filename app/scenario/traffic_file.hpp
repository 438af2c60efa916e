// app/scenario/traffic_file.hpp — a file for `stepcast network`: a cluster and the flows on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/run/flow_run.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/traffic_section.hpp"

namespace stepcast::app {

struct TrafficFile {
  std::string file;
  scenario::Loaded loaded;  // name, cluster and seed only
  scenario::TrafficSection traffic;
};

// Throws UserError with every mistake of the file.
TrafficFile load_traffic_file(const std::string& file, const std::vector<std::string>& sets);

// All flows, written out: those of `flows`, `patterns`, `list` and `matrix` in that order. Random ones depend on
// the file's seed and on the pattern's place alone. Throws UserError for GPUs that the cluster lacks, groups that do
// not divide it, and flows of a GPU to itself.
std::vector<run::FlowSpec> flows_of(const TrafficFile& file, std::uint32_t gpus);

}  // namespace stepcast::app
