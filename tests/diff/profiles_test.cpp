// Every profile and log of the shared folder: imports, or is refused with a reason that a person agrees with.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "calibration/kineto_trace.hpp"
#include "calibration/nsys_trace.hpp"
#include "calibration/smi_log.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/shared_data.hpp"

using namespace stepcast::calibration;
using stepcast::UserError;

TEST_SUITE_BEGIN("diff");

namespace {

struct Row {
  std::string file;
  std::string kind;
};

// Of index.csv, the first two columns; "x.et (+.1)" stands for x.et.
std::vector<Row> rows_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<Row> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const std::size_t comma = line.find(',');
    std::string file = line.substr(0, comma);
    file = file.substr(0, file.find(" ("));
    rows.push_back({file, line.substr(comma + 1, line.find(',', comma + 1) - comma - 1)});
  }
  return rows;
}

template <class Read>
std::string refusal(Read read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("profiles: every sample imports, or is refused for a reason") {
  const auto folder = stepcast::test::shared_path("formats/profiles");
  if (!folder) return;
  std::map<std::string, int> imported;
  std::map<std::string, int> refused;
  for (const Row& row : rows_of(*folder + "/index.csv")) {
    const std::string path = *folder + "/" + row.file;
    CAPTURE(row.file);
    const std::string kineto = refusal([&] { read_kineto_trace(path); });
    const std::string nsys = refusal([&] { read_nsys_trace(path); });
    const std::string smi = refusal([&] { read_smi_log(stepcast::read_file(path), path); });
    CHECK(kineto.empty() == (row.kind == "kineto"));
    CHECK(nsys.empty() == (row.kind == "nsys" || row.kind == "nvprof"));
    const bool without_header = row.file.find("noheader") != std::string::npos;
    const bool log = row.kind == "dmon" || (row.kind == "query-gpu" && !without_header && row.file.find("bogus") == std::string::npos);
    CHECK(smi.empty() == log);
    // The right importer's words.
    if (row.kind == "pytorch_et") CHECK(kineto.find("execution trace (ET)") != std::string::npos);
    if (row.kind == "query-gpu" && without_header) CHECK(smi.find("--columns") != std::string::npos);
    if (row.kind == "query-gpu" && row.file.find("bogus") != std::string::npos) CHECK(smi.find("wrong field") != std::string::npos);
    if (row.kind == "pmon") CHECK(smi.find("pmon") != std::string::npos);
    if (row.kind == "power sweep") CHECK(smi.find("has no column of nvidia-smi among") != std::string::npos);
    if (row.kind == "dcgm-exporter") CHECK(smi.find("DCGM") != std::string::npos);
    ++(kineto.empty() || nsys.empty() || smi.empty() ? imported : refused)[row.kind];
  }
  for (const auto& [kind, count] : imported) MESSAGE(kind << ": " << count << " imported");
  for (const auto& [kind, count] : refused) MESSAGE(kind << ": " << count << " refused");
  CHECK(imported["kineto"] == 8);
  CHECK(imported["nsys"] + imported["nvprof"] == 3);
  CHECK(imported["query-gpu"] + imported["dmon"] == 8);
}

TEST_CASE("profiles: files without a header import with their columns") {
  const auto path = stepcast::test::shared_path("formats/profiles/power/query_gpu_throttle_noheader_nounits.csv");
  if (!path) return;
  const SmiLog log = read_smi_log(stepcast::read_file(*path), *path,
                                  {.columns = {"index", "power.draw.average", "power.draw.instant", "clocks_throttle_reasons.active", "memory.reserved", "ecc.mode.current", "mig.mode.current"}});
  CHECK(log.gpus.size() == 4);
  CHECK(log.throttled.at("software power cap") == 4);
}

// The same step, from the profiler and as an export of another tool: the same sums by kind of work.
TEST_CASE("profiles: one step by two tools") {
  const auto folder = stepcast::test::shared_path("formats/profiles");
  if (!folder) return;
  const GpuTrace kineto = read_kineto_trace(*folder + "/kineto/ddp_2gpu_a100_rank0_one_step.json.gz");
  for (const char* file : {"/nsys/a100_ddp_step_schema2.sqlite", "/nsys/a100_ddp_step_schema3.sqlite"}) {
    const GpuTrace nsys = read_nsys_trace(*folder + file);
    for (const auto& [work, sum] : kineto.sums()) {
      if (work == GpuWork::kAnnotation) continue;
      CAPTURE(std::string{name_of(work)});
      CHECK(nsys.sums().at(work).count == sum.count);
      CHECK(std::abs(nsys.sums().at(work).time_ns - sum.time_ns) <= static_cast<std::int64_t>(2 * sum.count));  // rounded to whole nanoseconds
    }
    CHECK(nsys.steps().size() == 3);
  }
}

TEST_SUITE_END();
