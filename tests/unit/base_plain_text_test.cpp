// What a person can read: of a file before it is taken for text, and of what errors quote from it.
#include <doctest/doctest.h>

#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"

using namespace stepcast;
using namespace std::string_literals;

TEST_SUITE_BEGIN("unit");

TEST_CASE("plain text: other forms are known by their first bytes, each with what would make it text") {
  CHECK(other_form("\x1f\x8b\x08"s)->problem == "is compressed");
  CHECK(other_form("\x1f\x8b\x08"s)->hint == "gunzip it first");
  CHECK(other_form("\xff\xfe"s + "a\0"s)->hint == "iconv -f UTF-16 -t UTF-8");
  CHECK(other_form("PK\x03\x04"s)->problem == "is an archive or a workbook, not a text file");
  CHECK_FALSE(other_form("row_id,gpu\n"));
  CHECK_FALSE(other_form("\xef\xbb\xbfrow_id,gpu\n"s));
  CHECK_FALSE(other_form(""));
}

TEST_CASE("plain text: a zero byte is in no text, letters of other alphabets and of Latin 1 are") {
  CHECK_THROWS_WITH_AS(expect_text("a,b\n1,\0"s, "t.csv", "CSV"), doctest::Contains("t.csv: error: is not a text file\n  expected: CSV"), UserError);
  CHECK_NOTHROW(expect_text("gr\xc3\xb6\xc3\x9f" "e,\xe4\n"s, "t.csv", "CSV"));
}

TEST_CASE("plain text: errors quote no control characters, no halves of characters and not whole files") {
  CHECK(quotable("\x1b[31mred\a\r\x9b"s, 100) == "?[31mred???");
  CHECK(quotable("\xc2\x9b" "31m"s, 100) == "?31m");  // the control sequence introducer as one character of UTF-8
  CHECK(quotable("a\tb\nc", 100) == "a\tb\nc");
  CHECK(quotable("\xc3\xb6", 100) == "\xc3\xb6");
  CHECK(quotable("abc\xc3\xb6", 4) == "abc ...");
  CHECK(quotable(std::string(5000, 'x'), 10) == "xxxxxxxxxx ...");
  const std::string shown = UserError{Diagnostic{.where = {"a\x1b.csv", 1, 1}, .problem = "unknown '\x07'", .got = std::string(1U << 20U, '\x01')}}.what();
  CHECK(shown.size() < 2000);
  CHECK(shown.starts_with("a?.csv:1:1: error: unknown '?'\n  got:      ????"));
}

TEST_CASE("plain text: lengths of UTF-8") {
  CHECK(utf8_length("a", 0) == 1);
  CHECK(utf8_length("\xe2\x82\xac", 0) == 3);
  CHECK(utf8_length("\xe2\x82", 0) == 0);
  CHECK(utf8_length("\xc0\x80"s, 0) == 0);      // overlong
  CHECK(utf8_length("\xed\xa0\x80"s, 0) == 0);  // a surrogate
  CHECK(utf8_length("\xf0\x9f\x98\x80"s, 0) == 4);
}

TEST_SUITE_END();
