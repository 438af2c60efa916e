// executor/common/record_file.hpp — what a worker measured, in a file that survives a crash at any byte.
// Form: docs/guide/record_format.md. Blocks of lines, each closed by a line with their number and a checksum and written by one
// call: a reader takes the blocks that are whole, and says what it left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/common/device.hpp"

namespace stepcast::executor {

inline constexpr int kRecordFileVersion = 1;

struct InstructionTime {
  std::uint32_t instruction = 0;  // index in the program
  Interval time;                  // from the step's begin [ns]
  friend bool operator==(const InstructionTime&, const InstructionTime&) = default;
};

struct StepRecord {
  std::uint32_t step = 0;
  Interval time;                  // on the clock that all workers of a host share [ns]
  std::vector<InstructionTime> instructions;
  std::vector<std::pair<std::string, double>> values{};  // "loss"
  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

struct Records {
  std::vector<std::pair<std::string, std::string>> facts;  // "rank", "3"; "cpu", "..."; "plan", its hash
  std::vector<StepRecord> steps;
  std::size_t bytes_left_out = 0;  // behind the last whole block
  // Empty when the fact is not there.
  [[nodiscard]] std::string fact(std::string_view key) const;
};

class RecordWriter {
 public:
  // Begins a new file. Throws SystemError.
  explicit RecordWriter(const std::string& path);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // One block each, on the disk's way when the call returns. Throw SystemError when the disk refuses.
  void facts(const std::vector<std::pair<std::string, std::string>>& facts);
  void step(const StepRecord& step) { steps({&step, 1}); }
  void steps(std::span<const StepRecord> steps);

 private:
  void block(std::string_view lines, std::size_t count);
  std::string path_;
  int file_ = -1;
};

// Throws UserError when the file is missing or no record file of a version known here.
Records read_records(const std::string& path);
Records parse_records(std::string_view text, const std::string& path);

}  // namespace stepcast::executor
