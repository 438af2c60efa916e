#include "app/forecast/forecast_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/forecast/uncertainty.hpp"
#include "app/scenario/routing_choice.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::size_t kBarWidth = 32;

std::string line(const char* name, const std::string& value) { return fmt::format("  {:<14}{}\n", name, value); }

std::string memory_line(const Forecast& f, const Terminal& terminal) {
  const Bytes used = f.worst_memory().total;
  const std::string text = fmt::format("{} of {} on the fullest GPU ({:.0f} %)", human_bytes(used),
                                       human_bytes(f.device_memory), 100 * (used / f.device_memory));
  return paint(terminal, f.fits() ? Tone::kPlain : Tone::kBad, f.fits() ? text : text + ": does not fit");
}

std::string sockets_line(const Forecast& f) {
  return fmt::format("{:.2f} cores of the busiest CPU socket move network traffic, on average ({} of core time a step)",
                     f.result.socket_time / f.result.step, human_duration(f.result.socket_time));
}

std::string parallel_line(const Forecast& f) {
  const scenario::Parallel& p = f.scenario.parallel;
  return fmt::format("tp {} x pp {} x dp {} on {} GPUs, {} sequences a step in micro-batches of {}", p.tp, p.pp, p.dp,
                     f.gpus, f.scenario.batch.global, f.scenario.batch.micro);
}

// Categories of one peak, largest first.
std::vector<std::pair<std::string, Bytes>> categories(const run::MemoryPeak& peak) {
  std::vector<std::pair<std::string, Bytes>> list{
      {"context", peak.context}, {"communicators", peak.communicators}, {"fragmentation", peak.fragmentation}};
  for (int c = 0; c < plan::kCategoryCount; ++c) {
    list.emplace_back(plan::name_of(static_cast<plan::Category>(c)), peak.by_category[static_cast<std::size_t>(c)]);
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return list;
}

std::string step_text(const Forecast& f) {
  if (!f.uncertainty) return human_duration(f.result.step);
  return fmt::format("{} +- {}", human_duration(f.result.step), human_seconds(f.uncertainty->step_s));
}

std::string gib(Bytes bytes) { return fmt::format("{:.2f}", bytes.si() / (1 << 30)); }

}  // namespace

std::string breakdown_text(const Forecast& forecast, const Terminal& terminal) {
  std::string text;
  for (const StepPart& part : step_parts(forecast)) {
    if (part.time == Duration{}) continue;
    const double share = part.time / forecast.result.step;
    text += fmt::format("  {:<38}{:>10}  {:>5.1f} %  {}", part.title, human_duration(part.time), 100 * share,
                        paint(terminal, Tone::kGood, bar(terminal, share, kBarWidth)));
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text + fmt::format("  {:<38}{:>10}  {:>5.1f} %\n", "step", human_duration(forecast.result.step), 100.0);
}

std::string evidence_text(const Forecast& forecast) {
  const Evidence& e = forecast.evidence;
  std::string text = fmt::format("{} measured, {} datasheet, {} published, {} assumed", e.measured, e.datasheet,
                                 e.published, e.assumed);
  if (e.assumed_names.empty()) return text;
  constexpr std::size_t kShown = 6;
  const std::size_t shown = std::min(kShown, e.assumed_names.size());
  text += " (" + join(std::span{e.assumed_names}.first(shown), ", ");
  if (shown < e.assumed_names.size()) text += fmt::format(" and {} more", e.assumed_names.size() - shown);
  return text + ")";
}

std::string summary_text(const Forecast& f, const Terminal& terminal) {
  const auto width = static_cast<std::size_t>(terminal.width);
  const std::string indent(16, ' ');
  std::string text = paint(terminal, Tone::kStrong, f.scenario.name) + '\n';
  text += line("model", fmt::format("{}, sequence {}", f.model_title, f.scenario.model.sequence));
  text += line("cluster", f.cluster_title);
  if (routing_given(f.scenario.cluster)) text += line("routing", wrap(routing_text(f.scenario.cluster), width, indent));
  if (!f.transport.empty()) text += line("transport", wrap(f.transport, width, indent));
  text += line("parallel", parallel_line(f));
  text += '\n';
  text += line("step time", paint(terminal, Tone::kStrong, step_text(f)));
  text += line("throughput", fmt::format("{} tokens/s, {} tokens/s/GPU, {:.3g} sequences/s",
                                         human_count(f.tokens_per_s()), human_count(f.tokens_per_s_per_gpu()),
                                         f.samples_per_s()));
  text += line("model FLOPs", fmt::format("{:.1f} TFLOP/s/GPU, MFU {:.1f} % ({} convention, dense peak {:.0f} TFLOP/s)",
                                          f.tflops_per_gpu(), 100 * f.mfu(), f.plan.work.flops_convention,
                                          f.peak.si() / 1e12));
  text += line("memory", memory_line(f, terminal));
  if (f.result.socket_time > Duration{}) text += line("sockets", sockets_line(f));
  text += "\nWhere the step goes (worker " + std::to_string(f.result.critical_worker.value()) + ", the last to finish)\n";
  text += breakdown_text(f, terminal);
  text += '\n';
  text += line("bottleneck", wrap(bottleneck_sentence(f), width, indent));
  text += line("evidence", wrap(evidence_text(f), width, indent));
  if (f.uncertainty) text += line("uncertainty", wrap(uncertainty_text(*f.uncertainty, f.result.step), width, indent));
  if (f.extrapolated && !f.extrapolated->empty()) text += line("extrapolated", wrap(join(*f.extrapolated, "; "), width, indent));
  text += line("not known", wrap(join(undetermined(f), "; "), width, indent));
  for (const std::string& note : f.notes) text += line("note", wrap(note, width, indent));
  text += line("simulated", fmt::format("{} workers{}, {} events, in {}", f.result.workers_simulated,
                                        f.result.folded ? fmt::format(" for {}", f.gpus) : "", f.result.events,
                                        human_seconds(f.wall_s)));
  return text;
}

std::string memory_text(const Forecast& forecast, const Terminal& terminal) {
  std::vector<std::string> heading{"stage", "worker", "total_GiB"};
  for (int c = 0; c < plan::kCategoryCount; ++c) heading.emplace_back(plan::name_of(static_cast<plan::Category>(c)));
  for (const char* name : {"context", "communicators", "fragmentation"}) heading.emplace_back(name);
  Table table{heading};
  for (const run::MemoryPeak& peak : forecast.result.memory) {
    std::vector<std::string> row{forecast.plan.programs.at(peak.program.index()).name,
                                 std::to_string(peak.worker.value()), gib(peak.total)};
    for (const Bytes bytes : peak.by_category) row.push_back(gib(bytes));
    for (const Bytes bytes : {peak.context, peak.communicators, peak.fragmentation}) row.push_back(gib(bytes));
    table.add(row);
  }
  return table.render(terminal, "  ");
}

std::string out_of_memory_text(const Forecast& forecast) {
  if (forecast.fits()) return "";
  const run::MemoryPeak& peak = forecast.worst_memory();
  std::string text = fmt::format("does not fit: {} needs {}, {} more than the {} of the GPU", describe_peak(forecast, peak),
                                 human_bytes(peak.total), human_bytes(peak.total - forecast.device_memory),
                                 human_bytes(forecast.device_memory));
  text += "\n  largest:  ";
  const auto list = categories(peak);
  for (std::size_t i = 0; i < 3; ++i) {
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", list[i].first, human_bytes(list[i].second));
  }
  return text + '\n';
}

}  // namespace stepcast::app
