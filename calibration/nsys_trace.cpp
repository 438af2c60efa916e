#include "calibration/nsys_trace.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "calibration/byte_stream.hpp"
#include "calibration/json_stream.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/trace/foreign_database.hpp"

namespace stepcast::calibration {
namespace {

using Row = trace::ForeignDatabase::Row;

constexpr std::int64_t kOurApplication = 0x53746370;  // sim/trace/store.cpp
constexpr int kNvtxMark = 34;
constexpr int kNvtxPushPop = 59;
constexpr int kNvtxStartEnd = 60;
constexpr int kNvtxPushPopNested = 70;  // of threads, export schema 3
constexpr int kNvtxStartEndNested = 71;

// CUPTI's CUpti_ActivityMemcpyKind.
std::string copy_name(std::int64_t kind) {
  constexpr std::array kNames{"copy", "copy HtoD", "copy DtoH", "copy HtoA", "copy AtoH", "copy AtoA", "copy AtoD", "copy DtoA", "copy DtoD", "copy HtoH", "copy PtoP"};
  return kind >= 0 && kind < static_cast<std::int64_t>(kNames.size()) ? kNames[static_cast<std::size_t>(kind)] : "copy";
}

// A file of 16 bytes or more that is none of SQLite's: what it is instead, if that can be told.
void refuse_other_files(const std::string& path) {
  std::array<char, 64> head{};
  ByteStream bytes{path};
  const std::size_t size = bytes.read(head);
  const std::string_view text{head.data(), size};
  const auto refuse = [&](const char* problem, const char* hint) {
    throw UserError(Diagnostic{.where = {path, 0, 0}, .problem = problem, .expected = "an SQLite export of Nsight Systems", .hint = hint});
  };
  if (size == 0) refuse("is empty", "");
  if (text.starts_with("SQLite format 3") && !bytes.compressed()) return;
  refuse(path.ends_with(".nsys-rep") || path.ends_with(".qdrep") ? "is a report of Nsight Systems, not its export" : "is not a SQLite database",
         bytes.compressed() ? "it is compressed: gunzip it first" : "nsys export --type sqlite FILE.nsys-rep");
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_{path}, db_{path} {
    for (const std::string& table : db_.tables()) tables_.insert(table);
  }

  GpuTrace read() {
    check_kind();
    strings();
    kernels("CUPTI_ACTIVITY_KIND_KERNEL");
    kernels("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL");
    copies();
    sets();
    graphs();
    if (gpu_events_ == 0) {
      refuse("has no GPU activity: no rows of CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY or _MEMSET", "nsys profile --trace cuda,nvtx");
    }
    calls("CUPTI_ACTIVITY_KIND_RUNTIME");
    calls("CUPTI_ACTIVITY_KIND_DRIVER");
    ranges();
    facts();
    workers();
    if (without_size_ > 0) builder_.trace.notes.push_back(fmt::format("{} collectives tell no size: exports do not hold it, their kernels' names tell the rest", without_size_));
    builder_.trace.fingerprint = file_fingerprint(path_);
    GpuTrace trace = builder_.finish();
    if (trace.events.empty()) refuse(fmt::format("has {} events of a GPU, none that can be read: {}", gpu_events_, trace.skipped_text()));
    return trace;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& hint = "") const {
    throw UserError(Diagnostic{.where = {path_, 0, 0}, .problem = problem, .expected = "an SQLite export of Nsight Systems, or a file of nvprof", .hint = hint});
  }

  [[nodiscard]] bool has(const std::string& table) const { return tables_.contains(table); }

  void check_kind() {
    if (db_.application() == kOurApplication) refuse("is a database of runs, not an export of a profiler");
    nvprof_ = has("StringTable") && !has("StringIds");
    builder_.trace.tool = nvprof_ ? "nvprof" : "Nsight Systems";
    const bool cupti = std::any_of(tables_.begin(), tables_.end(), [](const std::string& t) { return t.starts_with("CUPTI_ACTIVITY_KIND_"); });
    if (cupti || has("META_DATA_EXPORT") || has("NVTX_EVENTS")) return;
    const std::vector<std::string> names{tables_.begin(), tables_.end()};
    refuse(names.empty() ? "is a database without tables" : "has no table of a profiler among " + join(std::span{names}.first(std::min<std::size_t>(names.size(), 8)), ", "));
  }

  void strings() {
    const std::string table = nvprof_ ? "StringTable" : "StringIds";
    if (!has(table)) return;
    db_.query(nvprof_ ? "SELECT _id_, value FROM StringTable" : "SELECT id, value FROM StringIds", [&](const Row& row) {
      if (const auto id = row.integer(0)) strings_[*id] = row.text(1).value_or("");
    });
  }

  [[nodiscard]] std::string string(std::optional<std::int64_t> id) const {
    if (!id) return "";
    const auto at = strings_.find(*id);
    return at == strings_.end() ? "" : at->second;
  }

  // "column" where the table has it, else NULL: a select list of fixed positions.
  [[nodiscard]] std::string select(const std::string& table, const std::vector<std::string>& wanted) const {
    const std::vector<std::string> there = db_.columns(table);
    std::string list;
    for (const std::string& choices : wanted) {
      std::string found = "NULL";
      for (const std::string& column : split(choices, '|')) {
        if (std::find(there.begin(), there.end(), column) == there.end()) continue;
        found = '"' + column + '"';
        break;
      }
      list += (list.empty() ? "" : ", ") + found;
    }
    return "SELECT " + list + " FROM " + table;
  }

  // Process and device to a worker of its own, later.
  struct Place {
    std::int64_t device = 0;
    std::int64_t process = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  // globalPid and globalTid pack machine, process and thread.
  static std::int64_t process_of(std::optional<std::int64_t> packed) { return packed ? (*packed >> 24U) & 0xffffff : 0; }

  // 0 means none.
  static std::uint64_t launch_key(std::int64_t process, std::optional<std::int64_t> correlation) {
    if (!correlation || *correlation < 0) return 0;
    return (static_cast<std::uint64_t>(process) << 40U) + (static_cast<std::uint64_t>(*correlation) & 0xffffffffffU) + 1;
  }

  // Columns 0 to 5 of a table of activities: start, end, device, stream, process, correlation.
  static std::vector<std::string> activity_columns() { return {"start", "end", "deviceId", "streamId", "globalPid|globalTid", "correlationId"}; }

  // Columns 0 and 1; counted as skipped where there is no such time.
  std::optional<GpuEvent> interval(const Row& row, const char* without) {
    const auto start = row.integer(0);
    const auto end = row.integer(1);
    constexpr std::int64_t kMost = std::int64_t{1} << 62U;
    if (!start || !end) {
      builder_.skip(without);
    } else if (*start < -kMost || *start > kMost || *end < -kMost || *end > kMost) {
      builder_.skip("time out of range");
    } else {
      return GpuEvent{.start_ns = *start, .duration_ns = *end - *start};
    }
    return std::nullopt;
  }

  std::optional<GpuEvent> activity(const Row& row) {
    auto found = interval(row, "no start or end");
    if (!found) return std::nullopt;
    GpuEvent& event = *found;
    const Place place{row.integer(2).value_or(0), process_of(row.integer(4))};
    event.launch = launch_key(place.process, row.integer(5));
    event.stream = builder_.stream(fmt::format("stream {}", row.integer(3).value_or(0)));
    event.worker = places_.try_emplace(place, static_cast<std::uint32_t>(places_.size())).first->second;
    ++gpu_events_;
    return found;
  }

  void kernels(const std::string& table) {
    if (!has(table)) return;
    std::vector<std::string> wanted = activity_columns();
    wanted.emplace_back("demangledName|name|shortName");
    std::unordered_map<std::int64_t, std::pair<std::uint32_t, GpuWork>> known;  // names are few
    db_.query(select(table, wanted), [&](const Row& row) {
      auto event = activity(row);
      if (!event) return;
      const std::int64_t id = row.integer(6).value_or(-1);
      auto at = known.find(id);
      if (at == known.end()) at = known.emplace(id, kernel(string(row.integer(6)))).first;
      event->name = at->second.first;
      event->work = at->second.second;
      if (event->work == GpuWork::kCollective) {
        ++without_size_;
        if (event->duration_ns >= 0) builder_.add_collective(collectives_.at(event->name), event->duration_ns);
      }
      builder_.add(*event);
    });
  }

  std::pair<std::uint32_t, GpuWork> kernel(const std::string& full) {
    const std::string name = full.empty() ? "kernel without a name" : full;
    const GpuWork work = classify_kernel(name);
    if (work != GpuWork::kCollective) return {builder_.name(short_kernel_name(name)), work};
    CollectiveKey key;
    key.collective = "unknown";
    std::string shown = short_kernel_name(name);
    if (const auto told = read_collective_kernel(name)) {
      key.collective = told->collective;
      key.algorithm = told->algorithm;
      key.protocol = told->protocol;
      shown = fmt::format("{}{}{}", told->collective, told->algorithm.empty() ? "" : " " + told->algorithm, told->protocol.empty() ? "" : " " + told->protocol);
    }
    const std::uint32_t index = builder_.name(shown);
    collectives_[index] = key;
    return {index, work};
  }

  void copies() {
    for (const char* table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2"}) {
      if (!has(table)) continue;
      std::vector<std::string> wanted = activity_columns();
      wanted.insert(wanted.end(), {"bytes", "copyKind"});
      db_.query(select(table, wanted), [&](const Row& row) {
        auto event = activity(row);
        if (!event) return;
        event->work = GpuWork::kCopy;
        event->bytes = row.integer(6);
        event->name = builder_.name(copy_name(row.integer(7).value_or(0)));
        builder_.add(*event);
      });
    }
  }

  void sets() {
    const std::string table = "CUPTI_ACTIVITY_KIND_MEMSET";
    if (!has(table)) return;
    std::vector<std::string> wanted = activity_columns();
    wanted.emplace_back("bytes");
    db_.query(select(table, wanted), [&](const Row& row) {
      auto event = activity(row);
      if (!event) return;
      event->work = GpuWork::kMemset;
      event->bytes = row.integer(6);
      event->name = builder_.name("memset");
      builder_.add(*event);
    });
  }

  void graphs() {
    const std::string table = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
    if (!has(table)) return;
    std::size_t count = 0;
    db_.query(select(table, activity_columns()), [&](const Row& row) {
      auto event = activity(row);
      if (!event) return;
      event->work = GpuWork::kGraph;
      event->name = builder_.name("CUDA graph");
      builder_.add(*event);
      ++count;
    });
    if (count > 0) builder_.trace.notes.push_back(fmt::format("{} CUDA graphs are one row each: profile with --cuda-graph-trace=node to see their kernels", count));
  }

  void calls(const std::string& table) {
    if (!has(table)) return;
    const std::vector<std::string> wanted{"start", "end", "globalTid|processId", "correlationId", "nameId|cbid"};
    db_.query(select(table, wanted), [&](const Row& row) {
      if (string(row.integer(4)).find("Launch") == std::string::npos) return builder_.skip("calls of the CUDA runtime that launch no kernel");
      const auto call = interval(row, "calls that never end");
      const std::uint64_t key = launch_key(process_of(row.integer(2)), row.integer(3));
      if (call && key != 0) builder_.add_launch({.launch = key, .start_ns = call->start_ns, .duration_ns = call->duration_ns});
    });
  }

  void ranges() {
    if (!has("NVTX_EVENTS")) return;
    const std::vector<std::string> wanted{"start", "end", "eventType", "text", "textId", "globalTid"};
    db_.query(select("NVTX_EVENTS", wanted), [&](const Row& row) {
      const std::int64_t type = row.integer(2).value_or(0);
      if (type == kNvtxMark) return builder_.skip("NVTX marks");
      if (type != kNvtxPushPop && type != kNvtxStartEnd && type != kNvtxPushPopNested && type != kNvtxStartEndNested) return builder_.skip("NVTX names of domains, categories and threads");
      auto found = interval(row, "NVTX ranges that never end");
      if (!found) return;
      GpuEvent& event = *found;
      const std::string text = row.text(3).value_or(string(row.integer(4)));
      const bool step = is_step_name(text);
      event.name = builder_.name(text.empty() ? "range without a name" : text.substr(0, 160));
      event.stream = builder_.stream(step ? "steps" : "annotations");
      event.work = step ? GpuWork::kStep : GpuWork::kAnnotation;
      event.worker = host_of(process_of(row.integer(5)));
      builder_.add(event);
    });
  }

  // A process' first device shows its ranges.
  std::uint32_t host_of(std::int64_t process) {
    for (const auto& [place, index] : places_) {
      if (place.process == process) return index;
    }
    return places_.begin()->second;
  }

  void facts() {
    auto& facts = builder_.trace.facts;
    if (has("META_DATA_EXPORT")) {
      db_.query(select("META_DATA_EXPORT", {"name", "value"}), [&](const Row& row) {
        if (row.text(0) == "EXPORT_SCHEMA_VERSION") facts.emplace_back("schema", printable(row.text(1).value_or("")));
      });
    }
    if (has("TARGET_INFO_SESSION_START_TIME")) {
      db_.query(select("TARGET_INFO_SESSION_START_TIME", {"utcTime"}), [&](const Row& row) {
        if (const auto time = row.text(0)) facts.emplace_back("started", printable(*time));
      });
    }
    std::set<std::string> gpus;
    if (has("TARGET_INFO_GPU")) {
      db_.query(select("TARGET_INFO_GPU", {"name"}), [&](const Row& row) {
        if (const auto name = row.text(0)) gpus.insert(printable(*name));
      });
    }
    builder_.trace.gpus.assign(gpus.begin(), gpus.end());
    if (gpus.empty()) builder_.trace.notes.emplace_back("the file does not name its GPUs");
  }

  // Devices are workers by their number where each is one process' own; else they are counted, by device and process.
  void workers() {
    std::set<std::int64_t> devices;
    bool numbers = true;
    for (const auto& [place, index] : places_) numbers = devices.insert(place.device).second && place.device >= 0 && place.device < (1 << 24) && numbers;
    std::vector<std::uint32_t> worker_of(places_.size());
    std::uint32_t next = 0;
    for (const auto& [place, index] : places_) {
      const std::uint32_t worker = numbers ? static_cast<std::uint32_t>(place.device) : next;
      ++next;
      worker_of[index] = worker;
      builder_.trace.workers[worker] = numbers ? fmt::format("device {}", place.device) : fmt::format("device {} of process {}", place.device, place.process);
    }
    for (GpuEvent& event : builder_.trace.events) event.worker = worker_of[event.worker];
  }

  std::string path_;
  trace::ForeignDatabase db_;
  std::set<std::string> tables_;
  bool nvprof_ = false;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::map<Place, std::uint32_t> places_;
  std::map<std::uint32_t, CollectiveKey> collectives_;
  std::size_t gpu_events_ = 0;
  std::size_t without_size_ = 0;
  GpuTraceBuilder builder_;
};

}  // namespace

GpuTrace read_nsys_trace(const std::string& path) {
  refuse_other_files(path);
  return Reader{path}.read();
}

}  // namespace stepcast::calibration
