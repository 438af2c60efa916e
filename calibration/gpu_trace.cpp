#include "calibration/gpu_trace.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "calibration/json_stream.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

// A run that is profiled lasts minutes. The store holds 106 days.
constexpr std::int64_t kFarNs = std::int64_t{40} * 24 * 3600 * 1'000'000'000;
constexpr std::size_t kMostStreams = 255;

std::optional<double> median_seconds(std::vector<std::int64_t>& values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle) * 1e-9;
}

bool on_a_stream(GpuWork work) { return work != GpuWork::kStep && work != GpuWork::kAnnotation; }

// Requires: events by worker, stream, start.
LaunchTimes launch_times(const std::vector<GpuEvent>& events, std::vector<LaunchCall>& calls) {
  std::sort(calls.begin(), calls.end(), [](const LaunchCall& a, const LaunchCall& b) { return std::tie(a.launch, a.start_ns) < std::tie(b.launch, b.start_ns); });
  std::vector<std::int64_t> durations;
  std::vector<std::int64_t> latencies;
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const GpuEvent& event = events[i];
    if (event.launch == 0 || !on_a_stream(event.work)) continue;
    const auto call = std::lower_bound(calls.begin(), calls.end(), event.launch, [](const LaunchCall& c, std::uint64_t key) { return c.launch < key; });
    if (call == calls.end() || call->launch != event.launch) continue;
    durations.push_back(call->duration_ns);
    const bool first = i == 0 || events[i - 1].worker != event.worker || events[i - 1].stream != event.stream;
    if (first) continue;
    const std::int64_t idle_since = events[i - 1].start_ns + events[i - 1].duration_ns;
    if (idle_since <= call->start_ns && event.start_ns >= call->start_ns) latencies.push_back(event.start_ns - call->start_ns);
    if (call->start_ns + call->duration_ns <= idle_since && event.start_ns >= idle_since) gaps.push_back(event.start_ns - idle_since);
  }
  LaunchTimes times;
  times.calls = durations.size();
  times.call_s = median_seconds(durations);
  times.latency_s = median_seconds(latencies);
  times.gap_s = median_seconds(gaps);
  return times;
}

}  // namespace

std::map<GpuWork, WorkSum> GpuTrace::sums() const {
  std::map<GpuWork, WorkSum> result;
  for (const GpuEvent& event : events) {
    WorkSum& sum = result[event.work];
    ++sum.count;
    sum.time_ns += event.duration_ns;
  }
  return result;
}

std::vector<GpuEvent> GpuTrace::steps() const {
  std::vector<GpuEvent> result;
  for (const GpuEvent& event : events) {
    if (event.work == GpuWork::kStep) result.push_back(event);
  }
  return result;
}

std::int64_t GpuTrace::end_ns() const {
  std::int64_t end = 0;
  for (const GpuEvent& event : events) end = std::max(end, event.start_ns + event.duration_ns);
  return end;
}

trace::Span GpuTrace::span(const GpuEvent& event) const {
  return {.worker = RankId{event.worker},
          .stream = event.stream,
          .start = TimePoint::at(Duration::nanoseconds(event.start_ns)),
          .duration = Duration::nanoseconds(event.duration_ns),
          .name = names[event.name],
          .category = name_of(event.work),
          .layer = {},
          .micro_batch = {},
          .bytes = event.bytes,
          .flops = {}};
}

void GpuTraceBuilder::skip(std::string_view reason, std::size_t count) {
  if (count > 0) skipped_[std::string{reason}] += count;
}

std::uint32_t GpuTraceBuilder::name(std::string_view text) {
  std::string clean = printable(text);
  const auto [at, added] = known_names_.try_emplace(std::move(clean), static_cast<std::uint32_t>(trace.names.size()));
  if (added) trace.names.push_back(at->first);
  return at->second;
}

std::uint8_t GpuTraceBuilder::stream(const std::string& text) {
  const auto known = known_streams_.find(text);
  if (known != known_streams_.end()) return known->second;
  static const std::string kRest = "other streams";
  if (known_streams_.size() + 1 >= kMostStreams && text != kRest) return stream(kRest);
  const auto index = static_cast<std::uint8_t>(trace.streams.size());
  trace.streams.push_back(printable(text));
  known_streams_[text] = index;
  return index;
}

void GpuTraceBuilder::add(const GpuEvent& event) {
  if (event.duration_ns < 0) return skip("negative duration");
  if (event.duration_ns > kFarNs) return skip("duration beyond 40 days");
  trace.events.push_back(event);
}

std::string GpuTrace::skipped_text() const {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : skipped) parts.push_back(fmt::format("{} {}", count, reason));
  return join(parts, ", ");
}

GpuTrace GpuTraceBuilder::finish() {
  std::vector<GpuEvent>& events = trace.events;
  if (!events.empty()) {
    std::vector<std::int64_t> starts;
    starts.reserve(events.size());
    for (const GpuEvent& event : events) starts.push_back(event.start_ns);
    const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    const std::int64_t median = *middle;
    // Unsigned: the distance of any two 64-bit numbers fits.
    const auto far = [&](const GpuEvent& event) {
      const auto a = static_cast<std::uint64_t>(event.start_ns);
      const auto b = static_cast<std::uint64_t>(median);
      return (event.start_ns > median ? a - b : b - a) > static_cast<std::uint64_t>(kFarNs);
    };
    skip("start more than 40 days from the others", std::erase_if(events, far));
    std::int64_t first = events.front().start_ns;
    for (const GpuEvent& event : events) first = std::min(first, event.start_ns);
    for (GpuEvent& event : events) event.start_ns -= first;
    std::erase_if(launches_, [&](const LaunchCall& call) {
      const auto a = static_cast<std::uint64_t>(call.start_ns);
      const auto b = static_cast<std::uint64_t>(median);
      return (call.start_ns > median ? a - b : b - a) > static_cast<std::uint64_t>(kFarNs) || call.duration_ns < 0 || call.duration_ns > kFarNs;
    });
    for (LaunchCall& call : launches_) call.start_ns -= first;
  }
  std::sort(events.begin(), events.end(), [](const GpuEvent& a, const GpuEvent& b) {
    return std::tie(a.worker, a.stream, a.start_ns, b.duration_ns, a.name, a.launch) < std::tie(b.worker, b.stream, b.start_ns, a.duration_ns, b.name, b.launch);
  });
  trace.launches = launch_times(events, launches_);
  trace.collectives = std::move(collectives_);
  trace.skipped = {skipped_.begin(), skipped_.end()};
  return std::move(trace);
}

}  // namespace stepcast::calibration
