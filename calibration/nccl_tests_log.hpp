// calibration/nccl_tests_log.hpp — what nccl-tests (and rccl-tests) printed, read back from the logs that
// people keep: with launcher labels, library chatter, several runs in a file, cut off, or rows alone.
//
// Form     A row is `size count type [redop] [root]`, then per placement (out of place, in place) time, algbw,
//          busbw and what validation found. Fields are told apart by white space and by what they are, never
//          by column: wide numbers run over, cells stay empty (old alltoall's redop), marks go missing.
//          Version 1.0 prints milliseconds and no row of units; a header with i_min.. adds columns a block.
// Source   NVIDIA/nccl-tests src/common.cu and src/*.cu, versions 1.0 to 2.18; doc/PERFORMANCE.md
//          The JSON form (-J): nccl_tests_json.hpp. rccl-tests may add the algorithm, the protocol and the channels of a call.
// Ignores  which rows are outliers; the average line
// Tests    unit/nccl_tests_log_test (samples of every variant), and shared logs against their golden table
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::calibration {

// One placement, as printed: "N/A" stays "N/A".
struct NcclTiming {
  std::string time;
  std::string algbw;   // GB/s, 1 GB = 1e9 B
  std::string busbw;
  std::string wrong;   // wrong elements, or (before 2.13) the largest error
};

enum class TimeUnit : std::uint8_t { kMicroseconds, kMilliseconds };

struct NcclRow {
  std::size_t run = 0;      // index into NcclLog::runs
  int line = 0;             // 1-based
  std::int64_t size = 0;    // [B], as nccl-tests defines it for the collective
  std::int64_t count = 0;   // elements
  std::string dtype;
  std::string redop;        // empty: the column is missing, or its cell
  std::string root;
  NcclTiming out_of_place;
  std::optional<NcclTiming> in_place;
  TimeUnit unit = TimeUnit::kMicroseconds;

  // Empty for "N/A".
  [[nodiscard]] std::optional<double> seconds() const;
};

struct NcclDevice {
  std::int64_t rank = 0;
  std::string host;
  std::string name;         // empty: the line does not tell
};

struct NcclRun {
  std::string command;             // the line that started it, if it is there
  std::string options;             // "nThread 1 nGpus 1 minBytes 8 ..."
  std::string collective;          // all_reduce, all_gather, ...; empty: the log does not tell
  std::vector<NcclDevice> devices;
};

struct NcclRemark {
  int line = 0;
  std::string text;                // why the line was not taken
};

struct NcclLog {
  std::string tests_version;       // of nccl-tests; empty: before 2.17.4
  std::string nccl_version;
  std::vector<NcclRun> runs;       // at least one
  std::vector<NcclRow> rows;
  std::vector<NcclRemark> remarks; // lines that look like rows and are none
};

// Throws UserError when there is no row in it.
NcclLog read_nccl_log(std::string_view text, const std::string& file);

// Ranks of a run: by its device lines, else by busbw over algbw of its largest rows (`by_ratio`).
struct NcclRanks {
  std::int64_t ranks = 0;
  bool by_ratio = false;
};
std::optional<NcclRanks> ranks_of(const NcclLog& log, std::size_t run);

}  // namespace stepcast::calibration
