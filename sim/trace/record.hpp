// sim/trace/record.hpp — one record schema for simulated and measured runs. Simulator and executor
// write it; the SQLite store, the Perfetto writer and `validate` read it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/time.hpp"

namespace stepcast::trace {

// One slice on one stream of one worker. Slices on a (worker, stream) never overlap.
struct Span {
  RankId worker;
  std::uint8_t stream = 0;             // index into Recording::streams
  TimePoint start;
  Duration duration;
  std::string name;                    // "attention.qkv forward"
  std::string category;                // stage word: forward, backward, optimizer, ...
  std::optional<std::uint16_t> layer;
  std::optional<std::uint16_t> micro_batch;
  std::optional<std::int64_t> bytes;   // moved by a collective, message or copy
  std::optional<double> flops;
};

// A step function of time, e.g. device memory of a worker or load of a link.
struct Counter {
  std::string name;                    // "device memory (GiB)"
  std::string unit;
  std::optional<RankId> worker;        // empty: belongs to the cluster (links)
  struct Sample {
    TimePoint time;
    double value = 0.0;
  };
  std::vector<Sample> samples;         // sorted by time
};

struct Recording {
  std::string name;                    // of the run
  std::string origin;                  // "simulated" or "measured"
  std::vector<std::string> streams;    // names by stream index, shared by all workers
  std::map<RankId, std::string> workers;  // recorded workers: label, e.g. "rank 0 (dp 0, pp 0, tp 0)"
  std::vector<Span> spans;
  std::vector<Counter> counters;
};

}  // namespace stepcast::trace
