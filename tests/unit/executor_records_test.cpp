// Record files: what is written is read, and a file cut at any byte gives the blocks before the cut.
#include <doctest/doctest.h>

#include <filesystem>

#include "executor/common/record_file.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"

using namespace stepcast;
using namespace stepcast::executor;

TEST_SUITE_BEGIN("unit");

namespace {

const std::vector<StepRecord> kSteps{{0, {1000, 2000}, {{3, {0, 400}}, {5, {400, 1000}}}}, {1, {2500, 3600}, {{3, {0, 500}}, {5, {510, 1100}}}}};

std::string written() {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "stepcast_records_test.records";
  {
    RecordWriter writer{path.string()};
    writer.facts({{"rank", "3"}, {"cpu", "two\nlines"}});
    for (const StepRecord& step : kSteps) writer.step(step);
  }
  std::string text = read_file(path.string());
  std::filesystem::remove(path);
  return text;
}

}  // namespace

TEST_CASE("records: read back as they were written") {
  const Records records = parse_records(written(), "test");
  CHECK(records.fact("rank") == "3");
  CHECK(records.fact("cpu") == "two lines");
  CHECK(records.fact("none").empty());
  CHECK(records.steps == kSteps);
  CHECK(records.bytes_left_out == 0);
}

TEST_CASE("records: a file cut at any byte gives what was whole") {
  const std::string text = written();
  const std::size_t first = text.find('\n') + 1;  // the line with the version
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    if (size < first) {
      CHECK_THROWS_AS(parse_records(text.substr(0, size), "test"), UserError);
      continue;
    }
    const Records records = parse_records(text.substr(0, size), "test");
    CHECK(records.steps.size() < kSteps.size());
    for (std::size_t i = 0; i < records.steps.size(); ++i) CHECK(records.steps[i] == kSteps[i]);
  }
}

TEST_CASE("records: a changed byte leaves out its block and all behind it") {
  const std::string text = written();
  for (std::size_t at = text.find("step 1"); at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = damaged[at] == '7' ? '8' : '7';
    const Records records = parse_records(damaged, "test");
    CHECK(records.steps.size() == 1);
    CHECK(records.bytes_left_out > 0);
  }
}

TEST_CASE("records: another file is refused") {
  CHECK_THROWS_WITH_AS(parse_records("stepcast-plan 1\n", "a.plan"), doctest::Contains("not a record file"), UserError);
  CHECK_THROWS_AS(parse_records("stepcast-records 2\nblock 1 0\n", "a"), UserError);
}
