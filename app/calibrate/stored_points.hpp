// app/calibrate/stored_points.hpp — points of `stepcast measure` in a database, read back as what was timed.
//
// The work is the run's own `work` (docs/guide/database.md), else read off the point's name: "gemm 8 x 128x128x128 forward",
// "attention 4 heads of 64, 256 tokens backward", "norm 4096 + 4096 on 2 at once", "adam 4096", "copy 65536", "all_reduce 1024 x2".
// Time     the median of the samples that no throttle reason marks (NVML: power cap, thermal, brake); throttled where none is left
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/plan/kernel.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

struct StoredPoint {
  std::string name;
  std::string backend;                    // cpu, cuda
  std::string machine;
  std::int32_t workers = 1;
  double seconds = 0;                     // of the slowest worker
  std::size_t samples = 0;
  std::size_t throttled = 0;              // of the samples
  std::optional<plan::Kernel> kernel;     // one kernel alone, or on all workers at once
  std::string cost;                       // else what else moves bytes: "copy", "nvme read", "host adam", "all_reduce"; empty: neither
  std::int64_t bytes = 0;                 // of that
  bool beside = false;                    // kernel beside a collective or a copy
  std::string created;
};

// Oldest first; the last of equal points counts. Throws as trace::Store does.
std::vector<StoredPoint> stored_points(const std::string& database);

// Reads a record of a run. Throws UserError that names the run where the record is not of the form that it says: a key that is missing or of another type, a
// number out of range (std::logic_error of `read`).
void read_record(const std::string& database, const trace::RunSummary& run, const std::function<void()>& read);

// Times of samples. Throws std::out_of_range for one that is no number or longer than any run (10^7 s).
std::vector<double> seconds_of_record(const nlohmann::json& record);

// What a name says; empty where it is of another kind.
std::optional<plan::Kernel> kernel_of_name(const std::string& name);

}  // namespace stepcast::app
