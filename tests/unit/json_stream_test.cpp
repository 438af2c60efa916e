// JSON read front to back: what is asked for, what is skipped, and what files of profilers hold beside JSON.
#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <vector>

#include "calibration/json_stream.hpp"
#include "sim/base/diagnostic.hpp"
#include "tests/support/program.hpp"

using stepcast::UserError;
using stepcast::calibration::ByteStream;
using stepcast::calibration::JsonCut;
using stepcast::calibration::JsonStream;
using stepcast::calibration::printable;
using stepcast::calibration::scaled_integer;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("calibration");

namespace {

template <class Read>
void reading(const std::string& text, Read read) {
  const TemporaryDirectory place;
  const std::string path = (place.path() / "a.json").string();
  std::ofstream(path, std::ios::binary) << text;
  ByteStream bytes{path};
  JsonStream json{bytes};
  read(json);
}

std::string string_of(const std::string& text) {
  std::string result;
  reading(text, [&](JsonStream& json) { result = std::string{json.scalar().text}; });
  return result;
}

}  // namespace

TEST_CASE("json stream: members that are known are read, others skipped whatever they hold") {
  std::vector<std::string> seen;
  std::int64_t sum = 0;
  reading(R"( {"skip": {"a": ["}", {"b": "]\""}], "n": [NaN, -Infinity, inf, 1e9]}, "list": [1, 2, [3], 4 ], "name": "x" } trailing)", [&](JsonStream& json) {
    json.object([&](std::string_view key) {
      seen.emplace_back(key);
      if (key == "list") {
        json.array([&] { sum += scaled_integer(json.scalar().text, 0).value_or(100); });
      } else if (key == "name") {
        CHECK(json.scalar().text == "x");
      } else {
        json.skip();
      }
    });
  });
  CHECK(seen == std::vector<std::string>{"skip", "list", "name"});
  CHECK(sum == 1 + 2 + 100 + 4);  // [3] is no number
}

// A string across the reader's buffer (256 KiB) with escapes right there.
TEST_CASE("json stream: strings and escapes, also across the buffer") {
  CHECK(string_of(R"("a\"b\\\/\n\u00e9\ud83d\ude00")") == "a\"b\\/\n\u00e9\U0001F600");
  CHECK(string_of(R"("\ud83dx\ude00")") == "?x?");
  CHECK(string_of(R"("C:\Users")") == "C:Users");  // an escape that nobody meant
  for (const std::size_t pad : {262140U, 262141U, 262142U, 262143U, 262144U}) {
    const std::string body(pad, 'x');
    CHECK(string_of("\"" + body + "\\u0041\\nz\"") == body + "A\nz");
    CHECK(string_of(std::string(pad, ' ') + "12345.678") == "12345.678");
  }
}

TEST_CASE("json stream: ends and errors are told apart") {
  for (const char* text : {"{", "{\"a\"", "{\"a\":", "[1,", "[\"x", "[{\"a\": 1}", "\"\\u12"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(reading(text, [](JsonStream& json) {
                      if (json.peek() == JsonStream::Kind::kArray) return json.array([&] { json.skip(); });
                      if (json.peek() == JsonStream::Kind::kString) return static_cast<void>(json.scalar());
                      json.object([&](std::string_view) { json.skip(); });
                    }),
                    JsonCut);
  }
  for (const char* text : {"[1 2]", "{1: 2}", "{\"a\" 1}", "[,]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(reading(text, [](JsonStream& json) {
                      if (json.peek() == JsonStream::Kind::kArray) return json.array([&] { json.skip(); });
                      json.object([&](std::string_view) { json.skip(); });
                    }),
                    UserError);
  }
  // Deep nesting is counted, not recursed into.
  CHECK_NOTHROW(reading(std::string(3000000, '[') + std::string(3000000, ']'), [](JsonStream& json) { json.skip(); }));
}

TEST_CASE("json stream: decimal text to integers, exactly") {
  CHECK(scaled_integer("4458676524670.502", 3) == 4458676524670502);
  CHECK(scaled_integer("1661203462838206", 3) == 1661203462838206000);  // microseconds since 1970
  CHECK(scaled_integer("92.8045", 3) == 92805);
  CHECK(scaled_integer("92.80449999", 3) == 92804);
  CHECK(scaled_integer("-0.5", 3) == -500);
  CHECK(scaled_integer("1.5e3", 3) == 1500000);
  for (const char* text : {"", "-", "x", "1.2.3", "1e300", "99999999999999999999", "12a", "NaN", "--1"}) {
    CAPTURE(text);
    CHECK_FALSE(scaled_integer(text, 3).has_value());
  }
  CHECK(printable("a\nb\x01\xff\xc3\xa9") == "a b??\xc3\xa9");
}

TEST_SUITE_END();
