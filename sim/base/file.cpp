#include "sim/base/file.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "sim/base/diagnostic.hpp"

namespace stepcast {

namespace fs = std::filesystem;

std::string read_file(const std::string& path, std::size_t most) {
  const auto refuse = [&](const std::string& problem, const std::string& expected = {}) {
    return UserError(Diagnostic{.where = {path, 0, 0}, .problem = problem, .expected = expected});
  };
  std::error_code error;
  if (!fs::exists(path, error)) throw refuse("no such file");
  if (fs::is_directory(path, error)) throw refuse("is a directory, not a file");
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> piece{};
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most) throw refuse("too large", "at most " + std::to_string(most) + " bytes");
  } while (in);
  if (!in.eof()) throw refuse(std::string{"cannot be read: "} + std::strerror(errno));
  return text;
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size()) {
      throw SystemError("cannot write to standard output");
    }
    return;
  }
  OutputFile file{path};
  file.write(content);
  file.commit();
}

OutputFile::OutputFile(const std::string& path) : path_{path}, target_{path} {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::is_directory(there)) refuse(EISDIR);
  if (fs::is_symlink(fs::symlink_status(path, error)) && fs::exists(there)) target_ = fs::canonical(path, error).string();
  // Renaming onto a device would put a plain file in its place.
  if (!fs::exists(there) || fs::is_regular_file(there)) aside_ = target_ + '.' + std::to_string(::getpid()) + ".part";
  out_.open(aside_.empty() ? target_ : aside_, std::ios::binary);
  if (!out_) refuse(errno);
}

OutputFile::~OutputFile() {
  out_.close();
  if (!aside_.empty()) std::remove(aside_.c_str());
}

void OutputFile::write(std::string_view piece) {
  out_.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  if (!out_) refuse(errno);
}

void OutputFile::commit() {
  out_.flush();
  if (!out_) refuse(errno);
  if (aside_.empty()) return;
  if (std::rename(aside_.c_str(), target_.c_str()) != 0) refuse(errno);
  aside_.clear();
}

void OutputFile::refuse(int reason) const {
  // Thrown from the constructor too, where no destructor runs.
  if (!aside_.empty()) std::remove(aside_.c_str());
  throw SystemError(path_ + ": cannot be written: " + std::strerror(reason));
}

}  // namespace stepcast
