#include "sim/trace/perfetto.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "sim/base/file.hpp"
#include "sim/trace/json_text.hpp"

namespace stepcast::trace {
namespace {

// Process 0 is the kernel's idle task to trace viewers, so ranks start at 1.
std::int64_t process_of(RankId worker) { return static_cast<std::int64_t>(worker.value()) + 1; }

// Threads of one stream are neighbours: lane 0 holds the stream, further lanes what overlaps.
constexpr std::int64_t kLanesPerStream = 1000;
std::int64_t thread_of(std::uint8_t stream, std::size_t lane) {
  return static_cast<std::int64_t>(stream) * kLanesPerStream + static_cast<std::int64_t>(lane) + 1;
}

// Where a span goes; ties in the order of the recording.
struct Place {
  RankId worker;
  std::uint8_t stream;
  TimePoint start;
  std::size_t index;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Writer {
 public:
  Writer(const Recording& recording, const std::function<void(std::string_view)>& sink)
      : recording_{recording}, sink_{sink} {
    for (const auto& [worker, label] : recording.workers) cluster_ = std::max(cluster_, process_of(worker) + 1);
    for (const Span& span : recording.spans) cluster_ = std::max(cluster_, process_of(span.worker) + 1);
  }

  void run() {
    out_ += "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"name\":";
    append_json_string(out_, recording_.name);
    out_ += ",\"origin\":";
    append_json_string(out_, recording_.origin);
    out_ += "},\"traceEvents\":[";
    for (const auto& [worker, label] : recording_.workers) name_process(process_of(worker), label);
    if (std::any_of(recording_.counters.begin(), recording_.counters.end(), [](const Counter& c) { return !c.worker; })) {
      name_process(cluster_, "cluster");
    }
    write_spans();
    for (const Counter& counter : recording_.counters) write(counter);
    out_ += "\n]}\n";
    sink_(out_);
  }

 private:
  void begin_event() {
    if (out_.size() >= kPiece) {
      sink_(out_);
      out_.clear();
    }
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  void metadata(const char* kind, std::int64_t process, std::int64_t thread) {
    begin_event();
    out_ += "{\"ph\":\"M\",\"name\":\"";
    out_ += kind;
    out_ += "\",\"pid\":";
    append_integer(out_, process);
    out_ += ",\"tid\":";
    append_integer(out_, thread);
    out_ += ",\"args\":{\"";
    out_ += std::string_view{kind}.ends_with("sort_index") ? "sort_index" : "name";
    out_ += "\":";
  }

  void name_process(std::int64_t process, std::string_view label) {
    metadata("process_name", process, 0);
    append_json_string(out_, label);
    out_ += "}}";
    metadata("process_sort_index", process, 0);
    append_integer(out_, process);
    out_ += "}}";
  }

  void name_thread(std::int64_t process, std::uint8_t stream, std::size_t lane) {
    std::string name =
        stream < recording_.streams.size() ? recording_.streams[stream] : fmt::format("stream {}", stream);
    if (lane > 0) name += fmt::format(" ({})", lane + 1);
    const std::int64_t thread = thread_of(stream, lane);
    metadata("thread_name", process, thread);
    append_json_string(out_, name);
    out_ += "}}";
    metadata("thread_sort_index", process, thread);
    append_integer(out_, thread);
    out_ += "}}";
  }

  void write_spans() {
    const std::vector<Span>& spans = recording_.spans;
    std::vector<Place> order;  // small keys sort faster than spans
    order.reserve(spans.size());
    for (std::size_t i = 0; i < spans.size(); ++i) order.push_back({spans[i].worker, spans[i].stream, spans[i].start, i});
    std::sort(order.begin(), order.end());
    std::vector<TimePoint> lane_ends;  // of the present worker and stream
    const Span* previous = nullptr;
    for (const Place& place : order) {
      const Span& span = spans[place.index];
      if (previous == nullptr || previous->worker != span.worker || previous->stream != span.stream) lane_ends.clear();
      previous = &span;
      const auto free = std::find_if(lane_ends.begin(), lane_ends.end(), [&](TimePoint end) { return end <= span.start; });
      const auto lane = static_cast<std::size_t>(free - lane_ends.begin());
      if (free == lane_ends.end()) {
        lane_ends.emplace_back();
        name_thread(process_of(span.worker), span.stream, lane);
      }
      lane_ends[lane] = span.start + span.duration;
      write(span, lane);
    }
  }

  void write(const Span& span, std::size_t lane) {
    begin_event();
    out_ += "{\"ph\":\"X\",\"pid\":";
    append_integer(out_, process_of(span.worker));
    out_ += ",\"tid\":";
    append_integer(out_, thread_of(span.stream, lane));
    out_ += ",\"ts\":";
    append_microseconds(out_, span.start.count());
    out_ += ",\"dur\":";
    append_microseconds(out_, span.duration.count());
    out_ += ",\"name\":";
    append_json_string(out_, span.name);
    if (!span.category.empty()) {
      out_ += ",\"cat\":";
      append_json_string(out_, span.category);
    }
    write_args(span);
    out_ += '}';
  }

  void write_args(const Span& span) {
    bool any = false;
    const auto key = [&](const char* name) {
      out_ += any ? ",\"" : ",\"args\":{\"";
      out_ += name;
      out_ += "\":";
      any = true;
    };
    if (span.layer) {
      key("layer");
      append_integer(out_, *span.layer);
    }
    if (span.micro_batch) {
      key("micro-batch");
      append_integer(out_, *span.micro_batch);
    }
    const double seconds = span.duration.seconds();
    if (span.bytes) {
      key("bytes");
      append_integer(out_, *span.bytes);
      if (seconds > 0) {
        key("GB/s");
        rate(static_cast<double>(*span.bytes) / seconds * 1e-9);
      }
    }
    if (span.flops && std::isfinite(*span.flops)) {
      key("flops");
      append_number(out_, *span.flops);
      if (seconds > 0) {
        key("TFLOP/s");
        rate(*span.flops / seconds * 1e-12);
      }
    }
    if (any) out_ += '}';
  }

  // Four figures are enough to read, and far fewer bytes.
  void rate(double value) { fmt::format_to(std::back_inserter(out_), "{:.4g}", value); }

  void write(const Counter& counter) {
    const std::int64_t process = counter.worker ? process_of(*counter.worker) : cluster_;
    const std::string name = counter.unit.empty() ? counter.name : fmt::format("{} [{}]", counter.name, counter.unit);
    for (const Counter::Sample& sample : counter.samples) {
      if (!std::isfinite(sample.value)) continue;
      begin_event();
      out_ += "{\"ph\":\"C\",\"pid\":";
      append_integer(out_, process);
      out_ += ",\"ts\":";
      append_microseconds(out_, sample.time.count());
      out_ += ",\"name\":";
      append_json_string(out_, name);
      out_ += ",\"args\":{\"value\":";
      append_number(out_, sample.value);
      out_ += "}}";
    }
  }

  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  const Recording& recording_;
  const std::function<void(std::string_view)>& sink_;
  std::int64_t cluster_ = 1;  // process of what belongs to no worker
  std::string out_;
  bool first_ = true;
};

}  // namespace

void write_perfetto(const Recording& recording, const std::function<void(std::string_view)>& sink) {
  Writer{recording, sink}.run();
}

std::string perfetto_json(const Recording& recording) {
  std::string text;
  write_perfetto(recording, [&](std::string_view piece) { text += piece; });
  return text;
}

void save_perfetto(const Recording& recording, const std::string& path) {
  if (path == "-") {
    write_perfetto(recording, [](std::string_view piece) { write_file("-", piece); });
    return;
  }
  OutputFile file{path};
  write_perfetto(recording, [&](std::string_view piece) { file.write(piece); });
  file.commit();
}

}  // namespace stepcast::trace
