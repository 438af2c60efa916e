#include <doctest/doctest.h>

#include "sim/base/name_ranges.hpp"

namespace stepcast {

using Names = std::vector<std::string>;

TEST_SUITE_BEGIN("unit");

TEST_CASE("names: ranges expand as in a host list") {
  CHECK(expand_names("tux").names == Names{"tux"});
  CHECK(expand_names("tux[0-2,12]").names == Names{"tux0", "tux1", "tux2", "tux12"});
  CHECK(expand_names("node[08-10]").names == Names{"node08", "node09", "node10"});
  CHECK(expand_names("a,b[1-2]x").names == Names{"a", "b1x", "b2x"});
  CHECK(expand_names("r[0-1]n[0-1]").names == Names{"r0n0", "r0n1", "r1n0", "r1n1"});
}

TEST_CASE("names: a broken list says where") {
  const auto problem = [](std::string_view text) {
    const NameList list = expand_names(text, 100);
    REQUIRE(list.error);
    CHECK(list.names.empty());
    return std::to_string(list.error->offset) + " " + list.error->problem;
  };
  CHECK(problem("") == "0 a name is missing");
  CHECK(problem("a,") == "2 a name is missing after the comma");
  CHECK(problem("a[1-") == "4 a number is expected in brackets");
  CHECK(problem("a[1") == "1 '[' without ']'");
  CHECK(problem("a]") == "1 ']' without '['");
  CHECK(problem("a[3-1]") == "3 the range 3-1 goes down");
  CHECK(problem("a[0-100]") == "3 more than 100 names");
  CHECK(problem("a[0-9]b[0-10]") == "0 more than 100 names");
  CHECK(problem("a[1-99999999999999999999]") == "4 a number is expected in brackets");
}

TEST_CASE("names: neighbours join into ranges that expand to the same") {
  const Names names{"tux8", "tux9", "tux10", "a1b1", "a1b2", "x", "n09", "n10"};
  CHECK(compress_names(names) == "tux[8-10],a1b[1-2],x,n[09-10]");
  CHECK(expand_names(compress_names(names)).names == names);
}

TEST_SUITE_END();

}  // namespace stepcast
