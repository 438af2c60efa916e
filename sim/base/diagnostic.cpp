#include "sim/base/diagnostic.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/plain_text.hpp"

namespace stepcast {
namespace {

// Bytes of a path or of what a file holds: a terminal is to be shown neither control characters nor a whole file.
constexpr std::size_t kMostQuoted = 1000;
constexpr std::size_t kMostSaid = 4000;  // refusals may list a catalogue

std::string render_one(const Diagnostic& d) {
  std::string text;
  if (!d.where.file.empty()) {
    text += quotable(d.where.file, kMostSaid);
    text += d.where.line > 0 ? ':' + std::to_string(d.where.line) + ':' + std::to_string(d.where.column) + ": " : ": ";
  }
  text += "error: ";
  if (!d.path.empty()) text += quotable(d.path, kMostQuoted) + ": ";
  text += quotable(d.problem, kMostSaid);
  if (!d.expected.empty()) text += "\n  expected: " + quotable(d.expected, kMostSaid);
  if (!d.got.empty()) text += "\n  got:      " + quotable(d.got, kMostQuoted);
  if (!d.hint.empty()) text += "\n  hint:     " + quotable(d.hint, kMostSaid);
  return text;
}

}  // namespace

std::string render(std::span<const Diagnostic> diagnostics, std::size_t limit) {
  std::vector<Diagnostic> sorted(diagnostics.begin(), diagnostics.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.file, a.where.line, a.where.column, a.path) <
           std::tie(b.where.file, b.where.line, b.where.column, b.path);
  });
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < limit; ++i) {
    if (i > 0) text += '\n';
    text += render_one(sorted[i]);
  }
  if (sorted.size() > limit) text += "\nand " + std::to_string(sorted.size() - limit) + " more";
  return text;
}

UserError::UserError(Diagnostic diagnostic) : diagnostics_{std::move(diagnostic)} {
  text_ = render(diagnostics_);
}

UserError::UserError(std::vector<Diagnostic> diagnostics) : diagnostics_{std::move(diagnostics)} {
  text_ = render(diagnostics_);
}

UserError::UserError(const std::string& problem)
    : UserError(Diagnostic{.problem = problem}) {}

void Diagnostics::throw_if_any() {
  if (!list_.empty()) throw UserError(std::exchange(list_, {}));
}

}  // namespace stepcast
