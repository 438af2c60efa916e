// tests/support/source_tree.hpp — the repository's C++ files, for tests that read the source.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/source_dir.hpp"

namespace stepcast::test {

inline const std::vector<std::string> kSourceFolders{"sim",      "models",      "topologies", "executor",
                                                     "calibration", "app",       "bench",      "tests"};

// Paths relative to the repository, sorted.
inline std::vector<std::string> source_files() {
  std::vector<std::string> files;
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  for (const std::string& folder : kSourceFolders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".hpp" || extension == ".cpp" || extension == ".cu") {
        files.push_back(entry.path().lexically_relative(root).string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::string> lines_of(const std::string& relative_path) {
  std::ifstream in(std::filesystem::path{STEPCAST_SOURCE_DIR} / relative_path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace stepcast::test
