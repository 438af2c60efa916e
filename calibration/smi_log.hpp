// calibration/smi_log.hpp — clocks, power, temperature and load of GPUs over time, as nvidia-smi and dcgmi print them.
//
// Form     `--query-gpu=... --format=csv[,nounits]`: a header that may come back any number of times, cells with or without units; without
//          a header (`noheader`) the asked columns have to be given. `dmon`: lines of # names and units, then a row a GPU.
//          `dcgmi dmon`: #Entity and short names of fields, a line ID, then a row a GPU; rows of switches, links and instances are left out.
//          Missing values: [N/A], N/A, -, [Not Supported], [Unknown Error], ERR!. Throttle reasons: a bit mask, or Active / Not Active.
// Time     the timestamp column (local time, no zone), dmon's date and time, else one sample after the other at the given interval
// GPU      index, else uuid, pci.bus_id or gpu_bus_id; without any of them by place in bursts of rows (several GPUs interleaved), else one
// Source   nvidia-smi --help-query-gpu, drivers 384 to 595; nvidia-smi dmon -h; NVIDIA/DCGM dcgmi dmon and dcgmlib/src/dcgm_fields.cpp
// Ignores  processes (pmon), fields of text
// Tests    unit/smi_log_test; diff/profiles_test (shared samples)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/record.hpp"

namespace stepcast::calibration {

struct SmiGpu {
  std::string label;                   // "GPU 0", or what else tells it apart
  std::map<std::string, std::string> facts;  // name, uuid, driver_version, ...
  std::vector<trace::Counter> counters;      // worker: its index in SmiLog::gpus; samples by time
};

struct SmiLog {
  std::string form;                    // "query-gpu", "dmon", "dcgmi dmon"
  std::string started;                 // the first timestamp, as printed; empty: none
  double seconds = 0.0;                // from the first sample to the last
  std::size_t rows = 0;                // taken
  std::vector<SmiGpu> gpus;
  std::map<std::string, std::size_t> throttled;  // reason -> samples that name it
  std::size_t throttle_samples = 0;
  std::map<std::string, std::size_t> skipped;
  std::vector<std::string> notes;
};

struct SmiOptions {
  std::vector<std::string> columns;    // of --query-gpu, where the file has no header
  double interval_s = 1.0;             // between samples without a time of their own
};

// Throws UserError where it is no such output.
SmiLog read_smi_log(std::string_view text, const std::string& file, const SmiOptions& options = {});

}  // namespace stepcast::calibration
