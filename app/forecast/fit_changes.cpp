#include "app/forecast/fit_changes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "app/scenario/setup.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {
namespace {

using scenario::RecomputePolicy;
using scenario::Scenario;

struct Candidate {
  std::string title;
  std::vector<std::string> sets;
};

std::vector<Candidate> single_changes(const Scenario& s, std::int64_t gpus_per_node) {
  std::vector<Candidate> all;
  const auto add = [&all](std::string title, std::vector<std::string> sets) { all.push_back({std::move(title), std::move(sets)}); };
  const scenario::Parallel& p = s.parallel;
  if (s.memory.recompute == RecomputePolicy::kNone) add("recompute selective", {"memory.recompute=selective"});
  if (s.memory.recompute != RecomputePolicy::kFull) add("recompute full", {"memory.recompute=full"});
  for (std::int64_t micro = s.batch.micro / 2; micro > 0; micro /= 2)
    if (s.batch.micro % micro == 0) add(fmt::format("micro-batch {}", micro), {fmt::format("batch.micro={}", micro)});
  if (p.dp > 1)
    for (std::int64_t zero = p.zero + 1; zero <= 3; ++zero) add(fmt::format("zero {}", zero), {fmt::format("parallel.zero={}", zero)});
  if (p.shard_group && *p.shard_group < p.dp) add(fmt::format("shards over all {} replicas", p.dp), {fmt::format("parallel.shard_group={}", p.dp)});
  if (p.zero == 3 && !p.zero3_reshard_after_forward) add("reshard after forward", {"parallel.zero3_reshard_after_forward=true"});
  if (s.memory.gradients == scenario::GradientPrecision::kFp32 && s.training.precision != scenario::Precision::kFp32)
    add("gradients bf16", {"memory.gradients=bf16"});
  if (p.tp > 1 && !p.sequence_parallel) add("sequence parallel", {"parallel.sequence_parallel=true"});
  if (p.dp % 2 == 0) {
    const std::string dp = fmt::format("parallel.dp={}", p.dp / 2);
    if (2 * p.tp <= gpus_per_node) add(fmt::format("tp {}, dp {}", 2 * p.tp, p.dp / 2), {fmt::format("parallel.tp={}", 2 * p.tp), dp, "parallel.sequence_parallel=true"});
    add(fmt::format("pp {}, dp {}", 2 * p.pp, p.dp / 2), {fmt::format("parallel.pp={}", 2 * p.pp), dp});
  }
  if (p.zero > 0 && s.cluster.fabric)
    add(fmt::format("{} nodes, dp {}", 2 * s.cluster.nodes, 2 * p.dp), {fmt::format("cluster.nodes={}", 2 * s.cluster.nodes), fmt::format("parallel.dp={}", 2 * p.dp)});
  return all;
}

// Two changes of one key are no pair.
bool disjoint(const Candidate& a, const Candidate& b) {
  const auto key = [](const std::string& set) { return set.substr(0, set.find('=')); };
  return std::none_of(a.sets.begin(), a.sets.end(), [&](const std::string& x) {
    return std::any_of(b.sets.begin(), b.sets.end(), [&](const std::string& y) { return key(x) == key(y); });
  });
}

std::vector<Candidate> pairs_of(const std::vector<Candidate>& singles) {
  std::vector<Candidate> pairs;
  for (std::size_t i = 0; i < singles.size(); ++i) {
    for (std::size_t j = i + 1; j < singles.size(); ++j) {
      if (!disjoint(singles[i], singles[j])) continue;
      Candidate both{singles[i].title + ", " + singles[j].title, singles[i].sets};
      both.sets.insert(both.sets.end(), singles[j].sets.begin(), singles[j].sets.end());
      pairs.push_back(std::move(both));
    }
  }
  return pairs;
}

}  // namespace

std::vector<FitChange> changes_that_fit(const HardwareShelf& shelf, const std::string& scenario_file, const std::vector<std::string>& sets,
                                        const Forecast& before) {
  std::vector<FitChange> changes;
  const auto try_all = [&](const std::vector<Candidate>& candidates) {
    bool any = false;
    for (const Candidate& candidate : candidates) {
      std::vector<std::string> all = sets;
      all.insert(all.end(), candidate.sets.begin(), candidate.sets.end());
      try {
        const Forecast f = forecast(prepare(shelf, scenario::load_scenario(scenario_file, all)), {});
        changes.push_back({candidate.title, candidate.sets, f.worst_memory().total, f.step_time_s(),
                           static_cast<double>(f.gpus) / static_cast<double>(before.gpus), f.fits()});
        any = any || f.fits();
      } catch (const UserError&) {
        continue;  // not a legal combination for this model or cluster
      }
    }
    return any;
  };
  const std::vector<Candidate> singles = single_changes(before.scenario, before.gpus / before.scenario.cluster.nodes);
  if (!try_all(singles)) try_all(pairs_of(singles));
  if (changes.empty()) return changes;
  if (std::any_of(changes.begin(), changes.end(), [](const FitChange& c) { return c.fits; })) {
    std::erase_if(changes, [](const FitChange& c) { return !c.fits; });
    std::stable_sort(changes.begin(), changes.end(), [](const FitChange& a, const FitChange& b) { return a.step_time_s * a.gpus < b.step_time_s * b.gpus; });
    return changes;
  }
  return {*std::min_element(changes.begin(), changes.end(), [](const FitChange& a, const FitChange& b) { return a.peak < b.peak; })};
}

std::string fit_changes_text(const std::vector<FitChange>& changes, const Forecast& before) {
  if (changes.empty()) return "no single change of those that Stepcast tries is legal here\n";
  std::string text;
  if (!changes.front().fits) {
    const FitChange& best = changes.front();
    return fmt::format("no two changes together make it fit; {} comes nearest with {}\n", best.title, human_bytes(best.peak));
  }
  constexpr std::size_t kShown = 8;
  text = fmt::format("What would make it fit, cheapest first{}\n  {:<44} {:>10}  {:>10}\n", changes.size() > kShown ? fmt::format(" ({} of {})", kShown, changes.size()) : "",
                     "", "peak", "step time");
  for (std::size_t i = 0; i < std::min(kShown, changes.size()); ++i) {
    const FitChange& c = changes[i];
    text += fmt::format("  {:<44} {:>10}  {:>10}  {:+.1f} %{}\n", c.title, human_bytes(c.peak), human_seconds(c.step_time_s), 100.0 * (c.step_time_s / before.step_time_s() - 1.0),
                        c.gpus != 1.0 ? fmt::format(" on {:g} x the GPUs", c.gpus) : "");
  }
  return text;
}

}  // namespace stepcast::app
