#include <doctest/doctest.h>

#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

TEST_CASE("csv: quotes, commas, line breaks and CR LF") {
  const CsvTable table = CsvTable::parse("\xEF\xBB\xBF" "a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n\r\n,2\n", "t.csv");
  CHECK(table.header() == std::vector<std::string>{"a", "b"});
  REQUIRE(table.rows().size() == 2);
  CHECK(table.rows()[0].fields == std::vector<std::string>{"1", "x, \"y\"\nz"});
  CHECK(table.rows()[1].fields == std::vector<std::string>{"", "2"});
  CHECK(table.rows()[1].line == 5);  // the quoted break and the blank line count
}

TEST_CASE("csv: wrong length, open quote, missing column, no header") {
  const auto error_of = [](const char* text) {
    try {
      const CsvTable table = CsvTable::parse(text, "t.csv");
      static_cast<void>(table.require_column("latency"));
      return std::string{};
    } catch (const UserError& error) {
      return std::string{error.what()};
    }
  };
  CHECK(error_of("a,b\n1\n").starts_with("t.csv:2:1: error: a row of another length than the header"));
  CHECK(error_of("a\n\"1\n").starts_with("t.csv:2:1: error: a quoted field is never closed"));
  CHECK(error_of("").starts_with("t.csv: error: empty"));
  CHECK(error_of("latncy\n").ends_with("hint:     is 'latncy' meant?"));
  CHECK(error_of("gpu;latency\n").starts_with("t.csv:1:1: error: fields are separated by semicolons or tabs"));
  CHECK(error_of("gpu\tlatency\n").find("save the sheet with commas") != std::string::npos);
  CHECK(error_of("gpu,latency\ra,1\rb,2\r").starts_with("t.csv:1:1: error: lines end in CR alone"));
  CHECK(error_of("latency\r").empty());
  CHECK(error_of("a,b,a\n1,2,3\n").starts_with("t.csv:1:1: error: two columns are called 'a'"));
  CHECK(error_of("latency,,\n1,,\n").empty());  // columns without a name
  CHECK(error_of("\x1f\x8b").find("hint:     gunzip it first") != std::string::npos);
}

TEST_CASE("csv: a field survives quoting") {
  for (const char* text : {"plain", "a,b", "say \"hi\"", "two\nlines", ""}) {
    CAPTURE(text);
    const CsvTable table = CsvTable::parse("h,k\n" + csv_field(text) + ",x\n", "t");
    CHECK(table.rows()[0].fields[0] == text);
  }
}

TEST_SUITE_END();
