// app/scenario/data_files.hpp — where the catalogue, profiles and example scenarios lie, relative to the
// executable: share/stepcast beside an installed bin/, or the checkout around a build tree. So an
// installed tree can be moved anywhere, and no path of the build machine ends up in the binary.
#pragma once

#include <filesystem>

namespace stepcast::app {

struct DataFiles {
  std::filesystem::path root;  // holds topologies/, calibration/profiles/, configs/

  [[nodiscard]] std::filesystem::path topologies() const { return root / "topologies"; }
  [[nodiscard]] std::filesystem::path profiles() const { return root / "calibration" / "profiles"; }
  [[nodiscard]] std::filesystem::path configs() const { return root / "configs"; }
};

// Throws SystemError when neither place holds the data.
DataFiles find_data_files(const std::filesystem::path& executable);
// The file that this process runs.
std::filesystem::path own_executable();

}  // namespace stepcast::app
