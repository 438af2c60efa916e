// app/measure/worker_launch.hpp — how worker programs are found and started: `run` and `measure`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/measure/child_process.hpp"

namespace stepcast::app {

// The worker program beside this one. Throws UserError for an unknown backend, or where it is not built.
std::string worker_of(const std::string& backend);

// `--launcher`'s words, or mpirun's, then `-n workers`, the worker and its arguments.
ChildCall worker_call(const Invocation& invocation, std::int32_t workers, const std::string& worker, const std::vector<std::string>& arguments);

// A folder for plans and records: the one asked for, or a temporary one that goes away unless it is kept.
class RecordFolder {
 public:
  explicit RecordFolder(const std::optional<std::string>& wanted);
  ~RecordFolder();
  RecordFolder(const RecordFolder&) = delete;
  RecordFolder& operator=(const RecordFolder&) = delete;
  void keep() { keep_ = true; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  bool keep_;
  std::filesystem::path path_;
};

// An option's whole number. Throws UserError below `least`.
std::int64_t at_least(const Invocation& invocation, const char* option, std::int64_t usual, std::int64_t least);

}  // namespace stepcast::app
