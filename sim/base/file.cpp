#include "sim/base/file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"

namespace stepcast {

std::string read_file(const std::string& path) {
  const auto refuse = [&](const std::string& problem) {
    return UserError(Diagnostic{.where = {path, 0, 0}, .problem = problem});
  };
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw refuse("no such file");
  if (std::filesystem::is_directory(path, error)) throw refuse("is a directory, not a file");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  return std::move(text).str();
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size()) {
      throw SystemError("cannot write to standard output");
    }
    return;
  }
  const std::string aside = fmt::format("{}.{}.part", path, ::getpid());
  {
    std::ofstream out(aside, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.flush();
    if (!out) {
      const int reason = errno;
      std::remove(aside.c_str());
      throw SystemError(fmt::format("{}: cannot be written: {}", path, std::strerror(reason)));
    }
  }
  std::error_code error;
  std::filesystem::rename(aside, path, error);
  if (error) {
    std::remove(aside.c_str());
    throw SystemError(fmt::format("{}: cannot be written: {}", path, error.message()));
  }
}

}  // namespace stepcast
