// Exports of Nsight Systems and files of nvprof, made here with the tables that matter.
#include <doctest/doctest.h>

#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "calibration/nsys_trace.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/trace/store.hpp"
#include "tests/support/program.hpp"

using namespace stepcast::calibration;
using stepcast::UserError;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("calibration");

namespace {

void make(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  char* error = nullptr;
  const int status = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error);
  REQUIRE_MESSAGE(status == SQLITE_OK, error);
  sqlite3_close(db);
}

std::string error_of(const std::string& path) {
  try {
    read_nsys_trace(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Process 10 on device 0 and process 11 on device 1; pid << 24.
const char* const kExport = R"sql(
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'ampere_bf16_s16816gemm_bf16_128x128'), (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)'), (4, 'iteration 3'),
  (5, 'cudaDeviceSynchronize');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 3000, 0, 7, 1, 167772160, 2), (3500, 4000, 0, 7, 2, 167772160, 2), (1000, 9000, 1, 7, 1, 184549376, 3), (9500, 9400, 1, 7, 9, 184549376, 2),
  (NULL, 5, 0, 7, 1, 167772160, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5000, 6000, 0, 8, 3, 167772160, 4096, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 800, 167772170, 1, 1), (900, 1200, 167772170, 2, 1), (400, 900, 184549380, 1, 1), (5000, 5001, 184549380, 7, 5);
CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES (100, 9900, 59, NULL, 4, 184549380), (200, 300, 60, 'forward', NULL, 167772170), (50, NULL, 34, 'mark', NULL, 1), (60, NULL, 59, 'open', NULL, 1);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100'), (1, 'NVIDIA H100');
CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');
)sql";

}  // namespace

TEST_CASE("nsys: kernels, copies, ranges, launches, the file stays as it was") {
  const TemporaryDirectory place;
  const std::string path = (place.path() / "a b?.sqlite").string();
  make(path, kExport);
  const std::string before = stepcast::test::text_of(path);
  const GpuTrace trace = read_nsys_trace(path);
  CHECK(stepcast::test::text_of(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator{place.path()}, std::filesystem::directory_iterator{}) == 1);
  CHECK(trace.gpus == std::vector<std::string>{"NVIDIA H100"});
  CHECK(trace.workers.size() == 2);
  CHECK(trace.workers.at(1) == "device 1");
  const auto sums = trace.sums();
  CHECK(sums.at(GpuWork::kGemm).count == 2);
  CHECK(sums.at(GpuWork::kGemm).time_ns == 2500);
  CHECK(sums.at(GpuWork::kCollective).time_ns == 8000);
  CHECK(sums.at(GpuWork::kAnnotation).count == 1);
  REQUIRE(trace.steps().size() == 1);
  CHECK(trace.steps()[0].worker == 1);
  CHECK(trace.names[trace.steps()[0].name] == "iteration 3");
  // Correlation 1 is there twice, once a process. The second kernel had been called at 900 to 1200, the first ended at 3000: a gap of 500.
  CHECK(trace.launches.calls == 3);
  CHECK(trace.launches.gap_s == doctest::Approx(500e-9));
  CHECK(trace.skipped.at("negative duration") == 1);
  CHECK(trace.skipped.at("no start or end") == 1);
  CHECK(trace.skipped.at("NVTX marks") == 1);
  CHECK(trace.skipped.at("NVTX ranges that never end") == 1);
  CHECK(trace.collectives.begin()->first.collective == "all_reduce");
  for (const GpuEvent& event : trace.events) {
    if (event.work == GpuWork::kCopy) CHECK(trace.span(event).name == "copy HtoD");
  }
}

// torchrun with CUDA_VISIBLE_DEVICES: every process calls its GPU 0.
TEST_CASE("nsys: processes that all use device 0 are workers of their own") {
  const TemporaryDirectory place;
  const std::string path = (place.path() / "a.sqlite").string();
  make(path, std::string{kExport} + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0; UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET deviceId = 0;");
  const GpuTrace trace = read_nsys_trace(path);
  CHECK(trace.workers.size() == 2);
  CHECK(trace.workers.at(1) == "device 0 of process 11");
}

TEST_CASE("nsys: nvprof's tables") {
  const TemporaryDirectory place;
  const std::string path = (place.path() / "a.nvvp").string();
  make(path, "CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringTable VALUES (1, 'volta_sgemm_128x64_nn');"
             "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY, start INT, end INT, deviceId INT, streamId INT, correlationId INT, name INT);"
             "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, 1650000000000000000, 1650000000000003744, 0, 7, 19812, 1);");
  const GpuTrace trace = read_nsys_trace(path);
  CHECK(trace.tool == "nvprof");
  REQUIRE(trace.events.size() == 1);
  CHECK(trace.events[0].duration_ns == 3744);
  CHECK(trace.events[0].work == GpuWork::kGemm);
}

TEST_CASE("nsys: what is no such file is one clear error") {
  const TemporaryDirectory place;
  const auto file = [&](const char* name, const std::string& content) {
    const std::string path = (place.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  };
  CHECK(error_of(file("empty.sqlite", "")).find("is empty") != std::string::npos);
  CHECK(error_of(file("a.nsys-rep", "something")).find("not its export") != std::string::npos);
  CHECK(error_of(file("text.sqlite", "something")).find("is not a SQLite database") != std::string::npos);
  CHECK(error_of((place.path() / "absent").string()).find("no such file") != std::string::npos);
  CHECK(error_of(place.path().string()).find("is a directory") != std::string::npos);
  const std::string other = (place.path() / "other.sqlite").string();
  make(other, "CREATE TABLE cookies(id INTEGER)");
  CHECK(error_of(other).find("no table of a profiler among cookies") != std::string::npos);
  const std::string idle = (place.path() / "idle.sqlite").string();
  make(idle, "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER); CREATE TABLE StringIds(id INTEGER, value TEXT)");
  CHECK(error_of(idle).find("has no GPU activity") != std::string::npos);
  // Cut in the middle, and filled with other bytes from there on.
  const std::string whole = (place.path() / "whole.sqlite").string();
  make(whole, kExport);
  const std::string bytes = stepcast::test::text_of(whole);
  CHECK(error_of(file("cut.sqlite", bytes.substr(0, bytes.size() / 2))).find("damaged") != std::string::npos);
  const std::string runs = (place.path() / "runs.db").string();
  stepcast::trace::append_run(runs, {});
  CHECK(error_of(runs).find("is a database of runs") != std::string::npos);
}

TEST_SUITE_END();
