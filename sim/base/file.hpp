// sim/base/file.hpp — whole files in and out. Writing goes aside and is renamed into place, so a
// reader or a crash never sees half a file.
#pragma once

#include <cstddef>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace stepcast {

// Far above any table or model description; a device or a wrong file ends here, not in all of the memory.
inline constexpr std::size_t kMostBytesRead = std::size_t{64} << 20U;

// Throws UserError when the file is missing, a directory, unreadable or larger than `most` bytes.
std::string read_file(const std::string& path, std::size_t most = kMostBytesRead);

// "-" writes to standard output. Throws SystemError when the disk refuses.
void write_file(const std::string& path, std::string_view content);

// A file that appears whole or not at all. A device or a pipe is written in place, a link's target is replaced
// and the link stays. Every call throws SystemError when the disk refuses.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // without commit(): nothing is left behind
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::string_view piece);
  void commit();

 private:
  [[noreturn]] void refuse(int reason) const;

  std::string path_;    // as the user wrote it
  std::string target_;  // what path_ leads to
  std::string aside_;   // empty: written in place
  std::ofstream out_;
};

// The machine failed, not the user's input: exit status 3.
class SystemError : public std::exception {
 public:
  explicit SystemError(std::string text) : text_{std::move(text)} {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace stepcast
