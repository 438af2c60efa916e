// sim/base/file.hpp — whole files in and out. Writing goes aside and is renamed into place, so a
// reader or a crash never sees half a file.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace stepcast {

// Throws UserError when the file is missing, a directory or unreadable.
std::string read_file(const std::string& path);

// "-" writes to standard output. Throws SystemError when the disk refuses.
void write_file(const std::string& path, std::string_view content);

// The machine failed, not the user's input: exit status 3.
class SystemError : public std::exception {
 public:
  explicit SystemError(std::string text) : text_{std::move(text)} {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

}  // namespace stepcast
