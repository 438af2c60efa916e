// `stepcast import kineto|nsys|nvidia-smi`: stored once, whole or not at all, within little memory.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "sim/trace/store.hpp"
#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_shell;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;
namespace trace = stepcast::trace;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST_SUITE_BEGIN("e2e");

namespace {

std::string kernel(int i) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_nn", "pid": 0, "tid": 7, "ts": {}, "dur": 8.25, "args": {{"device": 0, "stream": 7, "correlation": {}}}}})",
                     20 * i, i);
}

std::string small_trace() { return R"({"deviceProperties": [{"id": 0, "name": "NVIDIA A100"}], "traceEvents": [)" + kernel(1) + "," + kernel(2) + "]}"; }

// As a profiler writes it: for every kernel a host operator with its shapes, a launching call and an arrow. Returns its size.
std::size_t write_large_trace(const std::string& path, int kernels) {
  gzFile file = gzopen(path.c_str(), "wb1");
  REQUIRE(file != nullptr);
  std::size_t size = 0;
  const auto write = [&](const std::string& text) {
    REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
    size += text.size();
  };
  write(R"({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": [)");
  for (int i = 1; i <= kernels; ++i) {
    write(fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 99, "tid": 99, "ts": {0}.123, "dur": 5.5, "args": {{"External id": {1}, "Record function id": 0,
 "Concrete Inputs": ["", ""], "Input type": ["float", "float"], "Input Strides": [[4096, 1], [1]], "Input Dims": [[8192, 4096], [4096]], "Ev Idx": {1}}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 99, "tid": 99, "ts": {0}.5, "dur": 3.5, "args": {{"External id": {1}, "cbid": 211, "correlation": {1}}}}},
{{"ph": "s", "id": {1}, "pid": 99, "tid": 99, "ts": {0}, "cat": "ac2g", "name": "ac2g"}},
)", 20 * i, i));
    write(kernel(i) + (i < kernels ? ",\n" : "]}\n"));
  }
  REQUIRE(gzclose(file) == Z_OK);
  return size;
}

}  // namespace

TEST_CASE("import: a profile is stored once") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "a.json").string();
  const std::string db = (place.path() / "runs.db").string();
  std::ofstream(file) << small_trace();
  const Outcome first = run_stepcast("import kineto " + file + " --db " + db);
  CHECK_MESSAGE(first.status == 0, first.err);
  for (const char* word : {"NVIDIA A100", "gemm", "2 x", "none marked", "stored as run 1"}) CHECK_MESSAGE(first.out.find(word) != std::string::npos, first.out);
  std::filesystem::copy_file(file, place.path() / "copy.json");
  const Outcome again = run_stepcast("import kineto " + (place.path() / "copy.json").string() + " --db " + db);
  CHECK(again.status == 0);
  CHECK_MESSAGE(again.out.find("already in " + db + " as run 1: nothing was added") != std::string::npos, again.out);
  const trace::Store store{db, trace::Store::Mode::kRead};
  REQUIRE(store.runs().size() == 1);
  const trace::Recording recording = store.load_recording(store.runs()[0].id);
  REQUIRE(recording.spans.size() == 2);
  CHECK(recording.spans[1].start.since_start().count() == 20'000'000);
  CHECK(recording.spans[1].category == "gemm");
  const auto json = nlohmann::json::parse(run_stepcast("import kineto --json - " + file).out);
  CHECK(json["work"]["gemm"]["count"] == 2);
  CHECK(json["step_time_s"].is_null());
}

TEST_CASE("import: counters of nvidia-smi, and a log of nccl-tests, are stored once") {
  const TemporaryDirectory place;
  const std::string db = (place.path() / "runs.db").string();
  std::ofstream(place.path() / "smi.csv") << "timestamp, index, power.draw [W]\n2026/10/04 01:00:00.100, 0, 60.00 W\n2026/10/04 01:00:01.100, 0, 65.00 W\n";
  std::ofstream(place.path() / "a.log") << "        1024           256   float     sum    20.1    0.05    0.05  1e-07    20.0    0.05    0.05  1e-07\n";
  for (int i = 0; i < 2; ++i) {
    const Outcome smi = run_stepcast("import nvidia-smi smi.csv --db runs.db", place.path());
    CHECK_MESSAGE(smi.status == 0, smi.err);
    const Outcome nccl = run_stepcast("import nccl-tests a.log --db runs.db", place.path());
    CHECK_MESSAGE(nccl.status == 0, nccl.err);
  }
  const trace::Store store{db, trace::Store::Mode::kRead};
  REQUIRE(store.runs().size() == 2);
  const trace::Recording recording = store.load_recording(store.runs()[0].id);
  REQUIRE(recording.counters.size() == 1);
  CHECK(recording.counters[0].unit == "W");
  CHECK(recording.counters[0].samples[1].time.seconds() == doctest::Approx(1.0));
}

TEST_CASE("import: wrong files are one error and leave no database") {
  const TemporaryDirectory place;
  std::ofstream(place.path() / "text") << "hello\n";
  std::ofstream(place.path() / "empty");
  for (const char* kind : {"kineto", "nsys", "nvidia-smi"}) {
    for (const char* file : {"text", "empty", "absent", "."}) {
      const Outcome outcome = run_stepcast(std::string{"import "} + kind + " " + file + " --db runs.db", place.path());
      CAPTURE(kind);
      CAPTURE(file);
      CHECK(outcome.status == 2);
      CHECK_MESSAGE(outcome.err.find("error: ") != std::string::npos, outcome.err);
      CHECK(outcome.err.find("error: ") == outcome.err.rfind("error: "));
      CHECK_FALSE(std::filesystem::exists(place.path() / "runs.db"));
    }
  }
  CHECK(run_stepcast("import kineto text --columns index", place.path()).status == 2);
  CHECK(run_stepcast("import nvidia-smi text --interval -1", place.path()).status == 2);
}

// A database in the form of a version to come is refused, and stays as it is.
TEST_CASE("import: a database of a newer form is refused") {
  const TemporaryDirectory place;
  std::ofstream(place.path() / "a.json") << small_trace();
  CHECK(run_stepcast("import kineto a.json --db runs.db", place.path()).status == 0);
  std::fstream raw(place.path() / "runs.db", std::ios::in | std::ios::out | std::ios::binary);
  raw.seekp(63);  // the last byte of SQLite's user version
  raw.put(9);
  raw.close();
  const Outcome outcome = run_stepcast("import kineto a.json --db runs.db", place.path());
  CHECK(outcome.status == 2);
  CHECK_MESSAGE(outcome.err.find("newer stepcast") != std::string::npos, outcome.err);
}

// Killed while it reads or writes, at several moments: the database is as before, or has the run whole.
TEST_CASE("import: killed midway, the database stays readable") {
  const TemporaryDirectory place;
  const std::string small = (place.path() / "small.json").string();
  const std::string large = (place.path() / "large.json.gz").string();
  const std::string db = (place.path() / "runs.db").string();
  std::ofstream(small) << small_trace();
  constexpr int kKernels = 30000;
  write_large_trace(large, kKernels);
  REQUIRE(run_stepcast("import kineto " + small + " --db " + db).status == 0);
  for (const int wait_ms : {30, 120, 250, 330, 400, 450}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(STEPCAST_PROGRAM, "stepcast", "import", "kineto", large.c_str(), "--db", db.c_str(), "--quiet", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{wait_ms});
    ::kill(child, SIGKILL);
    int raw = 0;
    ::waitpid(child, &raw, 0);
    const trace::Store store{db, trace::Store::Mode::kRead};
    const auto runs = store.runs();
    CHECK((runs.size() == 1 || runs.size() == 2));
    CHECK(store.load_recording(runs[0].id).spans.size() == 2);
    if (runs.size() == 2) CHECK(store.load_recording(runs[1].id).spans.size() == kKernels);
  }
  CHECK(run_stepcast("import kineto " + large + " --db " + db).status == 0);
  CHECK(trace::Store{db, trace::Store::Mode::kRead}.runs().size() == 2);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("slow");

// 370 MB of JSON in an address space of 300 MB, everything that the program maps included.
TEST_CASE("import: a large compressed trace takes little memory") {
  if (kSanitized) {
    MESSAGE("skipped: sanitizers need an address space of their own");
    return;
  }
  const TemporaryDirectory place;
  const std::string file = (place.path() / "large.json.gz").string();
  const std::size_t size = write_large_trace(file, 550000);
  CHECK(size > 350'000'000);
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = run_shell("ulimit -v 300000; " STEPCAST_PROGRAM " import kineto " + file + " --db " + (place.path() / "runs.db").string());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  CHECK_MESSAGE(outcome.out.find("550000 x") != std::string::npos, outcome.out);
  const double megabytes = static_cast<double>(size) * 1e-6;
  MESSAGE(megabytes, " MB in ", seconds, " s: ", megabytes / seconds, " MB/s, stored");
}

TEST_SUITE_END();
