// app/measure/measured_point.hpp — the samples of one point, as a row for people and a run of the store.
//
// Time of a sample: of the slowest worker; of the point: the median.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/common/record_file.hpp"
#include "executor/common/sampling.hpp"
#include "sim/plan/plan.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {

struct MeasuredPoint {
  std::string name;
  std::vector<double> seconds;        // by sample
  executor::Spread spread;
  std::optional<double> flops;        // of one worker
  std::optional<std::int64_t> bytes;  // read and written, or moved
  nlohmann::ordered_json work;        // by instruction: "op", and what it works on
  nlohmann::ordered_json readings;    // of rank 0, by name: a list, one a sample: "clock_mhz", "power_w", "throttle_reasons"
  trace::Recording recording;         // all samples of all workers, one behind the other
};

// Points that all workers have ended, in the plan's order, from the records that exist so far.
std::vector<MeasuredPoint> measured_points(const plan::Plan& plan, const std::vector<executor::Records>& records);

struct PointLeftOut {
  std::string name;
  std::string reason;
};
// What the device could not compute.
std::vector<PointLeftOut> left_out(const executor::Records& records);

// What tells points of different machines and set-ups apart, and lets a later call skip what is known.
std::string point_key(const std::string& backend, const std::string& machine, std::int32_t workers, const std::string& name);

trace::Run stored_point(const MeasuredPoint& point, const std::string& key, const executor::Records& first, const std::string& created);

}  // namespace stepcast::app
