#include "app/cli/outputs.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "sim/base/file.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {
namespace {

namespace fs = std::filesystem;

// The folders of a path that are not there yet, made; and gone again with this, the innermost first.
class MadeFolders {
 public:
  explicit MadeFolders(const fs::path& wanted) {
    std::error_code error;
    std::vector<fs::path> missing;
    for (fs::path folder = wanted; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path()) missing.push_back(folder);
    for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
      if (fs::create_directory(*folder, error)) made_.push_back(*folder);
      if (error) break;
    }
  }
  ~MadeFolders() {
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, ignored);  // only if empty
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

 private:
  std::vector<fs::path> made_;
};

void expect_writable(const std::string& path) {
  if (path == "-") return;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {  // a pipe: opening it would wait for its reader
    if (::access(path.c_str(), W_OK) != 0) throw SystemError(path + ": cannot be written: " + std::strerror(errno));
    return;
  }
  const fs::path folder = fs::path{path}.parent_path();
  if (!folder.empty() && !fs::exists(folder, error)) throw SystemError(folder.string() + ": no such folder");
  const OutputFile probe{path};
}

void expect_database(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) {
    const trace::Store store{path, trace::Store::Mode::kAppend};
  } else {
    expect_writable(path);
  }
}

}  // namespace

void expect_outputs(const Command& command, const Invocation& invocation) {
  for (const char* option : {"json", "trace", "csv", "svg", "into", "output"}) {
    if (command.options.find_nothrow(option, false) == nullptr) continue;
    const auto path = invocation.text(option);
    if (!path) continue;
    if (command.name == "calibrate" && path->ends_with('/')) {
      const MadeFolders folders{fs::path{*path}.parent_path()};
      expect_writable(*path + "profile.yaml");
    } else {
      expect_writable(*path);
    }
  }
  const bool appends = command.name != "calibrate" && command.name != "validate";
  if (const auto database = appends && command.options.find_nothrow("db", false) != nullptr ? invocation.text("db") : std::nullopt) expect_database(*database);
}

}  // namespace stepcast::app
