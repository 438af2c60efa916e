#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/base/file.hpp"
#include "sim/base/units.hpp"
#include "sim/trace/json_text.hpp"
#include "sim/trace/perfetto.hpp"
#include "tests/support/program.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::trace;

TEST_SUITE_BEGIN("unit");

namespace {

RankId worker(std::uint32_t value) { return RankId{value}; }

Recording small() {
  Recording r;
  r.name = "two workers";
  r.origin = "simulated";
  r.streams = {"compute", "dp"};
  r.workers = {{worker(0), "rank 0 (dp 0)"}, {worker(8), "rank 8 (dp 1)"}};
  r.spans.push_back({.worker = worker(8), .stream = 1, .start = TimePoint::at(1_us), .duration = 2_us,
                     .name = "grad \"all\"", .category = "gradient_sync", .bytes = 4'000'000});
  r.spans.push_back({.worker = worker(0), .stream = 0, .start = TimePoint::at(1234567_ps), .duration = 500000_ps,
                     .name = "qkv", .category = "forward", .layer = std::uint16_t{3},
                     .micro_batch = std::uint16_t{1}, .flops = 1e9});
  r.counters.push_back({.name = "device memory", .unit = "GiB", .worker = worker(0),
                        .samples = {{TimePoint{}, 1.5}, {TimePoint::at(2_us), 2.0}}});
  r.counters.push_back({.name = "leaf 0 up", .unit = "Gb/s", .worker = {}, .samples = {{TimePoint{}, 0.1}}});
  return r;
}

}  // namespace

TEST_CASE("perfetto: times are exact decimals of picoseconds") {
  const auto text = [](std::int64_t ps) {
    std::string out;
    append_microseconds(out, ps);
    return out;
  };
  CHECK(text(0) == "0.000000");
  CHECK(text(1) == "0.000001");
  CHECK(text(1'000'000) == "1.000000");
  CHECK(text(-1'500'000) == "-1.500000");
  CHECK(text(INT64_MAX) == "9223372036854.775807");
  CHECK(text(INT64_MIN) == "-9223372036854.775808");
}

TEST_CASE("perfetto: text is escaped and always valid UTF-8") {
  const auto text = [](std::string_view in) {
    std::string out;
    append_json_string(out, in);
    return out;
  };
  CHECK(text("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  CHECK(text("\xc3\xa9") == "\"\xc3\xa9\"");
  CHECK(text("\xc3") == "\"\xef\xbf\xbd\"");
  CHECK(text("\xed\xa0\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // a surrogate
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char pair[] = {static_cast<char>(a), static_cast<char>(b)};
      REQUIRE(nlohmann::json::accept(text({pair, 2})));
    }
  }
}

// 1e9 FLOP in 0.5 us is 2000 TFLOP/s; 4 MB in 2 us is 2000 GB/s.
TEST_CASE("perfetto: the whole text of a small recording") {
  CHECK(perfetto_json(small()) ==
        R"json({"displayTimeUnit":"ns","otherData":{"name":"two workers","origin":"simulated"},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"rank 0 (dp 0)"}},
{"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":1}},
{"ph":"M","name":"process_name","pid":9,"tid":0,"args":{"name":"rank 8 (dp 1)"}},
{"ph":"M","name":"process_sort_index","pid":9,"tid":0,"args":{"sort_index":9}},
{"ph":"M","name":"process_name","pid":10,"tid":0,"args":{"name":"cluster"}},
{"ph":"M","name":"process_sort_index","pid":10,"tid":0,"args":{"sort_index":10}},
{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1}},
{"ph":"X","pid":1,"tid":1,"ts":1.234567,"dur":0.500000,"name":"qkv","cat":"forward","args":{"layer":3,"micro-batch":1,"flops":1e+09,"TFLOP/s":2000}},
{"ph":"M","name":"thread_name","pid":9,"tid":1001,"args":{"name":"dp"}},
{"ph":"M","name":"thread_sort_index","pid":9,"tid":1001,"args":{"sort_index":1001}},
{"ph":"X","pid":9,"tid":1001,"ts":1.000000,"dur":2.000000,"name":"grad \"all\"","cat":"gradient_sync","args":{"bytes":4000000,"GB/s":2000}},
{"ph":"C","pid":1,"ts":0.000000,"name":"device memory [GiB]","args":{"value":1.5}},
{"ph":"C","pid":1,"ts":2.000000,"name":"device memory [GiB]","args":{"value":2}},
{"ph":"C","pid":10,"ts":0.000000,"name":"leaf 0 up [Gb/s]","args":{"value":0.1}}
]}
)json");
}

TEST_CASE("perfetto: an empty recording is valid, values that are no numbers are left out") {
  CHECK(nlohmann::json::accept(perfetto_json(Recording{})));
  Recording r = small();
  r.spans[0].flops = std::nan("");
  r.counters[0].samples[0].value = std::numeric_limits<double>::infinity();
  CHECK(nlohmann::json::accept(perfetto_json(r)));
}

TEST_CASE("perfetto: saving leaves the whole file or none") {
  const test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "t.json").string();
  save_perfetto(small(), path);
  CHECK(read_file(path) == perfetto_json(small()));
  CHECK_THROWS_AS(save_perfetto(small(), (directory.path() / "none" / "t.json").string()), SystemError);
}

TEST_SUITE_END();
