#include "app/network/replay.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stepcast::app {
namespace {

constexpr double kMicrosecond = 1e-6;  // [s]

struct Times {
  std::vector<double> start_us;
  std::vector<double> completion_us;
};

// Requires: at least one flow.
CompletionSummary summarise(const Times& times) {
  CompletionSummary summary;
  std::vector<double> sorted = times.completion_us;
  std::sort(sorted.begin(), sorted.end());
  for (const double completion : sorted) summary.mean_us += completion / static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(sorted.size())));
  summary.p99_us = sorted[rank - 1];
  double last_us = 0.0;
  for (std::size_t i = 0; i < sorted.size(); ++i) last_us = std::max(last_us, times.start_us[i] + times.completion_us[i]);
  summary.makespan_us = last_us - *std::min_element(times.start_us.begin(), times.start_us.end());
  return summary;
}

Times recorded_times(const RecordedCase& recorded) {
  Times times;
  for (const RecordedFlow& flow : recorded.flows) {
    times.start_us.push_back(flow.start_us);
    times.completion_us.push_back(flow.completion_us);
  }
  return times;
}

Times simulated_times(const Run& run) {
  Times times;
  for (const network::Completion& completion : run) {
    times.start_us.push_back(completion.start.seconds() / kMicrosecond);
    times.completion_us.push_back((completion.end - completion.start).seconds() / kMicrosecond);
  }
  return times;
}

std::string row(const char* what, double simulated, double recorded) {
  return fmt::format("  {:<16} {:>13.3f} {:>13.3f} {:>+9.2f} %\n", what, simulated, recorded, error_pct(simulated, recorded));
}

}  // namespace

std::vector<Run> replay(const RecordedCase& recorded, const topology::HtsimFabric& fabric, const network::TransportModel& model,
                        const network::RunOptions& options, std::size_t runs) {
  std::vector<Run> done(model.random ? runs : 1);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < done.size(); i = next++) {
      network::RunOptions own = options;
      own.seed += i;
      done[i] = model.run(with_ways_back(recorded, fabric, own.seed), own);
    }
  };
  std::vector<std::jthread> others;
  const std::size_t threads = std::min<std::size_t>(done.size(), std::max(1U, std::thread::hardware_concurrency()));
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  others.clear();
  return done;
}

ReplayReport compare(const RecordedCase& recorded, const std::vector<Run>& runs, const network::TransportModel& model) {
  const Times theirs = recorded_times(recorded);
  ReplayReport report{.transport = std::string{model.name}, .flows = theirs.start_us.size(), .runs = runs.size(), .recorded = summarise(theirs)};
  const double part = 1.0 / static_cast<double>(runs.size());
  std::vector<double> flow_us(report.flows, 0.0);
  std::vector<double> means_us;
  for (const Run& run : runs) {
    const Times ours = simulated_times(run);
    const CompletionSummary summary = summarise(ours);
    report.simulated.mean_us += part * summary.mean_us;
    report.simulated.p99_us += part * summary.p99_us;
    report.simulated.makespan_us += part * summary.makespan_us;
    means_us.push_back(summary.mean_us);
    for (std::size_t i = 0; i < report.flows; ++i) flow_us[i] += part * ours.completion_us[i];
  }
  report.least_mean_us = *std::min_element(means_us.begin(), means_us.end());
  report.most_mean_us = *std::max_element(means_us.begin(), means_us.end());
  for (std::size_t i = 0; i < report.flows; ++i) {
    const double error = std::abs(error_pct(flow_us[i], theirs.completion_us[i]));
    report.flow_mape_pct += error / static_cast<double>(report.flows);
    report.flow_worst_pct = std::max(report.flow_worst_pct, error);
  }
  return report;
}

double error_pct(double simulated, double recorded) { return (simulated / recorded - 1.0) * 100.0; }

std::string to_text(const ReplayReport& r) {
  std::string text = fmt::format("{} flows, transport {}, {}\n\n", r.flows, r.transport, r.runs == 1 ? "1 run" : fmt::format("mean of {} runs", r.runs));
  text += fmt::format("  {:<16} {:>13} {:>13} {:>11}\n", "completion", "simulated_us", "recorded_us", "error");
  text += row("mean", r.simulated.mean_us, r.recorded.mean_us);
  text += row("p99", r.simulated.p99_us, r.recorded.p99_us);
  text += row("makespan", r.simulated.makespan_us, r.recorded.makespan_us);
  text += fmt::format("\n  per flow: mean |error| {:.2f} %, worst {:.2f} %\n", r.flow_mape_pct, r.flow_worst_pct);
  if (r.runs > 1) text += fmt::format("  mean completion of single runs: {:.3f} to {:.3f} us\n", r.least_mean_us, r.most_mean_us);
  return text;
}

std::string to_json(const ReplayReport& r) {
  const nlohmann::ordered_json json{{"transport", r.transport},
                                    {"flows", r.flows},
                                    {"runs", r.runs},
                                    {"mean_err_pct", error_pct(r.simulated.mean_us, r.recorded.mean_us)},
                                    {"p99_err_pct", error_pct(r.simulated.p99_us, r.recorded.p99_us)},
                                    {"makespan_err_pct", error_pct(r.simulated.makespan_us, r.recorded.makespan_us)},
                                    {"per_flow_mape_pct", r.flow_mape_pct},
                                    {"simulated_us", {{"mean", r.simulated.mean_us}, {"p99", r.simulated.p99_us}, {"makespan", r.simulated.makespan_us}}},
                                    {"recorded_us", {{"mean", r.recorded.mean_us}, {"p99", r.recorded.p99_us}, {"makespan", r.recorded.makespan_us}}}};
  return json.dump(2) + "\n";
}

}  // namespace stepcast::app
