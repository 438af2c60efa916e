// app/network/replay.hpp — a recorded case replayed by a transport model, and how far that is from the recording.
//
// A recording is one draw of what it does not tell: ways back, hashes, which packet is trimmed. So a replay is several
// runs with seeds of their own: a flow's time is its mean over the runs; p99 and makespan are means of each run's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/network/recorded_flows.hpp"
#include "models/network/transport/transport_models.hpp"

namespace stepcast::app {

// Of completion times: mean, p99 (nearest rank), and from the first start to the last end. [us]
struct CompletionSummary {
  double mean_us = 0.0;
  double p99_us = 0.0;
  double makespan_us = 0.0;
};

struct ReplayReport {
  std::string transport;
  std::size_t flows = 0;
  std::size_t runs = 0;
  CompletionSummary recorded;
  CompletionSummary simulated;
  double least_mean_us = 0.0;  // of the runs
  double most_mean_us = 0.0;
  double flow_mape_pct = 0.0;  // mean over flows of |simulated / recorded - 1|
  double flow_worst_pct = 0.0;
};

using Run = std::vector<network::Completion>;  // by flow

// Runs with the seeds options.seed, + 1, ...; one where nothing is random. On as many threads as there are processors: the
// result does not depend on them. Requires: runs > 0.
std::vector<Run> replay(const RecordedCase& recorded, const topology::HtsimFabric& fabric, const network::TransportModel& model,
                        const network::RunOptions& options, std::size_t runs);

// Requires: at least one run.
ReplayReport compare(const RecordedCase& recorded, const std::vector<Run>& runs, const network::TransportModel& model);

// (simulated / recorded - 1) in percent.
double error_pct(double simulated, double recorded);

std::string to_text(const ReplayReport& report);
std::string to_json(const ReplayReport& report);

}  // namespace stepcast::app
