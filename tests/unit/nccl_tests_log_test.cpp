// Samples written by hand in the shapes in which logs come; and the shared logs, where they are, against
// the rows that a right reader finds in them.
#include <doctest/doctest.h>

#include <map>

#include "calibration/nccl_tests_log.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "tests/support/shared_data.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

namespace {

NcclLog read(const std::string& text) { return read_nccl_log(text, "a.log"); }

const std::string kCurrent =
    "# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0\n"
    "#\n# Using devices\n"
    "#  Rank  0 Group  0 Pid 100 on     node01 device  0 [0000:18:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid 101 on     node01 device  1 [0000:2a:00] NVIDIA H100 80GB HBM3\n"
    "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "        1024           256     float     sum      -1    10.50    0.10    0.10      0    10.40    0.10    0.10      0\n"
    "        2048           512     float     sum      -1    11.00    0.19    0.19      0    10.90    0.19    0.19    N/A\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.14\n";

}  // namespace

TEST_CASE("nccl log: the present form") {
  const NcclLog log = read(kCurrent);
  CHECK(log.tests_version == "2.17.9");
  REQUIRE(log.runs.size() == 1);
  CHECK(log.runs[0].collective == "all_reduce");
  CHECK(log.runs[0].options.starts_with("nThread 1"));
  REQUIRE(log.runs[0].devices.size() == 2);
  CHECK(log.runs[0].devices[1].name == "NVIDIA H100 80GB HBM3");
  CHECK(ranks_of(log, 0)->ranks == 2);
  REQUIRE(log.rows.size() == 2);
  const NcclRow& row = log.rows[1];
  CHECK(row.line == 12);
  CHECK(row.size == 2048);
  CHECK(row.count == 512);
  CHECK(row.redop == "sum");
  CHECK(row.root == "-1");
  CHECK(*row.seconds() == doctest::Approx(11e-6));
  CHECK(row.out_of_place.wrong == "0");
  CHECK(row.in_place->wrong == "N/A");
  CHECK(log.remarks.empty());
}

TEST_CASE("nccl log: labels of launchers, carriage returns and marks that went missing change nothing") {
  const NcclLog plain = read(kCurrent);
  for (const char* label : {"0: ", " 0: ", "[1,0]<stdout>:", "> ", "[0] ", "    "}) {
    CAPTURE(label);
    std::string text;
    for (const std::string& line : split(kCurrent, '\n')) text += label + line + "\r\n";
    const NcclLog log = read(text);
    CHECK(log.runs[0].devices.size() == 2);
    REQUIRE(log.rows.size() == 2);
    CHECK(log.rows[0].out_of_place.time == plain.rows[0].out_of_place.time);
    CHECK(log.rows[0].line == plain.rows[0].line);
  }
}

// Version 1.0: milliseconds, no row of units, marks before the rows.
TEST_CASE("nccl log: the first form prints milliseconds") {
  const NcclLog log = read(
      "# NCCL Tests compiled with NCCL 2.4\n"
      "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
      "#        4096          1024   float     sum    0.012   0.35   0.35       N/A    0.011   0.36   0.36      N/A\n");
  CHECK(log.nccl_version == "2.4");
  REQUIRE(log.rows.size() == 1);
  CHECK(*log.rows[0].seconds() == doctest::Approx(12e-6));
}

// The header has redop, the cell is empty; and all-gather had neither column.
TEST_CASE("nccl log: empty and missing cells") {
  const NcclLog log = read(
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52    0.51  1e+00\n");
  CHECK(log.rows[0].redop.empty());
  CHECK(log.rows[0].in_place->wrong == "1e+00");
  const NcclLog gather = read("       65536          8192   float    16.57    1.98    1.98  0e+00    13.83    2.37    2.37  0e+00\n");
  CHECK(gather.rows[0].redop.empty());
  CHECK(gather.rows[0].root.empty());
  CHECK(gather.rows[0].out_of_place.time == "16.57");
}

TEST_CASE("nccl log: broadcast of old has a root and no redop, one placement is enough, times need not be there") {
  const NcclLog log = read(
      "#       size         count      type    root     time   algbw   busbw  error\n"
      "        1024           256     float       3    10.50    0.10    0.10  0e+00\n"
      "        2048           512     float       3      N/A     N/A     N/A    N/A\n");
  CHECK(log.rows[0].root == "3");
  CHECK_FALSE(log.rows[0].in_place);
  CHECK_FALSE(log.rows[1].seconds());
}

// 2.19: i_min i_max i_p99 i_cv% behind each block.
TEST_CASE("nccl log: further columns of a block are passed over") {
  const NcclLog log = read(
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min i_max i_p99 i_cv%\n"
      "  1024 256 float sum -1 10.5 0.10 0.10 0 9.9 12.0 11.5 3.2 10.4 0.11 0.11 0 9.8 11.0 10.9 2.9\n");
  CHECK(log.rows[0].in_place->time == "10.4");
}

TEST_CASE("nccl log: several runs in a file, a column in front, chatter and a cut row") {
  const std::string row = " 1   1073741824     268435456     float     sum   8142.6  131.87  230.77  2e-07   8141.2  131.89  230.81  2e-07\n";
  const NcclLog log = read(
      "./all_reduce_perf -b 1G\n# nThread 1 nGpus 8 minBytes 1 maxBytes 2\n" + row +
      "node01:12:34 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n./all_gather_perf -b 8\n"
      "# nThread 1 nGpus 8 minBytes 8 maxBytes 16\n" + row + "  2147483648     536870912     float     sum   16285.2  131.8\n");
  REQUIRE(log.runs.size() == 2);
  CHECK(log.runs[0].collective == "all_reduce");
  CHECK(log.runs[1].collective == "all_gather");
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[1].run == 1);
  // 230.77 / 131.87 = 2 (n-1) / n  =>  n = 8.
  CHECK(ranks_of(log, 0)->ranks == 8);
  CHECK(ranks_of(log, 0)->by_ratio);
  REQUIRE(log.remarks.size() == 1);
  CHECK(log.remarks[0].line == 8);
}

TEST_CASE("nccl log: a file without rows is refused once") {
  CHECK_THROWS_WITH_AS(read("hello\n"), doctest::Contains("a.log: error: no row of nccl-tests in it"), UserError);
  CHECK_THROWS_AS(read(""), UserError);
  CHECK_THROWS_WITH_AS(read("1024 256 float sum -1 10.5 x 0.1 0 10.5 0.1 0.1 0\n"), doctest::Contains("'x' is no number"), UserError);
}

TEST_CASE("nccl log: every row of the shared logs, as the golden table has it") {
  const auto folder = test::shared_path("nccl_logs");
  if (!folder) return;
  const CsvTable golden = CsvTable::read(*folder + "/parsed.csv");
  std::map<std::string, std::vector<std::vector<std::string>>> expected;
  for (const CsvTable::Row& row : golden.rows()) expected[row.fields[0]].push_back(row.fields);
  CHECK(expected.size() == 50);
  for (const auto& [file, rows] : expected) {
    CAPTURE(file);
    const NcclLog log = read_nccl_log(read_file(*folder + "/" + file), file);
    CHECK(log.rows.size() == rows.size());
    for (std::size_t i = 0; i < std::min(rows.size(), log.rows.size()); ++i) {
      const NcclRow& r = log.rows[i];
      const NcclTiming in = r.in_place.value_or(NcclTiming{});
      const NcclTiming& out = r.out_of_place;
      const std::vector<std::string> found{file, std::to_string(r.run), std::to_string(r.line), std::to_string(r.size),
          std::to_string(r.count), r.dtype, r.redop, r.root, out.time, out.algbw, out.busbw, out.wrong,
          in.time, in.algbw, in.busbw, in.wrong, r.unit == TimeUnit::kMilliseconds ? "ms" : "us"};
      CHECK(join(found, ",") == join(rows[i], ","));
    }
    CHECK(log.remarks.empty());
  }
}

TEST_SUITE_END();
