#include <doctest/doctest.h>

#include "sim/base/diagnostic.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

namespace {
Diagnostic at_line(int line) {
  return {.where = {"a.yaml", line, 3}, .path = "x.y", .problem = "unknown key"};
}
}  // namespace

TEST_CASE("diagnostic: position, path, expected, got, hint") {
  Diagnostic d = at_line(14);
  d.expected = "one of a, b";
  d.got = "6";
  d.hint = "did you mean 'a'?";
  CHECK(std::string{UserError{d}.what()} ==
        "a.yaml:14:3: error: x.y: unknown key\n"
        "  expected: one of a, b\n"
        "  got:      6\n"
        "  hint:     did you mean 'a'?");
}

TEST_CASE("diagnostic: sorted by position, 20 shown, the rest counted") {
  std::vector<Diagnostic> many;
  for (int line = 25; line >= 1; --line) many.push_back(at_line(line));
  const std::string text = render(many);
  CHECK(text.starts_with("a.yaml:1:3:"));
  CHECK(text.find("a.yaml:21:3") == std::string::npos);
  CHECK(text.ends_with("and 5 more"));
}

TEST_SUITE_END();
