#include "app/scenario/data_files.hpp"

#include <fmt/format.h>

#include "sim/base/file.hpp"

namespace stepcast::app {

std::filesystem::path own_executable() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw SystemError(fmt::format("/proc/self/exe: {}", error.message()));
  return path;
}

DataFiles find_data_files(const std::filesystem::path& executable) {
  const std::filesystem::path bin = executable.parent_path();
  std::error_code ignored;
  const std::filesystem::path installed = bin.parent_path() / "share" / "stepcast";
  if (std::filesystem::is_directory(installed / "topologies", ignored)) return {installed};
  for (std::filesystem::path up = bin; up != up.parent_path(); up = up.parent_path()) {
    if (std::filesystem::is_regular_file(up / "topologies" / "CMakeLists.txt", ignored)) return {up};
  }
  throw SystemError(fmt::format("the catalogue is missing: expected {} or a checkout around {}",
                                installed.string(), bin.string()));
}

}  // namespace stepcast::app
