// `stepcast run`: a plan on CPU workers over MPI. Skipped, saying so, where no MPI launcher is installed.
#include <doctest/doctest.h>

#include <fcntl.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "executor/common/record_file.hpp"
#include "sim/trace/store.hpp"
#include "tests/support/mpi.hpp"
#include "tests/support/program.hpp"
#include "tests/support/source_dir.hpp"

using stepcast::test::has_mpi;
using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("e2e");

namespace {

const std::string kScenario = STEPCAST_SOURCE_DIR "/configs/executor/tiny-4-workers.yaml";

// Processes of the worker program whose arguments name `folder`.
std::vector<pid_t> workers_of(const std::string& folder) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
    const std::string number = entry.path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = stepcast::test::text_of(entry.path() / "cmdline");
    const std::string program = words.substr(0, words.find('\0'));
    if (program.ends_with("stepcast-cpu") && words.find(folder) != std::string::npos) found.push_back(std::stoi(number));
  }
  return found;
}

template <class Condition>
bool wait_for(Condition&& condition, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  return true;
}

}  // namespace

// tp 2 x pp 2, 1F1B, recomputation, ZeRO-1 on four processes, and the uncut model on one: the same losses, falling.
TEST_CASE("run: four workers learn what one learns") {
  if (!has_mpi()) return;
  const TemporaryDirectory place;
  const std::string db = (place.path() / "runs.db").string();
  const std::string trace = (place.path() / "trace.json").string();
  const Outcome four = run_stepcast("run " + kScenario + " --train --steps 4 --warmup 0 --json - --db " + db + " --trace " + trace);
  REQUIRE_MESSAGE(four.status == 0, four.err);
  const auto cut = nlohmann::json::parse(four.out);
  const Outcome one = run_stepcast("run " + kScenario + " --train --steps 4 --warmup 0 --json - --set parallel.tp=1 --set parallel.pp=1 --set parallel.zero=0 "
                                   "--set cluster.gpus_per_node=1 --set memory.recompute=none");
  REQUIRE_MESSAGE(one.status == 0, one.err);
  const auto uncut = nlohmann::json::parse(one.out);
  REQUIRE(cut["losses"].size() == 4);
  for (std::size_t step = 0; step < 4; ++step) CHECK(cut["losses"][step].get<double>() == doctest::Approx(uncut["losses"][step].get<double>()).epsilon(1e-4));
  CHECK(cut["losses"][3] < cut["losses"][0]);
  CHECK(cut["step_time_s"].get<double>() > 0.0);
  CHECK(cut["environment"]["collectives"] == "ring");

  // The trace has all four workers; the parts of the last worker's compute stream add up to the step.
  std::ifstream in{trace};
  const auto drawn = nlohmann::json::parse(in);
  std::set<int> workers;
  for (const auto& event : drawn["traceEvents"]) {
    if (event.value("ph", "") == "X") workers.insert(event["pid"].get<int>());
  }
  CHECK(workers.size() == 4);
  double parts = 0.0;
  for (const auto& [name, time] : cut["parts_s"].items()) parts += time.get<double>();
  CHECK(parts == doctest::Approx(cut["step_time_s"].get<double>()).epsilon(1e-6));
}

TEST_CASE("run: what cannot be run is refused before anything starts") {
  const auto refused = [&](const std::string& options, const std::string& text) {
    const Outcome outcome = run_stepcast("run " + kScenario + " " + options);
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, outcome.err);
  };
  refused("--backend tpu", "cpu or cuda");
  refused("--steps 0", "1 or more");
  refused("--shrink 1000000000", "1 to 4096");
  refused("--set training.precision=bf16", "training.precision");
  refused("--set training.precision=bf16 --set cluster.node=dgx-h100 --set cluster.gpus_per_node=4", "hint:     training.precision: fp32");
  refused("--launcher no-such-launcher", "not on the PATH");
}

TEST_CASE("run: workers without a GPU say so once") {
  namespace fs = std::filesystem;
  if (!has_mpi()) return;
  if (!fs::exists(fs::path{STEPCAST_PROGRAM}.parent_path() / "stepcast-cuda") || fs::exists("/dev/nvidiactl")) {
    MESSAGE("skipped: no stepcast-cuda is built, or a GPU is here");
    return;
  }
  const Outcome outcome = run_stepcast("run " + kScenario + " --backend cuda");
  CHECK(outcome.status == 2);
  const std::size_t first = outcome.err.find("no GPU is here");
  CHECK_MESSAGE(first != std::string::npos, outcome.err);
  CHECK(outcome.err.find("no GPU is here", first + 1) == std::string::npos);
}

// A program without its workers, as the first call of ./stepcast leaves it: the cause and the command, and nothing written.
TEST_CASE("run, measure: a worker that is not built is said, with the command that builds it") {
  namespace fs = std::filesystem;
  const TemporaryDirectory place;
  fs::create_directories(place.path() / "build/app");
  fs::create_directories(place.path() / "build/share");
  fs::create_directory_symlink(STEPCAST_SOURCE_DIR, place.path() / "build/share/stepcast");
  fs::copy_file(STEPCAST_PROGRAM, place.path() / "build/app/stepcast");
  const std::string program = (place.path() / "build/app/stepcast").string();
  const std::string db = (place.path() / "some.db").string();
  for (const std::string& command : {"measure --quick --db " + db, "run " + kScenario + " --db " + db}) {
    CAPTURE(command);
    const Outcome alone = stepcast::test::run_shell(program + ' ' + command);
    CHECK(alone.status == 2);
    CHECK_MESSAGE(alone.err.find("stepcast-cpu is not beside " + program) != std::string::npos, alone.err);
    std::ofstream(place.path() / "build/CMakeCache.txt") << "";
    const Outcome unbuilt = stepcast::test::run_shell(program + ' ' + command);
    CHECK(unbuilt.status == 2);
    CHECK_MESSAGE(unbuilt.err.find("stepcast-cpu is not built") != std::string::npos, unbuilt.err);
    CHECK_MESSAGE(unbuilt.err.find("cmake --build " + (place.path() / "build").string() + " --target stepcast-cpu") != std::string::npos, unbuilt.err);
    fs::remove(place.path() / "build/CMakeCache.txt");
    CHECK_FALSE(fs::exists(db));
  }
  // A worker that cannot be started, or ends before its first point, leaves no store either.
  std::ofstream(place.path() / "build/app/stepcast-cpu") << "";
  CHECK(stepcast::test::run_shell(program + " measure --quick --db " + db + " --launcher no-such-launcher").status == 2);
  CHECK_FALSE(fs::exists(db));
  CHECK(stepcast::test::run_shell(program + " measure --quick --workers 1 --db " + db + " --launcher false").status == 3);
  CHECK_FALSE(fs::exists(db));
}

// The launcher ends badly: one error, status 3, records kept and their folder named.
TEST_CASE("run: a worker that fails ends the run with status 3") {
  if (!has_mpi()) return;
  const TemporaryDirectory place;
  const Outcome outcome = run_stepcast("run " + kScenario + " --steps 2 --memory 1000 --records " + place.path().string());
  CHECK(outcome.status == 3);
  CHECK_MESSAGE(outcome.err.find("out of memory") != std::string::npos, outcome.err);
  CHECK_MESSAGE(outcome.err.find(place.path().string()) != std::string::npos, outcome.err);
}

// One worker's records lie on a full disk: one error that says so, status 3, nobody is left behind.
TEST_CASE("run: a full disk ends the run with status 3") {
  if (!has_mpi() || !std::filesystem::exists("/dev/full")) return;
  const TemporaryDirectory place;
  const std::string folder = place.path().string();
  std::filesystem::create_symlink("/dev/full", folder + "/run.1.records");
  const Outcome outcome = run_stepcast("run " + kScenario + " --steps 2 --records " + folder);
  CHECK(outcome.status == 3);
  CHECK_MESSAGE(outcome.err.find("run.1.records: cannot be written: No space left on device") != std::string::npos, outcome.err);
  CHECK(wait_for([&] { return workers_of(folder).empty(); }, std::chrono::seconds{5}));
}

// A rank is killed in the middle: an error within ten seconds, what was recorded is whole, nobody is left behind.
TEST_CASE("run: a killed worker ends the run soon, and records stay readable") {
  if (!has_mpi()) return;
  const TemporaryDirectory place;
  const std::string folder = place.path().string();
  Outcome outcome;
  std::thread run{[&] { outcome = run_stepcast("run " + kScenario + " --steps 1000000 --warmup 0 --records " + folder); }};
  const std::string records = folder + "/run.0.records";
  const auto recorded = [&] { return stepcast::test::text_of(records).find("\nstep 1 ") != std::string::npos; };
  CHECK(wait_for(recorded, std::chrono::seconds{60}));
  const std::vector<pid_t> workers = workers_of(folder);
  CHECK(workers.size() == 4);
  for (std::size_t i = 0; i < workers.size(); ++i) ::kill(workers[i], i + 1 == workers.size() ? SIGKILL : 0);
  const auto killed = std::chrono::steady_clock::now();
  run.join();
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds{10});
  CHECK(outcome.status == 3);
  CHECK_MESSAGE(outcome.err.find("kept in") != std::string::npos, outcome.err);
  CHECK(wait_for([&] { return workers_of(folder).empty(); }, std::chrono::seconds{5}));
  CHECK(stepcast::executor::read_records(records).steps.size() >= 1);
}

// Killed in the middle, the store has whole points; the next call measures the rest, none twice.
TEST_CASE("measure: goes on where it was killed") {
  if (!has_mpi()) return;
  const TemporaryDirectory place;
  const std::string db = (place.path() / "points.db").string();
  const std::string folder = (place.path() / "records").string();
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::execl(STEPCAST_PROGRAM, STEPCAST_PROGRAM, "measure", "--quick", "--workers", "1", "--db", db.c_str(), "--records", folder.c_str(), nullptr);
    std::_Exit(127);
  }
  const auto stored = [&] {
    try {
      return stepcast::trace::Store{db, stepcast::trace::Store::Mode::kRead}.runs().size();
    } catch (const std::exception&) {
      return std::size_t{0};
    }
  };
  CHECK(wait_for([&] { return stored() >= 3; }, std::chrono::seconds{60}));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(wait_for([&] { return workers_of(folder).empty(); }, std::chrono::seconds{10}));
  const std::size_t before = stored();

  const Outcome rest = run_stepcast("measure --quick --workers 1 --json - --db " + db);
  REQUIRE_MESSAGE(rest.status == 0, rest.err);
  const std::size_t measured = nlohmann::json::parse(rest.out)["points"].size();
  CHECK(stored() == before + measured);
  std::set<std::string> names;
  for (const auto& run : stepcast::trace::Store{db, stepcast::trace::Store::Mode::kRead}.runs()) CHECK(names.insert(run.name).second);
  CHECK(run_stepcast("measure --quick --workers 1 --db " + db).out.find("in the store already") != std::string::npos);
}
