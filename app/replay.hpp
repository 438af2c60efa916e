// app/replay.hpp — how far the replay of a recorded case is from the recording.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/recorded_flows.hpp"

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
  CompletionSummary recorded;
  CompletionSummary simulated;
  double flow_mape_pct = 0.0;  // mean over flows of |simulated / recorded - 1|
  double flow_worst_pct = 0.0;
};

ReplayReport compare(const RecordedCase& recorded, const std::vector<network::Completion>& simulated, std::string_view transport);

// (simulated / recorded - 1) in percent.
double error_pct(double simulated, double recorded);

std::string to_text(const ReplayReport& report);
std::string to_json(const ReplayReport& report);

}  // namespace stepcast::app
