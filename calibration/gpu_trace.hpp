// calibration/gpu_trace.hpp — what GPUs did and when, whichever profiler wrote it: events in one form, small enough to hold a million.
//
// Form     Times in nanoseconds from the first event. A worker is a GPU of a process; streams are numbered as CUDA does, named here.
//          A collective's time includes waiting for the slowest rank, as its kernel does.
// Derived  steps; time and count by kind of work; collectives by size; and of launches, by correlation id:
//            call       duration of the launching call on the host
//            latency    start on the GPU minus start of the call, where the stream had been idle since before the call
//            gap        start minus the end before it on the stream, where the call had ended before that end: the host was ahead
// Ignores  host operators, Python stacks, memory events, counters
// Tests    unit/gpu_trace_test
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calibration/kernel_names.hpp"
#include "sim/trace/record.hpp"

namespace stepcast::calibration {

struct GpuEvent {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t launch = 0;            // key of the call that launched it; 0: none
  std::optional<std::int64_t> bytes;
  std::uint32_t name = 0;              // index into GpuTrace::names
  std::uint32_t worker = 0;
  std::uint8_t stream = 0;             // index into GpuTrace::streams
  GpuWork work = GpuWork::kOther;
};

struct LaunchCall {
  std::uint64_t launch = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
};

struct LaunchTimes {
  std::size_t calls = 0;
  std::optional<double> call_s;        // medians
  std::optional<double> latency_s;
  std::optional<double> gap_s;
};

// Equal collectives of a trace.
struct CollectiveKey {
  std::string collective;
  std::string dtype;                   // as the profiler writes it; may be empty
  std::string algorithm;
  std::string protocol;
  std::int64_t ranks = 0;              // 0: not told
  std::int64_t bytes = -1;             // -1: not told
  friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
};

struct WorkSum {
  std::size_t count = 0;
  std::int64_t time_ns = 0;
};

struct GpuTrace {
  std::string tool;                                // "PyTorch profiler", "Nsight Systems"
  std::vector<std::pair<std::string, std::string>> facts;  // "export schema" -> "3.25.0"
  std::vector<std::string> gpus;                   // distinct names
  std::map<std::uint32_t, std::string> workers;    // label
  std::vector<std::string> streams;
  std::vector<std::string> names;
  std::vector<GpuEvent> events;                    // by worker, stream, start
  std::map<CollectiveKey, std::vector<std::int64_t>> collectives;  // durations [ns]
  LaunchTimes launches;
  std::map<std::string, std::size_t> skipped;      // reason -> count
  std::vector<std::string> notes;
  std::string fingerprint;                         // of the file

  [[nodiscard]] std::map<GpuWork, WorkSum> sums() const;
  [[nodiscard]] std::string skipped_text() const;  // "2 negative duration, 1 ..."
  [[nodiscard]] std::vector<GpuEvent> steps() const;
  [[nodiscard]] std::int64_t end_ns() const;
  [[nodiscard]] trace::Span span(const GpuEvent& event) const;
};

// What importers fill, in any order.
class GpuTraceBuilder {
 public:
  GpuTrace trace;                                  // tool, facts, gpus, workers, notes

  void skip(std::string_view reason, std::size_t count = 1);
  std::uint32_t name(std::string_view text);       // made printable, and kept once
  std::uint8_t stream(const std::string& name);
  // Start in the profiler's own time. Negative durations are skipped.
  void add(const GpuEvent& event);
  void add_collective(const CollectiveKey& key, std::int64_t duration_ns) { collectives_[key].push_back(duration_ns); }
  void add_launch(const LaunchCall& call) { launches_.push_back(call); }
  [[nodiscard]] std::size_t size() const { return trace.events.size(); }

  // Sorted, from time 0 on. Events far from the others (a clock that was not set) are skipped.
  GpuTrace finish();

 private:
  std::unordered_map<std::string, std::uint32_t> known_names_;
  std::unordered_map<std::string, std::uint8_t> known_streams_;
  std::unordered_map<std::string, std::size_t> skipped_;
  std::map<CollectiveKey, std::vector<std::int64_t>> collectives_;
  std::vector<LaunchCall> launches_;
};

}  // namespace stepcast::calibration
