#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sqlite3.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/units.hpp"
#include "sim/trace/perfetto.hpp"
#include "sim/trace/store.hpp"
#include "tests/support/program.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::trace;

TEST_SUITE_BEGIN("unit");

namespace {

Run sample_run(const std::string& name) {
  Run run;
  run.name = name;
  run.origin = "simulated";
  run.scenario = "name: x\n";
  run.version = "0.1.0";
  run.seed = 0xffffffffffffff00ULL;  // beyond 63 bits
  run.created = "2026-11-29T18:00:00Z";
  run.results = R"({"step_time_s": 1.5})";
  run.metrics = {{"step_time", 1.5, "s"}, {"energy", std::nullopt, "J"}, {"mfu", 1.0 / 3.0, "1"}};
  run.breakdown = {{"compute", 900_us}, {"bubble", 100_us}};
  run.memory = {{RankId{std::size_t{0}}, "device", "parameters", 1 << 30}};
  run.recording.name = name;
  run.recording.origin = "simulated";
  run.recording.streams = {"compute", "dp"};
  run.recording.workers = {{RankId{std::size_t{0}}, "rank 0"}};
  run.recording.spans = {{.worker = RankId{std::size_t{0}}, .stream = 1, .start = TimePoint::at(1_ps), .duration = 2_us,
                          .name = "reduce", .category = "gradient_sync", .bytes = 1000},
                         {.worker = RankId{std::size_t{0}}, .start = TimePoint::at(3_us), .duration = 0_ps, .name = "qkv",
                          .category = "forward", .layer = std::uint16_t{0}, .micro_batch = std::uint16_t{65535},
                          .flops = 0.1}};
  run.recording.counters = {{.name = "memory", .unit = "GiB", .worker = RankId{std::size_t{0}},
                             .samples = {{TimePoint{}, 0.1}, {TimePoint::at(1_us), 0.2}}},
                            {.name = "leaf 0", .unit = "Gb/s", .worker = {}, .samples = {}}};
  return run;
}

std::string in(const test::TemporaryDirectory& directory) { return (directory.path() / "r.db").string(); }

void raw(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

std::string integrity(const std::string& path) {
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  std::string answer;
  sqlite3_exec(db, "PRAGMA integrity_check",
               [](void* out, int, char** values, char**) { *static_cast<std::string*>(out) += values[0]; return 0; },
               &answer, nullptr);
  sqlite3_close(db);
  return answer;
}

}  // namespace

TEST_CASE("store: a run comes back as it was") {
  const test::TemporaryDirectory directory;
  const Run run = sample_run("first \"run\"");
  const RunId id = append_run(in(directory), run);
  CHECK(append_run(in(directory), sample_run("second")).value() == id.value() + 1);

  const Store store{in(directory), Store::Mode::kRead};
  const auto runs = store.runs();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].name == "first \"run\"");
  CHECK(runs[0].seed == run.seed);
  CHECK(runs[0].scenario_hash == scenario_hash(run.scenario));
  CHECK(runs[1].created == "2026-11-29T18:00:00Z");

  const Run back = store.load(id);
  CHECK(back.scenario == run.scenario);
  CHECK(back.results == run.results);
  CHECK(back.metrics == run.metrics);
  CHECK(back.breakdown == run.breakdown);
  CHECK(back.memory == run.memory);
  CHECK(back.recording.spans.empty());
  // Every field of a recording reaches the Perfetto text or the comparison below.
  const Recording recording = store.load_recording(id);
  CHECK(perfetto_json(recording) == perfetto_json(run.recording));
  REQUIRE(recording.counters.size() == 2);
  CHECK_FALSE(recording.counters[1].worker.has_value());
  CHECK(recording.counters[0].samples[1].value == 0.2);
}

TEST_CASE("store: spans whose times cannot be are refused, and an empty file is no database") {
  const test::TemporaryDirectory place;
  const std::string file = (place.path() / "runs.db").string();
  Run run;
  run.name = "broken";
  run.origin = "measured";
  run.recording.spans.push_back({.worker = RankId{0u}, .stream = 0, .start = TimePoint::at(Duration::picoseconds(9'000'000'000'000'000'000)), .duration = Duration::picoseconds(1), .name = "x", .category = "gemm", .layer = {}, .micro_batch = {}, .bytes = {}, .flops = {}});
  const auto id = append_run(file, run);
  const Store store{file, Store::Mode::kRead};
  CHECK(store.load_recording(id).spans.size() == 1);
  run.recording.spans.front().duration = Duration::picoseconds(9'000'000'000'000'000'000);
  const auto beyond = append_run(file, run);
  CHECK_THROWS_WITH_AS(store.load_recording(beyond), doctest::Contains("has a span from"), UserError);
  const std::string empty = (place.path() / "empty.db").string();
  { std::ofstream{empty}; }
  CHECK_THROWS_WITH_AS((Store{empty, Store::Mode::kRead}), doctest::Contains("is empty"), UserError);
}

TEST_CASE("store: a run that is not there, a file that is not there") {
  const test::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS((Store{in(directory), Store::Mode::kRead}), doctest::Contains("no such file"), UserError);
  append_run(in(directory), sample_run("one"));
  const Store store{in(directory), Store::Mode::kRead};
  CHECK_THROWS_WITH_AS((void)store.load(RunId{std::int64_t{7}}), doctest::Contains("has no run 7"), UserError);
}

TEST_CASE("store: what is no database of ours is refused and left alone") {
  const test::TemporaryDirectory directory;
  const std::string path = in(directory);
  SUBCASE("text") {
    const std::string text = "name: not a database, and longer than a page header of one hundred bytes, "
                             "so that SQLite looks at what it says\n";
    write_file(path, text);
    CHECK_THROWS_WITH_AS(append_run(path, sample_run("x")), doctest::Contains("is not a database"), UserError);
    CHECK(read_file(path) == text);
  }
  SUBCASE("another program's") {
    raw(path, "CREATE TABLE places(id INTEGER)");
    CHECK_THROWS_WITH_AS(append_run(path, sample_run("x")), doctest::Contains("database of another program"), UserError);
  }
  SUBCASE("a newer form") {
    append_run(path, sample_run("x"));
    raw(path, "PRAGMA user_version = 2");
    CHECK_THROWS_WITH_AS(append_run(path, sample_run("x")),
                         doctest::Contains("was written by a newer stepcast (form 2; this one reads up to 1)"), UserError);
    CHECK_THROWS_AS((Store{path, Store::Mode::kRead}), UserError);
  }
  SUBCASE("tables that somebody took away or renamed") {
    append_run(path, sample_run("x"));
    raw(path, "DROP TABLE spans");
    const Store store{path, Store::Mode::kRead};
    CHECK_THROWS_WITH_AS(store.load_recording(store.runs().front().id), doctest::Contains("is not as stepcast writes it: no such table: spans"), UserError);
    raw(path, "ALTER TABLE metrics RENAME COLUMN unit TO units");
    CHECK_THROWS_WITH_AS(append_run(path, sample_run("x")), doctest::Contains("is not as stepcast writes it: "), UserError);
  }
  SUBCASE("a directory") {
    CHECK_THROWS_WITH_AS(append_run(directory.path().string(), sample_run("x")), doctest::Contains("is a directory"), UserError);
  }
  SUBCASE("in a directory that is not there") {
    CHECK_THROWS_WITH_AS(append_run((directory.path() / "no" / "r.db").string(), sample_run("x")),
                         doctest::Contains("cannot be opened"), UserError);
  }
}

TEST_CASE("store: a locked database is waited for, then given up as a system error") {
  const test::TemporaryDirectory directory;
  const std::string path = in(directory);
  append_run(path, sample_run("one"));
  sqlite3* holder = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &holder) == SQLITE_OK);
  REQUIRE(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  Store impatient{path, Store::Mode::kAppend, std::chrono::milliseconds{50}};
  CHECK_THROWS_WITH_AS(impatient.append(sample_run("two")), doctest::Contains("kept the database locked for 50 ms"), SystemError);
  CHECK(impatient.runs().size() == 1);  // readers are not held up
  std::thread release{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    sqlite3_exec(holder, "ROLLBACK", nullptr, nullptr, nullptr);
  }};
  Store patient{path, Store::Mode::kAppend, std::chrono::seconds{20}};
  CHECK_NOTHROW(patient.append(sample_run("two")));
  release.join();
  sqlite3_close(holder);
  CHECK(patient.runs().size() == 2);
}

// The child is killed while its transaction has reached the log file (a megabyte of pages).
TEST_CASE("store: a program killed in the middle of a run leaves the others intact") {
  const test::TemporaryDirectory directory;
  const std::string path = in(directory);
  append_run(path, sample_run("before"));
  Run large = sample_run("large");
  large.recording.spans.assign(1'000'000, large.recording.spans[0]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    append_run(path, large);
    ::_exit(0);
  }
  std::error_code ignored;
  for (int i = 0; i < 20'000; ++i) {
    const auto size = std::filesystem::file_size(path + "-wal", ignored);
    if (!ignored && size > (1u << 20)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));  // else it had finished and the test shows nothing
  CHECK(std::filesystem::file_size(path + "-wal") > (1u << 20));
  append_run(path, sample_run("after"));
  const auto runs = Store{path, Store::Mode::kRead}.runs();
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].name == "before");
  CHECK(runs[1].name == "after");
  CHECK(integrity(path) == "ok");
}

TEST_CASE("store: several programs create and fill one file at once") {
  const test::TemporaryDirectory directory;
  const std::string path = in(directory);
  std::vector<pid_t> children;
  for (int c = 0; c < 6; ++c) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        for (int i = 0; i < 5; ++i) append_run(path, sample_run(fmt::format("{}.{}", c, i)));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(Store{path, Store::Mode::kRead}.runs().size() == 30);
  CHECK(integrity(path) == "ok");
}

// Each CREATE TABLE's name and columns appear in the guide's table, and its query runs.
TEST_CASE("store: the guide describes every table and column, and its query runs") {
  const test::TemporaryDirectory directory;
  const std::string path = in(directory);
  Run run = sample_run("forecast");
  append_run(path, run);
  run.origin = "measured";
  append_run(path, run);
  const std::string guide = read_file(std::string{STEPCAST_SOURCE_DIR} + "/docs/guide/database.md");
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  std::vector<std::pair<std::string, std::string>> columns;
  sqlite3_exec(db,
               "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p "
               "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'",
               [](void* out, int, char** values, char**) {
                 static_cast<decltype(columns)*>(out)->emplace_back(values[0], values[1]);
                 return 0;
               },
               &columns, nullptr);
  CHECK(columns.size() > 40);
  for (const auto& [table, column] : columns) {
    CAPTURE(table);
    CAPTURE(column);
    const std::size_t row = guide.find("\n| " + table + " |");
    REQUIRE(row != std::string::npos);
    const std::string cells = guide.substr(row, guide.find('\n', row + 1) - row);
    CHECK(cells.substr(cells.rfind(" | ")).find(column) != std::string::npos);
  }
  const std::size_t begin = guide.find("```sql\n") + 7;
  const std::string query = guide.substr(begin, guide.find("```", begin) - begin);
  int rows = 0;
  const auto count = [](void* out, int, char**, char**) { return ++*static_cast<int*>(out), 0; };
  CHECK(sqlite3_exec(db, query.c_str(), count, &rows, nullptr) == SQLITE_OK);
  CHECK(rows == 2);
  sqlite3_close(db);
}

TEST_SUITE_END();
