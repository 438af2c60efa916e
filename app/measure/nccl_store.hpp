// app/measure/nccl_store.hpp — logs of nccl-tests in the database of runs: one run a file, appended in one transaction.
//
// Form     origin "measured"; results is the JSON of `stepcast import nccl-tests` with "kind": "nccl-tests"; every row is a
//          span of rank 0 whose bytes are the row's size and whose duration is its time, one after the other: stream 0
//          out of place, stream 1 in place. docs/guide/database.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "calibration/nccl_tests_log.hpp"
#include "models/collective/cost.hpp"
#include "sim/plan/instruction.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

trace::Run stored_log(const calibration::NcclLog& log, const std::string& file, nlohmann::ordered_json json);

// What calibration takes of it: out-of-place times.
struct StoredRow {
  plan::CollectiveKind kind = plan::CollectiveKind::kAllReduce;
  std::int64_t ranks = 0;
  std::int64_t gpus_per_process = 1;
  Bytes size;
  double seconds = 0.0;
  collective::Forced forced{};    // by NCCL_ALGO and NCCL_PROTO of its command
};
struct StoredLog {
  std::string name;
  std::vector<StoredRow> rows;
};

// Logs of a database, oldest first. Rows whose collective or number of ranks the log does not tell are left out. Collectives that
// `stepcast measure` timed are a log for each machine and number of workers. `machine`: of these alone, and of imported logs none. Throws as
// trace::Store does, and UserError where points of several machines are there and none is named.
std::vector<StoredLog> stored_logs(const std::string& database, const std::optional<std::string>& machine = std::nullopt);

}  // namespace stepcast::app
