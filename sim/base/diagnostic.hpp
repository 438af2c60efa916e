// sim/base/diagnostic.hpp — errors that are the user's to mend: one clear text, exit status 2.
//
//   configs/a.yaml:14:16: error: cluster.fabrc: unknown key
//     expected: one of fabric, node, nodes
//     got:      a mapping
//     hint:     did you mean 'fabric'?
//
// Readers collect every diagnostic they can, then throw one UserError. Rendering sorts by file and
// position and shows the first 20. Our own broken invariants are SIM_CHECK (check.hpp), never this.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <vector>

namespace stepcast {

// 1-based position in a file the user gave; line 0 means "the file as a whole".
struct SourcePosition {
  std::string file;
  int line = 0;
  int column = 0;
};

struct Diagnostic {
  SourcePosition where;
  std::string path;      // dotted key path, e.g. network.links[1].bandwidth; may be empty
  std::string problem;   // what is wrong, one clause
  std::string expected;  // optional
  std::string got;       // optional
  std::string hint;      // optional
};

// Sorted by file, line, column, path; `limit` shown, then "and N more".
std::string render(std::span<const Diagnostic> diagnostics, std::size_t limit = 20);

class UserError : public std::exception {
 public:
  explicit UserError(Diagnostic diagnostic);
  explicit UserError(std::vector<Diagnostic> diagnostics);
  // For errors without a file: the command line, a missing program.
  explicit UserError(const std::string& problem);

  [[nodiscard]] std::span<const Diagnostic> diagnostics() const { return diagnostics_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { list_.push_back(std::move(diagnostic)); }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::span<const Diagnostic> list() const { return list_; }
  // Throws UserError with everything collected so far, if anything.
  void throw_if_any();

 private:
  std::vector<Diagnostic> list_;
};

}  // namespace stepcast
