#include "calibration/kineto_trace.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "calibration/json_stream.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

constexpr int kMicrosecondsInNs = 3;  // decimals
constexpr std::int64_t kMostRanks = 1 << 24;

using Scalar = JsonStream::Scalar;

std::optional<std::int64_t> integer(const Scalar& value) {
  if (value.kind != JsonStream::Kind::kNumber && value.kind != JsonStream::Kind::kString) return std::nullopt;
  return scaled_integer(value.text, 0);
}

// One element of traceEvents; reused, so that reading allocates little.
struct TraceEvent {
  std::string phase, category, name;
  std::string tid;
  std::optional<std::int64_t> ts_ns, dur_ns, pid;
  bool has_ts = false, has_dur = false;
  std::optional<std::int64_t> device, stream, correlation, bytes;
  std::string collective, dtype;
  std::optional<std::int64_t> in_elements, out_elements, group;

  void clear() {
    for (std::string* text : {&phase, &category, &name, &tid, &collective, &dtype}) text->clear();
    for (auto* value : {&ts_ns, &dur_ns, &pid, &device, &stream, &correlation, &bytes, &in_elements, &out_elements, &group}) value->reset();
    has_ts = has_dur = false;
  }
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_{path}, bytes_{path}, json_{bytes_} {}

  GpuTrace read() {
    builder_.trace.tool = "PyTorch profiler";
    try {
      document();
    } catch (const JsonCut& cut) {
      if (!in_events_) refuse(cut.position == 0 ? "is empty" : "ends before its first event", "was the trace written to the end?");
      builder_.trace.notes.push_back(fmt::format("the file ends within event {}: what comes before is taken", seen_ + 1));
    }
    if (bytes_.cut()) builder_.trace.notes.push_back("the gzip stream is cut off");
    if (!found_events_) refuse_document();
    check_found();
    workers();
    builder_.trace.fingerprint = bytes_.fingerprint();
    builder_.trace.facts.emplace_back("bytes", std::to_string(bytes_.bytes_read()));
    GpuTrace trace = builder_.finish();
    if (trace.events.empty()) refuse(fmt::format("has {} events of a GPU, none that can be read: {}", gpu_events_, trace.skipped_text()));
    return trace;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& hint = "") const {
    throw UserError(Diagnostic{.where = {path_, 0, 0}, .problem = problem, .expected = "a trace of the PyTorch profiler: JSON with traceEvents, plain or gzip", .hint = hint});
  }

  [[noreturn]] void refuse_document() const {
    if (keys_.contains("nodes") && keys_.contains("schema")) refuse("is an execution trace (ET) of PyTorch: nodes without times on the GPU", "export it with profiler.export_chrome_trace()");
    if (keys_.contains("workload_graph")) refuse("is a Chakra graph, not a profile");
    refuse(keys_.empty() ? "has no traceEvents" : "has no traceEvents among " + join(std::vector<std::string>{keys_.begin(), keys_.end()}, ", "));
  }

  void document() {
    JsonStream::Kind kind = JsonStream::Kind::kEnd;
    try {
      kind = json_.peek();
    } catch (const UserError&) {
      refuse("is no JSON");
    }
    if (kind == JsonStream::Kind::kEnd) refuse("is empty");
    if (kind == JsonStream::Kind::kArray) return events();
    if (kind != JsonStream::Kind::kObject) refuse("is no JSON object");
    json_.object([&](std::string_view key) {
      if (keys_.size() < 12) keys_.insert(printable(key.substr(0, 40)));
      if (key == "traceEvents") {
        events();
      } else if (key == "deviceProperties" && json_.peek() == JsonStream::Kind::kArray) {
        json_.array([&] { device_properties(); });
      } else if (key == "distributedInfo" && json_.peek() == JsonStream::Kind::kObject) {
        json_.object([&](std::string_view k) { distributed(k); });
      } else if (key == "schemaVersion") {
        builder_.trace.facts.emplace_back("schema", printable(json_.scalar().text));
      } else {
        json_.skip();
      }
    });
  }

  void device_properties() {
    if (json_.peek() != JsonStream::Kind::kObject) return json_.skip();
    std::optional<std::int64_t> id;
    std::string name;
    json_.object([&](std::string_view key) {
      if (key == "id") {
        id = integer(json_.scalar());
      } else if (key == "name") {
        name = printable(json_.scalar().text);
      } else {
        json_.skip();
      }
    });
    if (id && !name.empty()) devices_[*id] = name;
  }

  void distributed(std::string_view key) {
    if (key == "rank") {
      rank_ = integer(json_.scalar());
    } else if (key == "world_size") {
      world_ = integer(json_.scalar());
    } else if (key == "nccl_version") {
      builder_.trace.facts.emplace_back("NCCL", printable(json_.scalar().text));
    } else {
      json_.skip();
    }
  }

  void events() {
    found_events_ = true;
    if (json_.peek() != JsonStream::Kind::kArray) refuse("has traceEvents that are no list");
    in_events_ = true;
    json_.array([&] {
      if (json_.peek() != JsonStream::Kind::kObject) {
        json_.skip();
        return builder_.skip("no object in the list of events");
      }
      event_.clear();
      json_.object([&](std::string_view key) { member(key); });
      ++seen_;
      take();
    });
  }

  void member(std::string_view key) {
    const auto text = [&](std::string& into) { into = json_.scalar().text; };
    if (key == "ph") return text(event_.phase);
    if (key == "cat") return text(event_.category);
    if (key == "name") return text(event_.name);
    if (key == "tid") return text(event_.tid);
    if (key == "pid") {
      event_.pid = integer(json_.scalar());
      return;
    }
    if (key == "ts" || key == "dur") {
      const Scalar value = json_.scalar();
      (key == "ts" ? event_.ts_ns : event_.dur_ns) = scaled_integer(value.text, kMicrosecondsInNs);
      (key == "ts" ? event_.has_ts : event_.has_dur) = true;
      return;
    }
    if (key == "args" && json_.peek() == JsonStream::Kind::kObject) return json_.object([&](std::string_view k) { argument(k); });
    json_.skip();
  }

  void argument(std::string_view key) {
    const auto number = [&](std::optional<std::int64_t>& into) { into = integer(json_.scalar()); };
    if (key == "device") return number(event_.device);
    if (key == "stream") return number(event_.stream);
    if (key == "correlation") return number(event_.correlation);
    if (key == "bytes") return number(event_.bytes);
    if (key == "In msg nelems") return number(event_.in_elements);
    if (key == "Out msg nelems") return number(event_.out_elements);
    if (key == "Group size") return number(event_.group);
    if (key == "Collective name") {
      event_.collective = json_.scalar().text;
    } else if (key == "dtype") {
      event_.dtype = json_.scalar().text;
    } else {
      json_.skip();
    }
  }

  void take() {
    const TraceEvent& e = event_;
    if (e.phase != "X") {
      builder_.skip(e.phase == "M" ? "names of processes and threads (ph M)" : e.phase == "s" || e.phase == "f" || e.phase == "t" ? "flow arrows (ph s, f)"
                    : e.phase == "i" || e.phase == "I" || e.phase == "R" ? "instants (ph i)" : e.phase == "C" ? "counters (ph C)" : "events of another kind (ph " + printable(e.phase.substr(0, 8)) + ")");
      return;
    }
    const auto is = [&](std::initializer_list<const char*> words) { return std::any_of(words.begin(), words.end(), [&](const char* w) { return e.category == w; }); };
    const bool kernel = is({"kernel", "Kernel"});
    const bool copy = is({"gpu_memcpy", "Memcpy", "gpu_memcpy2"});
    const bool set = is({"gpu_memset", "Memset"});
    const bool host_range = is({"user_annotation"});
    const bool gpu_range = is({"gpu_user_annotation"});
    const bool call = is({"cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "runtime"});
    if (!kernel && !copy && !set && !host_range && !gpu_range && !call) return builder_.skip(skipped_category(e.category));
    if (!e.ts_ns || !e.dur_ns) return builder_.skip(e.has_ts && e.has_dur ? "time that is no number, or too large" : "no time or duration");
    if (call) {
      if (e.name.find("Launch") == std::string::npos || !e.correlation) return builder_.skip("calls of the CUDA runtime that launch no kernel");
      builder_.add_launch({.launch = launch_key(*e.correlation), .start_ns = *e.ts_ns, .duration_ns = *e.dur_ns});
      ++launch_calls_;
      return;
    }
    GpuEvent event{.start_ns = *e.ts_ns, .duration_ns = *e.dur_ns};
    if (host_range || gpu_range) return add_range(event, gpu_range);
    const std::int64_t device = e.device.value_or(e.pid.value_or(0));
    if (device < 0 || device >= kMostRanks) return builder_.skip("device number out of range");
    event.worker = static_cast<std::uint32_t>(device);
    event.stream = builder_.stream(e.stream ? fmt::format("stream {}", *e.stream) : "stream " + e.tid.substr(0, 24));
    if (e.correlation) event.launch = launch_key(*e.correlation);
    event.bytes = e.bytes && *e.bytes >= 0 ? e.bytes : std::nullopt;
    if (kernel) {
      event.work = classify_kernel(e.name);
      if (event.work == GpuWork::kCollective) return add_collective(event);
      event.name = builder_.name(short_kernel_name(e.name));
    } else {
      event.work = copy ? GpuWork::kCopy : GpuWork::kMemset;
      event.name = builder_.name(e.name.substr(0, 160));
    }
    ++gpu_events_;
    used_devices_.insert(event.worker);
    builder_.add(event);
  }

  static std::string skipped_category(const std::string& category) {
    if (category == "cpu_op" || category == "Operator" || category == "operator") return "host operators (cpu_op)";
    if (category == "python_function") return "Python functions (python_function)";
    return category.empty() ? "events without a category" : "events of category " + printable(category.substr(0, 40));
  }

  // 0 means none.
  static std::uint64_t launch_key(std::int64_t correlation) { return static_cast<std::uint64_t>(correlation) + 1; }

  void add_range(GpuEvent event, bool gpu) {
    const TraceEvent& e = event_;
    const bool step = is_step_name(e.name);
    if (gpu && step) return builder_.skip("steps as the GPU saw them (the host's are taken)");
    event.work = step ? GpuWork::kStep : GpuWork::kAnnotation;
    event.stream = builder_.stream(step ? "steps" : gpu ? "annotations on the GPU" : "annotations");
    event.name = builder_.name(e.name.substr(0, 160));
    event.worker = gpu && e.pid && *e.pid >= 0 && *e.pid < kMostRanks ? static_cast<std::uint32_t>(*e.pid) : kHost;
    builder_.add(event);
  }

  void add_collective(GpuEvent event) {
    const TraceEvent& e = event_;
    const auto kernel = read_collective_kernel(e.name);
    CollectiveKey key;
    key.collective = !e.collective.empty() ? printable(collective_of(e.collective)) : kernel ? kernel->collective : "unknown";
    key.dtype = printable(e.dtype);
    if (kernel) {
      key.algorithm = kernel->algorithm;
      key.protocol = kernel->protocol;
    }
    key.ranks = e.group && *e.group > 0 && *e.group < kMostRanks ? *e.group : 0;
    // The gathered output, what is received; else the input.
    const auto& elements = key.collective == "all_gather" || key.collective == "recv" || key.collective == "gather" ? e.out_elements : e.in_elements;
    const auto size = torch_element_bytes(e.dtype);
    constexpr std::int64_t kMostElements = std::int64_t{1} << 50U;
    if (elements && size && *elements >= 0 && *elements < kMostElements) {
      key.bytes = *elements * *size;
      event.bytes = key.bytes;
    } else {
      event.bytes.reset();
      ++without_size_;
    }
    event.name = builder_.name(fmt::format("{}{}{}{}{}", key.collective, key.dtype.empty() ? "" : " " + key.dtype, key.ranks > 0 ? fmt::format(" of {}", key.ranks) : "",
                                           key.algorithm.empty() ? "" : " " + key.algorithm, key.protocol.empty() ? "" : " " + key.protocol));
    if (event.duration_ns >= 0) builder_.add_collective(key, event.duration_ns);
    ++gpu_events_;
    used_devices_.insert(event.worker);
    builder_.add(event);
  }

  void check_found() const {
    if (gpu_events_ > 0) return;
    refuse(seen_ == 0 ? "has no events" : fmt::format("has {} events, none of them of a GPU (kernel, gpu_memcpy, gpu_memset)", seen_),
           seen_ == 0 ? "" : "profile with ProfilerActivity.CUDA");
  }

  // The rank that distributedInfo or the file's name tells, where one device was used; else the devices' numbers.
  void workers() {
    const auto told = rank_ && *rank_ >= 0 && *rank_ < kMostRanks ? rank_ : rank_of_name();
    const bool one = used_devices_.size() == 1;
    const auto worker_of = [&](std::uint32_t device) { return one && told ? static_cast<std::uint32_t>(*told) : device; };
    const std::uint32_t first = worker_of(*used_devices_.begin());
    for (const std::uint32_t device : used_devices_) {
      std::string label = told ? fmt::format("rank {}{}", *told, world_ ? fmt::format(" of {}", *world_) : "") : fmt::format("device {}", device);
      if (told && !one) label += fmt::format(" device {}", device);
      builder_.trace.workers[worker_of(device)] = label;
      if (const auto name = devices_.find(device); name != devices_.end()) gpus_.insert(name->second);
    }
    if (gpus_.empty() && !devices_.empty()) gpus_.insert(devices_.begin()->second);
    for (GpuEvent& event : builder_.trace.events) event.worker = used_devices_.contains(event.worker) ? worker_of(event.worker) : first;
    builder_.trace.gpus.assign(gpus_.begin(), gpus_.end());
    if (world_) builder_.trace.facts.emplace_back("ranks", std::to_string(*world_));
    if (gpus_.empty()) builder_.trace.notes.emplace_back("the trace does not name its GPU");
    if (without_size_ > 0) builder_.trace.notes.push_back(fmt::format("{} collectives tell no size (PyTorch before 2.2, or profiled without record_shapes)", without_size_));
    if (launch_calls_ == 0) builder_.trace.notes.emplace_back("no launching calls: launch times are not known");
  }

  // "..._rank3.json", "rank_3", "rank-3".
  [[nodiscard]] std::optional<std::int64_t> rank_of_name() const {
    const std::string name = std::filesystem::path{path_}.filename().string();
    std::size_t at = name.rfind("rank");
    if (at == std::string::npos) return std::nullopt;
    at += 4;
    if (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), rank);
    if (error != std::errc{} || rank < 0 || rank >= kMostRanks) return std::nullopt;
    return rank;
  }

  static constexpr std::uint32_t kHost = 0xffffffff;  // until the workers are known

  std::string path_;
  ByteStream bytes_;
  JsonStream json_;
  GpuTraceBuilder builder_;
  TraceEvent event_;
  std::set<std::string> keys_;
  bool found_events_ = false;
  bool in_events_ = false;
  std::size_t seen_ = 0;
  std::size_t gpu_events_ = 0;
  std::size_t launch_calls_ = 0;
  std::size_t without_size_ = 0;
  std::map<std::int64_t, std::string> devices_;
  std::set<std::uint32_t> used_devices_;
  std::set<std::string> gpus_;
  std::optional<std::int64_t> rank_, world_;
};

}  // namespace

GpuTrace read_kineto_trace(const std::string& path) { return Reader{path}.read(); }

}  // namespace stepcast::calibration
