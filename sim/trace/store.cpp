#include "sim/trace/store.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/hash.hpp"
#include "sim/trace/sqlite_database.hpp"

namespace stepcast::trace {
namespace {

constexpr std::int64_t kApplication = 0x53746370;  // "Stcp": marks the file as ours

constexpr const char* kSchema = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL, origin TEXT NOT NULL, scenario TEXT NOT NULL, scenario_hash TEXT NOT NULL,
  version TEXT NOT NULL, seed INTEGER NOT NULL, created TEXT NOT NULL, results TEXT NOT NULL);
CREATE INDEX runs_by_scenario ON runs(scenario_hash);
CREATE TABLE metrics(
  run INTEGER NOT NULL REFERENCES runs(id), key TEXT NOT NULL, value REAL, unit TEXT NOT NULL,
  position INTEGER NOT NULL, PRIMARY KEY(run, key)) WITHOUT ROWID;
CREATE TABLE breakdown(
  run INTEGER NOT NULL REFERENCES runs(id), part TEXT NOT NULL, time_ps INTEGER NOT NULL,
  position INTEGER NOT NULL, PRIMARY KEY(run, part)) WITHOUT ROWID;
CREATE TABLE memory(
  run INTEGER NOT NULL REFERENCES runs(id), worker INTEGER NOT NULL, memory TEXT NOT NULL, category TEXT NOT NULL,
  bytes INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY(run, worker, memory, category)) WITHOUT ROWID;
CREATE TABLE streams(
  run INTEGER NOT NULL REFERENCES runs(id), stream INTEGER NOT NULL, name TEXT NOT NULL,
  PRIMARY KEY(run, stream)) WITHOUT ROWID;
CREATE TABLE workers(
  run INTEGER NOT NULL REFERENCES runs(id), worker INTEGER NOT NULL, label TEXT NOT NULL,
  PRIMARY KEY(run, worker)) WITHOUT ROWID;
CREATE TABLE spans(
  run INTEGER NOT NULL REFERENCES runs(id), position INTEGER NOT NULL, worker INTEGER NOT NULL,
  stream INTEGER NOT NULL, start_ps INTEGER NOT NULL, duration_ps INTEGER NOT NULL, name TEXT NOT NULL,
  category TEXT NOT NULL, layer INTEGER, micro_batch INTEGER, bytes INTEGER, flops REAL,
  PRIMARY KEY(run, position)) WITHOUT ROWID;
CREATE TABLE counters(
  run INTEGER NOT NULL REFERENCES runs(id), counter INTEGER NOT NULL, name TEXT NOT NULL, unit TEXT NOT NULL,
  worker INTEGER, PRIMARY KEY(run, counter)) WITHOUT ROWID;
CREATE TABLE samples(
  run INTEGER NOT NULL, counter INTEGER NOT NULL, position INTEGER NOT NULL, time_ps INTEGER NOT NULL, value REAL,
  PRIMARY KEY(run, counter, position)) WITHOUT ROWID;
)sql";

std::int64_t rank_number(RankId worker) { return static_cast<std::int64_t>(worker.value()); }

[[noreturn]] void refuse_file(const std::string& path, std::string problem, std::string hint) {
  throw UserError(Diagnostic{.where = {path, 0, 0}, .problem = std::move(problem), .hint = std::move(hint)});
}

}  // namespace

std::string scenario_hash(const std::string& text) {
  Fingerprint key;
  key.add(std::string_view{text});
  return fmt::format("{:016x}", key.value());
}

class Store::Database {
 public:
  Database(const std::string& path, Mode mode, std::chrono::milliseconds patience)
      : db_{path, mode == Mode::kAppend, patience} {
    if (mode == Mode::kAppend) {
      if (db_.integer("SELECT count(*) FROM sqlite_master") == 0) create();
    }
    require_ours();
    db_.execute("PRAGMA foreign_keys = ON");
    // With the log, this survives a crash of the program; a power cut may lose the latest run whole.
    db_.execute("PRAGMA synchronous = NORMAL");
  }

  RunId append(const Run& run) {
    Transaction transaction{db_};
    const RunId id = insert(run, {});
    transaction.commit();
    return id;
  }

  Appended append_file(const Run& run, const std::string& fingerprint, const SpanSource& more) {
    Transaction transaction{db_};
    Statement query{db_, "SELECT id FROM runs WHERE CASE WHEN json_valid(results) THEN json_extract(results, '$.fingerprint') END = ? ORDER BY id LIMIT 1"};
    if (query.bind(fingerprint).next()) return {RunId{query.integer()}, false};
    const RunId id = insert(run, more);
    transaction.commit();
    return {id, true};
  }

  // Within a transaction.
  RunId insert(const Run& run, const SpanSource& more) {
    const std::string hash = scenario_hash(run.scenario);
    Statement row{db_,
                  "INSERT INTO runs(name, origin, scenario, scenario_hash, version, seed, created, results) "
                  "VALUES(?,?,?,?,?,?,?,?)"};
    row.bind(run.name).bind(run.origin).bind(run.scenario).bind(hash).bind(run.version);
    row.bind(static_cast<std::int64_t>(run.seed)).bind(run.created).bind(run.results).run();
    const RunId id{static_cast<std::int64_t>(sqlite3_last_insert_rowid(db_.handle()))};
    append_results(id, run);
    append_recording(id, run.recording, more);
    return id;
  }

  std::vector<RunSummary> runs() const {
    std::vector<RunSummary> result;
    Statement query{db_, "SELECT id, name, origin, scenario_hash, version, seed, created FROM runs ORDER BY id"};
    while (query.next()) {
      RunSummary summary;
      summary.id = RunId{query.integer()};
      summary.name = query.text();
      summary.origin = query.text();
      summary.scenario_hash = query.text();
      summary.version = query.text();
      summary.seed = static_cast<std::uint64_t>(query.integer());
      summary.created = query.text();
      result.push_back(std::move(summary));
    }
    return result;
  }

  Run load(RunId id) const {
    Run run;
    Statement query{db_, "SELECT name, origin, scenario, version, seed, created, results FROM runs WHERE id = ?"};
    if (!query.bind(id.value()).next()) {
      refuse_file(db_.path(), fmt::format("has no run {}", id.value()), "");
    }
    run.name = query.text();
    run.origin = query.text();
    run.scenario = query.text();
    run.version = query.text();
    run.seed = static_cast<std::uint64_t>(query.integer());
    run.created = query.text();
    run.results = query.text();
    load_results(id, run);
    load_tracks(id, run.recording);
    run.recording.name = run.name;
    run.recording.origin = run.origin;
    return run;
  }

  Recording load_recording(RunId id) const {
    Recording recording = load(id).recording;
    Statement spans{db_,
                    "SELECT worker, stream, start_ps, duration_ps, name, category, layer, micro_batch, bytes, flops "
                    "FROM spans WHERE run = ? ORDER BY position"};
    spans.bind(id.value());
    while (spans.next()) {
      Span span;
      span.worker = RankId{static_cast<std::uint32_t>(spans.integer())};
      span.stream = static_cast<std::uint8_t>(spans.integer());
      const std::int64_t start = spans.integer();
      const std::int64_t duration = spans.integer();
      std::int64_t end = 0;
      if (duration < 0 || __builtin_add_overflow(start, duration, &end)) {
        refuse_file(db_.path(), fmt::format("run {} has a span from {} ps for {} ps", id.value(), start, duration), "restore a copy, or name a new file");
      }
      span.start = TimePoint::at(Duration::picoseconds(start));
      span.duration = Duration::picoseconds(duration);
      span.name = spans.text();
      span.category = spans.text();
      span.layer = small(spans.optional_integer());
      span.micro_batch = small(spans.optional_integer());
      span.bytes = spans.optional_integer();
      span.flops = spans.optional_number();
      recording.spans.push_back(std::move(span));
    }
    load_counters(id, recording);
    return recording;
  }

 private:
  static std::optional<std::uint16_t> small(std::optional<std::int64_t> value) {
    if (!value) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  }

  void create() {
    // The journal mode cannot change inside a transaction; two creators at once wait for each other.
    db_.execute("PRAGMA journal_mode = WAL");
    Transaction transaction{db_};
    if (db_.integer("SELECT count(*) FROM sqlite_master") == 0) {
      db_.execute(kSchema);
      db_.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, kStoreVersion).c_str());
    }
    transaction.commit();
  }

  void require_ours() const {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(db_.path(), ignored) && std::filesystem::file_size(db_.path(), ignored) == 0) refuse_file(db_.path(), "is empty", "name a file written with --db, or a new one");
    if (db_.integer("PRAGMA application_id") != kApplication) {
      refuse_file(db_.path(), "is a database of another program", "name a file written with --db, or a new one");
    }
    const std::int64_t version = db_.integer("PRAGMA user_version");
    if (version > kStoreVersion) {
      refuse_file(db_.path(), fmt::format("was written by a newer stepcast (form {}; this one reads up to {})", version, kStoreVersion),
                  "update this program, or name a new file");
    }
    if (version < 1) refuse_file(db_.path(), fmt::format("has the unknown form {}", version), "name a new file");
  }

  void append_results(RunId id, const Run& run) {
    Statement metric{db_, "INSERT INTO metrics(run, key, value, unit, position) VALUES(?,?,?,?,?)"};
    std::int64_t position = 0;
    for (const Metric& m : run.metrics) metric.bind(id.value()).bind(m.key).bind(m.value).bind(m.unit).bind(position++).run();
    Statement part{db_, "INSERT INTO breakdown(run, part, time_ps, position) VALUES(?,?,?,?)"};
    position = 0;
    for (const BreakdownPart& p : run.breakdown) part.bind(id.value()).bind(p.part).bind(p.time.count()).bind(position++).run();
    Statement memory{db_, "INSERT INTO memory(run, worker, memory, category, bytes, position) VALUES(?,?,?,?,?,?)"};
    position = 0;
    for (const MemoryPart& m : run.memory) {
      memory.bind(id.value()).bind(rank_number(m.worker)).bind(m.memory).bind(m.category).bind(m.bytes).bind(position++).run();
    }
  }

  void append_recording(RunId id, const Recording& recording, const SpanSource& more) {
    Statement stream{db_, "INSERT INTO streams(run, stream, name) VALUES(?,?,?)"};
    std::int64_t position = 0;
    for (const std::string& name : recording.streams) stream.bind(id.value()).bind(position++).bind(name).run();
    Statement worker{db_, "INSERT INTO workers(run, worker, label) VALUES(?,?,?)"};
    for (const auto& [rank, label] : recording.workers) worker.bind(id.value()).bind(rank_number(rank)).bind(label).run();
    Statement span{db_,
                   "INSERT INTO spans(run, position, worker, stream, start_ps, duration_ps, name, category, layer, "
                   "micro_batch, bytes, flops) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"};
    position = 0;
    const auto add = [&](const Span& s) {
      span.bind(id.value()).bind(position++).bind(rank_number(s.worker)).bind(std::int64_t{s.stream});
      span.bind(s.start.count()).bind(s.duration.count()).bind(s.name).bind(s.category);
      span.bind(s.layer).bind(s.micro_batch).bind(s.bytes).bind(s.flops).run();
    };
    for (const Span& s : recording.spans) add(s);
    for (Span s; more && more(s);) add(s);
    Statement counter{db_, "INSERT INTO counters(run, counter, name, unit, worker) VALUES(?,?,?,?,?)"};
    Statement sample{db_, "INSERT INTO samples(run, counter, position, time_ps, value) VALUES(?,?,?,?,?)"};
    std::int64_t number = 0;
    for (const Counter& c : recording.counters) {
      counter.bind(id.value()).bind(number).bind(c.name).bind(c.unit);
      if (c.worker) {
        counter.bind(rank_number(*c.worker));
      } else {
        counter.bind_null();
      }
      counter.run();
      position = 0;
      for (const Counter::Sample& s : c.samples) {
        sample.bind(id.value()).bind(number).bind(position++).bind(s.time.count()).bind(s.value).run();
      }
      ++number;
    }
  }

  void load_results(RunId id, Run& run) const {
    Statement metrics{db_, "SELECT key, value, unit FROM metrics WHERE run = ? ORDER BY position"};
    metrics.bind(id.value());
    while (metrics.next()) {
      Metric m;
      m.key = metrics.text();
      m.value = metrics.optional_number();
      m.unit = metrics.text();
      run.metrics.push_back(std::move(m));
    }
    Statement parts{db_, "SELECT part, time_ps FROM breakdown WHERE run = ? ORDER BY position"};
    parts.bind(id.value());
    while (parts.next()) {
      BreakdownPart p;
      p.part = parts.text();
      p.time = Duration::picoseconds(parts.integer());
      run.breakdown.push_back(std::move(p));
    }
    Statement memory{db_, "SELECT worker, memory, category, bytes FROM memory WHERE run = ? ORDER BY position"};
    memory.bind(id.value());
    while (memory.next()) {
      MemoryPart m;
      m.worker = RankId{static_cast<std::uint32_t>(memory.integer())};
      m.memory = memory.text();
      m.category = memory.text();
      m.bytes = memory.integer();
      run.memory.push_back(std::move(m));
    }
  }

  void load_tracks(RunId id, Recording& recording) const {
    Statement streams{db_, "SELECT name FROM streams WHERE run = ? ORDER BY stream"};
    streams.bind(id.value());
    while (streams.next()) recording.streams.push_back(streams.text());
    Statement workers{db_, "SELECT worker, label FROM workers WHERE run = ?"};
    workers.bind(id.value());
    while (workers.next()) {
      const RankId rank{static_cast<std::uint32_t>(workers.integer())};
      recording.workers[rank] = workers.text();
    }
  }

  void load_counters(RunId id, Recording& recording) const {
    Statement counters{db_, "SELECT name, unit, worker FROM counters WHERE run = ? ORDER BY counter"};
    counters.bind(id.value());
    while (counters.next()) {
      Counter c;
      c.name = counters.text();
      c.unit = counters.text();
      if (const auto worker = counters.optional_integer()) c.worker = RankId{static_cast<std::uint32_t>(*worker)};
      recording.counters.push_back(std::move(c));
    }
    Statement samples{db_, "SELECT counter, time_ps, value FROM samples WHERE run = ? ORDER BY counter, position"};
    samples.bind(id.value());
    while (samples.next()) {
      const auto counter = static_cast<std::size_t>(samples.integer());
      const TimePoint time = TimePoint::at(Duration::picoseconds(samples.integer()));
      if (counter >= recording.counters.size()) refuse_file(db_.path(), "has samples without their counter", "");
      if (const auto value = samples.optional_number()) recording.counters[counter].samples.push_back({time, *value});
    }
  }

  Connection db_;
};

Store::Store(const std::string& path, Mode mode, std::chrono::milliseconds patience)
    : database_{std::make_unique<Database>(path, mode, patience)} {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

RunId Store::append(const Run& run) { return database_->append(run); }
Store::Appended Store::append_file(const Run& run, const std::string& fingerprint, const SpanSource& more) { return database_->append_file(run, fingerprint, more); }
std::vector<RunSummary> Store::runs() const { return database_->runs(); }
Run Store::load(RunId run) const { return database_->load(run); }
Recording Store::load_recording(RunId run) const { return database_->load_recording(run); }

RunId append_run(const std::string& path, const Run& run) { return Store{path, Store::Mode::kAppend}.append(run); }

}  // namespace stepcast::trace
