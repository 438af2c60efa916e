// app/forecast/forecast.hpp — a scenario's forecast: what was asked, what the simulation returned, and what
// people call the results. Everything printed or written is computed here, once.
//
// Symbols  T [s] step time; G [1] GPUs; W [FLOP] model FLOPs of a step by the chosen convention
//          (recompute not counted); P [FLOP/s] dense peak of the training precision
//          tokens/s = tokens / T;  TFLOP/s/GPU = W / T / G / 1e12;  MFU = W / (T G P)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/result.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::app {

// Correctly rounded, so that 100 ms is written 0.1.
constexpr double exact_seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e12; }

// How many of the figures that a forecast used rest on which kind of evidence.
struct Evidence {
  int measured = 0;
  int datasheet = 0;
  int published = 0;
  int assumed = 0;
  std::vector<std::string> assumed_names;  // "h100-sxm.kernel_gap"
};

// What one figure's deviation does to the step time (app/forecast/uncertainty.hpp).
struct Influence {
  std::string figure;       // "h100-sxm.memory_bandwidth", "profile h100.gemm.mma_efficiency"
  topology::Basis basis = topology::Basis::kAssumed;
  std::string value;        // as a file has it: "1.87 us"
  double plus_minus = 0.0;  // of the value [1]
  double step_s = 0.0;      // change of the step time, signed
};

struct Uncertainty {
  double step_s = 0.0;                // one standard deviation of the step time
  std::size_t figures = 0;            // looked at
  std::vector<Influence> influences;  // of those that matter, the largest change first
};

struct Forecast {
  scenario::Scenario scenario;             // effective: overrides applied
  plan::Plan plan;
  run::Result result;
  std::string model_title;                 // "llama3-8b, 8.03 B parameters"
  std::string cluster_title;               // "1 x dgx-h100 (8 x NVIDIA H100 SXM5 80 GB)"
  std::string transport;                   // what the network cards speak; empty: not worth saying
  double parameters = 0.0;                 // of the model
  double trained_parameters = 0.0;         // all, or those of adapters
  std::int64_t gpus = 0;
  FlopRate peak;                           // dense, of the training precision, one GPU
  Bytes device_memory;                     // of one GPU
  Evidence evidence;
  std::optional<Uncertainty> uncertainty;  // where it was asked for or is cheap
  std::optional<std::vector<std::string>> extrapolated;  // beyond what the profile was fitted on; none: it does not say
  std::vector<std::string> notes;          // what the models left out of this scenario
  double wall_s = 0.0;                     // of simulating
  std::int64_t peak_rss_bytes = 0;         // of this process

  [[nodiscard]] double step_time_s() const { return exact_seconds(result.step); }
  [[nodiscard]] double samples_per_s() const { return static_cast<double>(plan.work.samples) / step_time_s(); }
  [[nodiscard]] double tokens_per_s() const { return static_cast<double>(plan.work.tokens) / step_time_s(); }
  [[nodiscard]] double tokens_per_s_per_gpu() const { return tokens_per_s() / static_cast<double>(gpus); }
  [[nodiscard]] double tflops_per_gpu() const;
  [[nodiscard]] double mfu() const;
  // The worker that holds most. Requires: the plan has programs.
  [[nodiscard]] const run::MemoryPeak& worst_memory() const;
  [[nodiscard]] bool fits() const { return worst_memory().total <= device_memory; }
  [[nodiscard]] bool reads_input() const;  // the plan loads batches
};

// One part of the step as people read it. Waiting for the host is part of compute: the device would
// have been computing.
struct StepPart {
  const char* key;     // of the JSON: "exposed_tp"
  const char* title;   // "exposed tensor-parallel communication"
  Duration time;
  bool determined = true;
};
// In the order of the JSON keys; they add up to the step.
std::vector<StepPart> step_parts(const Forecast& forecast);

// One sentence: what the step is bound by, and what would help.
std::string bottleneck_sentence(const Forecast& forecast);

// "stage 3 of 16" and what it was doing when memory peaked.
std::string describe_peak(const Forecast& forecast, const run::MemoryPeak& peak);

// Results that nothing in the scenario or the models determines: "energy", "clock", ...
std::vector<std::string> undetermined(const Forecast& forecast);

}  // namespace stepcast::app
