#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "app/forecast/forecast.hpp"
#include "sim/base/check.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// What would shrink a part, given what the scenario already does.
std::string remedy(const Forecast& f, std::string_view key) {
  const scenario::Scenario& s = f.scenario;
  if (key == "compute") {
    if (s.memory.recompute == scenario::RecomputePolicy::kFull) {
      return "selective or no recompute, where memory allows, would cut the work itself";
    }
    return "faster GPUs, a lower precision or larger micro-batches would help";
  }
  if (key == "exposed_tp") {
    return s.parallel.sequence_parallel ? "a smaller tp, or faster links inside the node, would help"
                                        : "a smaller tp, or sequence_parallel, would help";
  }
  if (key == "exposed_pp") return "a faster network between stages, or fewer stages, would help";
  if (key == "exposed_dp") {
    if (!s.parallel.overlap_grad_reduce) return "overlap_grad_reduce would hide it behind the backward pass";
    return "a faster network, a larger global batch per step or a smaller dp would help";
  }
  if (key == "bubble") return "more micro-batches a step or fewer pipeline stages would help";
  if (key == "optimizer") {
    return s.parallel.zero == 0 ? "zero: 1 would share the update among the data-parallel ranks"
                                : "a larger global batch would spread it over more work";
  }
  if (key == "input_wait") return "more input workers would help";
  return "a faster link for it would help";
}

std::string busiest_network(const Forecast& f) {
  if (f.result.busiest_links.empty()) return "";
  const run::LinkLoad& link = f.result.busiest_links.front();
  return fmt::format(" (busiest link: {}, {} used)", link.name, percent(link.utilisation));
}

}  // namespace

double Forecast::tflops_per_gpu() const {
  return plan.work.model_flops.si() / step_time_s() / static_cast<double>(gpus) / 1e12;
}

double Forecast::mfu() const {
  return plan.work.model_flops.si() / (step_time_s() * static_cast<double>(gpus) * peak.si());
}

const run::MemoryPeak& Forecast::worst_memory() const {
  SIM_CHECK(!result.memory.empty());
  return *std::max_element(result.memory.begin(), result.memory.end(),
                           [](const auto& a, const auto& b) { return a.total < b.total; });
}

bool Forecast::reads_input() const {
  for (const plan::Program& program : plan.programs) {
    for (const plan::Instruction& instruction : program.instructions) {
      if (std::holds_alternative<plan::LoadBatch>(instruction.body)) return true;
    }
  }
  return false;
}

std::vector<StepPart> step_parts(const Forecast& forecast) {
  const run::Breakdown& b = forecast.result.breakdown;
  return {
      {"compute", "compute", b.compute + b.host_wait},
      {"exposed_tp", "exposed tensor-parallel communication", b.exposed_tp},
      {"exposed_pp", "exposed pipeline communication", b.exposed_pp},
      {"exposed_dp", "exposed data-parallel communication", b.exposed_dp},
      {"exposed_ep", "exposed expert-parallel communication", b.exposed_ep},
      {"exposed_cp", "exposed context-parallel communication", b.exposed_cp},
      {"exposed_offload", "exposed offload copies", b.exposed_offload},
      {"input_wait", "waiting for input", b.input_wait, forecast.reads_input()},
      {"optimizer", "optimizer", b.optimizer},
      {"bubble", "pipeline bubble", b.bubble},
  };
}

std::string bottleneck_sentence(const Forecast& forecast) {
  std::vector<StepPart> parts = step_parts(forecast);
  std::stable_sort(parts.begin(), parts.end(), [](const StepPart& a, const StepPart& b) { return a.time > b.time; });
  const StepPart& first = parts[0];
  const StepPart& second = parts[1];
  const auto share = [&](const StepPart& part) { return part.time / forecast.result.step; };
  std::string text = fmt::format("{} takes {} of the step", first.title, percent(share(first)));
  // When compute leads, the largest wait is what tuning can remove, unless it is next to nothing.
  const bool wait_matters = std::string_view{first.key} == "compute" && share(second) >= 0.03;
  const StepPart& target = wait_matters ? second : first;
  if (wait_matters) text += fmt::format(", {} {}", second.title, percent(share(second)));
  if (std::string_view{target.key}.starts_with("exposed_")) text += busiest_network(forecast);
  return text + "; " + remedy(forecast, target.key);
}

std::string describe_peak(const Forecast& forecast, const run::MemoryPeak& peak) {
  const plan::Program& program = forecast.plan.programs.at(peak.program.index());
  std::string text = fmt::format("worker {} ({})", peak.worker.value(), program.name);
  if (peak.instruction >= program.instructions.size()) return text;
  const plan::Instruction& at = program.instructions[peak.instruction];
  text += fmt::format(" at instruction {}, {} {}", peak.instruction, program.labels.at(at.label.index()),
                      plan::name_of(at.stage));
  if (at.layer) text += fmt::format(", layer {}", *at.layer);
  if (at.micro_batch) text += fmt::format(", micro-batch {}", *at.micro_batch);
  return text;
}

std::vector<std::string> undetermined(const Forecast& forecast) {
  std::vector<std::string> names{"energy and clocks (no power model yet)", "cost", "host memory"};
  if (!forecast.reads_input()) names.emplace_back("input pipeline (assumed never to wait)");
  return names;
}

}  // namespace stepcast::app
