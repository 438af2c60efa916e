// sim/trace/store.hpp — runs, simulated and measured, in one SQLite file. The only user of SQLite.
//
// A run is appended in one transaction: readers see all of it or nothing, and a program that is
// killed midway leaves the file as it was (write-ahead log). Several programs may append at once;
// each waits its turn up to a limit.
//
// Errors: UserError for a file that is no database, belongs to another program, comes from a newer
// stepcast or cannot be opened; SystemError when it stays locked or the disk refuses.
// Tables: docs/guide/database.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/record.hpp"

namespace stepcast::trace {

inline constexpr int kStoreVersion = 1;

using RunId = Id<struct RunTag, std::int64_t>;

struct Metric {
  std::string key;              // "step_time"
  std::optional<double> value;  // empty: not determined
  std::string unit;             // "s"
  friend bool operator==(const Metric&, const Metric&) = default;
};

struct BreakdownPart {
  std::string part;             // "exposed_dp"
  Duration time;
  friend bool operator==(const BreakdownPart&, const BreakdownPart&) = default;
};

// Peak memory of one worker and category.
struct MemoryPart {
  RankId worker;
  std::string memory;           // "device"
  std::string category;         // "activations"
  std::int64_t bytes = 0;
  friend bool operator==(const MemoryPart&, const MemoryPart&) = default;
};

struct Run {
  std::string name;
  std::string origin;           // "simulated" or "measured"
  std::string scenario;         // the effective scenario's text
  std::string version;          // of the program
  std::uint64_t seed = 0;
  std::string created;          // UTC, "2026-11-29T18:00:00Z", from the caller
  std::string results;          // JSON
  std::vector<Metric> metrics;
  std::vector<BreakdownPart> breakdown;
  std::vector<MemoryPart> memory;
  Recording recording;          // may be empty; its name and origin are the run's
};

struct RunSummary {
  RunId id;
  std::string name;
  std::string origin;
  std::string scenario_hash;
  std::string version;
  std::uint64_t seed = 0;
  std::string created;
};

// Fills the next span; false when there is none. For recordings too large to hold twice.
using SpanSource = std::function<bool(Span&)>;

// 16 hexadecimal digits; equal texts have equal hashes on every machine.
std::string scenario_hash(const std::string& text);

class Store {
 public:
  enum class Mode : std::uint8_t { kRead, kAppend };  // kAppend creates the file and the tables
  explicit Store(const std::string& path, Mode mode, std::chrono::milliseconds patience = std::chrono::seconds{10});
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  RunId append(const Run& run);

  // Of a file: results hold its fingerprint under "fingerprint". Where a run with the same one is there already nothing is written.
  // The spans of `more` follow those of the recording.
  struct Appended {
    RunId id;
    bool added = false;
  };
  Appended append_file(const Run& run, const std::string& fingerprint, const SpanSource& more = {});

  [[nodiscard]] std::vector<RunSummary> runs() const;  // oldest first
  // Throws UserError when there is no such run.
  [[nodiscard]] Run load(RunId run) const;             // everything but the recording's spans and counters
  [[nodiscard]] Recording load_recording(RunId run) const;

 private:
  class Database;
  std::unique_ptr<Database> database_;
};

// Opens, appends, closes.
RunId append_run(const std::string& path, const Run& run);

}  // namespace stepcast::trace
