// app/measure/imported_run.hpp — profiles and logs of real GPUs: what an import says of them, and each as one measured run of the store.
//
// Form     origin "measured", no scenario; results is the JSON of `stepcast import KIND` with "kind" and "fingerprint" (of the file, so
//          that it is stored once). Profiles are spans whose category is the kind of work; logs are counters. docs/guide/database.md
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "calibration/gpu_trace.hpp"
#include "calibration/smi_log.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

// "a" of "dir/a.json.gz".
std::string run_name_of(const std::string& file);

std::string trace_text(const calibration::GpuTrace& trace);
nlohmann::ordered_json trace_json(const calibration::GpuTrace& trace, const std::string& kind, const std::string& file);
// Spans are handed out one by one.
trace::Store::Appended store_trace(const calibration::GpuTrace& trace, const std::string& kind, const std::string& file, const std::string& database);

std::string smi_text(const calibration::SmiLog& log);
nlohmann::ordered_json smi_json(const calibration::SmiLog& log, const std::string& file, const std::string& fingerprint);
trace::Store::Appended store_smi(const calibration::SmiLog& log, const std::string& file, const std::string& fingerprint, const std::string& database);

}  // namespace stepcast::app
