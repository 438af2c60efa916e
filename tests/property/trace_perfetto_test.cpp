// Whatever was recorded: the trace parses, slices of one thread never overlap, nothing is lost.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/random.hpp"
#include "sim/trace/perfetto.hpp"

using namespace stepcast;
using namespace stepcast::trace;

TEST_SUITE_BEGIN("property");

namespace {

Recording random_recording(std::uint64_t seed) {
  Rng rng{seed, "recording"};
  Recording r;
  r.name = fmt::format("random {}", seed);
  r.origin = "measured";
  r.streams = {"compute", "dp", "pp"};
  const std::uint64_t workers = 1 + rng.below(4);
  for (std::uint64_t w = 0; w < workers; ++w) r.workers[RankId{w * 3}] = fmt::format("rank {}", w * 3);
  for (std::uint64_t i = rng.below(200); i > 0; --i) {
    r.spans.push_back({.worker = RankId{rng.below(workers) * 3},
                       .stream = static_cast<std::uint8_t>(rng.below(3)),
                       .start = TimePoint::at(Duration::picoseconds(static_cast<std::int64_t>(rng.below(50'000'000)))),
                       .duration = Duration::picoseconds(static_cast<std::int64_t>(rng.below(2'000'000))),
                       .name = fmt::format("op {}", i)});
  }
  return r;
}

// "12.345678" to picoseconds, from the text: the JSON parser would round.
std::int64_t picoseconds(const std::string& json, std::size_t at) {
  std::int64_t value = 0;
  int decimals = 0;
  bool point = false;
  for (; json[at] == '.' || (json[at] >= '0' && json[at] <= '9'); ++at) {
    if (json[at] == '.') {
      point = true;
      continue;
    }
    value = value * 10 + (json[at] - '0');
    decimals += point ? 1 : 0;
  }
  REQUIRE(decimals == 6);
  return value;
}

struct Slice {
  std::int64_t start;
  std::int64_t end;
};

}  // namespace

TEST_CASE("perfetto: random recordings parse and slices of a thread do not overlap") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const Recording recording = random_recording(seed);
    const std::string text = perfetto_json(recording);
    CHECK(text == perfetto_json(recording));
    const nlohmann::json json = nlohmann::json::parse(text);
    std::map<std::pair<int, int>, std::vector<Slice>> tracks;
    std::map<std::pair<int, int>, bool> named;
    std::size_t slices = 0;
    std::size_t at = 0;
    for (const auto& event : json["traceEvents"]) {
      const std::pair track{event["pid"].get<int>(), event.value("tid", 0)};
      if (event["name"] == "thread_name") named[track] = true;
      if (event["ph"] != "X") continue;
      ++slices;
      at = text.find("\"ts\":", at) + 5;
      const std::int64_t start = picoseconds(text, at);
      at = text.find("\"dur\":", at) + 6;
      tracks[track].push_back({start, start + picoseconds(text, at)});
      CHECK(named[track]);
    }
    CHECK(slices == recording.spans.size());
    std::vector<std::int64_t> written;
    for (const auto& [track, list] : tracks) {
      for (std::size_t i = 1; i < list.size(); ++i) CHECK(list[i - 1].end <= list[i].start);
      for (const Slice& slice : list) written.push_back(slice.start);
    }
    std::vector<std::int64_t> recorded;
    for (const Span& span : recording.spans) recorded.push_back(span.start.count());
    std::sort(written.begin(), written.end());
    std::sort(recorded.begin(), recorded.end());
    CHECK(written == recorded);
  }
}

TEST_SUITE_END();
