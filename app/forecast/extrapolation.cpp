#include "app/forecast/extrapolation.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibration/interference.hpp"
#include "calibration/kernel_fit.hpp"
#include "calibration/profile_check.hpp"

namespace stepcast::app {
namespace {

using calibration::FittedRange;

// Files round what they say.
constexpr double kRounding = 1e-3;

// [1] of the kernels' time. A judgement: forecasts are off by more.
constexpr double kNegligible = 0.01;

struct Span {
  double least = 0.0;
  double most = 0.0;
  void add(double value) {
    least = least == 0.0 ? value : std::min(least, value);
    most = std::max(most, value);
  }
  [[nodiscard]] bool within(double from, double to) const { return least >= from * (1.0 - kRounding) && most <= to * (1.0 + kRounding); }
};

struct KernelTime {
  double work = 0.0;
  double seconds = 0.0;
};

struct Asked {
  std::map<std::string, Span> work;   // FLOP or bytes, by name of fitted_on
  std::map<std::string, Span> ranks;  // of collectives
  std::map<std::string, std::vector<KernelTime>> kernels;
  double kernel_seconds = 0.0;
};

// Of the kernels' time, that of kernels beyond the range.
double share_beyond(const Asked& asked, const std::string& name, double least, double most) {
  const auto kernels = asked.kernels.find(name);
  if (kernels == asked.kernels.end() || asked.kernel_seconds <= 0.0) return 0.0;
  double beyond = 0.0;
  for (const KernelTime& kernel : kernels->second) {
    Span one;
    one.add(kernel.work);
    if (!one.within(least, most)) beyond += kernel.seconds;
  }
  return beyond / asked.kernel_seconds;
}

// "3.41 GFLOP"
std::string amount(double value, const char* unit) {
  constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000.0 && prefix + 1 < kPrefixes.size()) {
    value /= 1000.0;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

std::string from_to(double least, double most, const char* unit) {
  return least == most ? amount(least, unit) : amount(least, unit) + " to " + amount(most, unit);
}

void add_collectives(const Setup& setup, std::size_t stage, const plan::Program& program, Asked& asked) {
  plan::PerAxis coordinates{0};
  coordinates[plan::Axis::kPipeline] = static_cast<std::int32_t>(stage);
  const RankId rank = setup.plan.rank(coordinates);
  const auto host_of = [&](RankId r) { return r.value() / setup.fabric.gpus_per_domain(); };
  for (const plan::Instruction& instruction : program.instructions) {
    const auto* collective = std::get_if<plan::Collective>(&instruction.body);
    if (collective == nullptr) continue;
    const std::vector<RankId> members = setup.plan.members(collective->group, rank);
    if (members.size() < 2) continue;
    const bool between = std::any_of(members.begin(), members.end(), [&](RankId r) { return host_of(r) != host_of(members.front()); });
    const std::string name = calibration::collective_range(collective->kind, between);
    asked.work[name].add(collective->bytes.si());
    asked.ranks[name].add(static_cast<double>(members.size()));
  }
}

void add_kernels(const plan::Program& program, const gpu::GpuModel& model, Asked& asked) {
  std::vector<double> times(program.kernels.size(), 0.0);
  for (const plan::Instruction& instruction : program.instructions)
    if (const auto* compute = std::get_if<plan::Compute>(&instruction.body)) times[compute->kernel.index()] += 1.0;
  for (std::size_t i = 0; i < program.kernels.size(); ++i) {
    const plan::Kernel& kernel = program.kernels[i];
    const double seconds = times[i] * model.time(kernel).seconds();
    asked.kernel_seconds += seconds;
    const double work = calibration::work_of(kernel);
    if (work <= 0.0) continue;
    const std::string name = name_of(calibration::part_of(kernel));
    asked.work[name].add(work);
    asked.kernels[name].push_back({work, seconds});
  }
}

Asked asked_by(const Setup& setup) {
  Asked asked;
  const gpu::GpuModel model = gpu_model_of(setup);
  std::set<std::size_t> done;
  for (std::size_t stage = 0; stage < setup.plan.program_of_stage.size(); ++stage) {
    const std::size_t id = setup.plan.program_of_stage[stage].index();
    if (!done.insert(id).second) continue;
    const plan::Program& program = setup.plan.programs[id];
    add_kernels(program, model, asked);
    add_collectives(setup, stage, program, asked);
  }
  return asked;
}

bool is_collective(const std::string& name) { return name.ends_with(" inside a host") || name.ends_with(" between hosts"); }
std::string place_of(const std::string& name) { return name.substr(name.find(' ')); }

}  // namespace

std::optional<std::vector<std::string>> extrapolated(const Setup& setup) {
  const calibration::Profile& profile = setup.profile.profile;
  if (profile.fitted_on.empty()) return std::nullopt;
  std::map<std::string, const FittedRange*> fitted;
  std::set<std::string> places;  // where collectives were fitted at all: others rest on other profiles
  for (const FittedRange& range : profile.fitted_on) {
    fitted[range.kernels] = &range;
    if (is_collective(range.kernels)) places.insert(place_of(range.kernels));
  }
  const Asked asked = asked_by(setup);
  std::vector<std::string> lines;
  for (const auto& [name, span] : asked.work) {
    const bool moved = is_collective(name);
    if (moved && !places.contains(place_of(name))) continue;
    const auto found = fitted.find(name);
    if (found == fitted.end()) {
      if (moved) lines.push_back(name + ": none was fitted");
      continue;
    }
    const FittedRange& range = *found->second;
    const bool bytes = range.least_bytes && range.most_bytes;
    if (!bytes && !(range.least_work && range.most_work)) continue;
    const double least = bytes ? range.least_bytes->si() : range.least_work->si();
    const double most = bytes ? range.most_bytes->si() : range.most_work->si();
    const char* unit = bytes ? "B" : "FLOP";
    if (!span.within(least, most)) {
      const double beyond = share_beyond(asked, name, least, most);
      const std::string share = moved ? "" : fmt::format(" ({:.2g} % of the kernels' time beyond)", 100.0 * beyond);
      if (moved || beyond >= kNegligible) lines.push_back(fmt::format("{} of {}{}, fitted on {}", name, from_to(span.least, span.most, unit), share, from_to(least, most, unit)));
    }
    const auto ranks = asked.ranks.find(name);
    if (ranks == asked.ranks.end() || !range.least_ranks || !range.most_ranks) continue;
    const auto from = static_cast<double>(*range.least_ranks);
    const auto to = static_cast<double>(*range.most_ranks);
    if (!ranks->second.within(from, to)) lines.push_back(fmt::format("{} of {}, fitted on {}", name, from_to(ranks->second.least, ranks->second.most, "ranks"), from_to(from, to, "ranks")));
  }
  if (const auto fewer = calibration::measured_workers(profile.interference, workers_of_host(setup)))
    lines.push_back(fmt::format("{} workers of a host at once, measured with {}", workers_of_host(setup), *fewer));
  return lines;
}

}  // namespace stepcast::app
