#include "app/forecast/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/scenario/describe.hpp"

namespace stepcast::app {
namespace {

void flatten(const scenario::Described& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (!value.present) return;
  if (value.children.empty()) {
    if (!value.value.empty()) out[path] = value.value;
    return;
  }
  for (std::size_t i = 0; i < value.children.size(); ++i) {
    const scenario::Described& child = value.children[i];
    flatten(child, value.kind == scenario::ValueKind::kList ? scenario::child_path(path, i)
                                                            : scenario::child_path(path, child.key), out);
  }
}

// Every key of the effective scenario, defaults included, as text.
std::map<std::string, std::string> keys_of(scenario::Scenario scenario) {
  scenario.name = "-";
  scenario.description.clear();
  scenario.variants.clear();
  std::map<std::string, std::string> keys;
  flatten(scenario::describe(scenario), "", keys);
  return keys;
}

std::size_t fastest(std::span<const Forecast> forecasts) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < forecasts.size(); ++i) {
    if (forecasts[i].result.step < forecasts[best].result.step) best = i;
  }
  return best;
}

constexpr double kAlike = 0.001;

struct Change {
  const char* title;
  double seconds;
};

// What grew against the best, most first; then what shrank.
std::vector<Change> changes(const Forecast& best, const Forecast& other) {
  std::vector<Change> list;
  const std::vector<StepPart> base = step_parts(best);
  const std::vector<StepPart> now = step_parts(other);
  for (std::size_t i = 0; i < base.size(); ++i) {
    list.push_back({base[i].title, now[i].time.seconds() - base[i].time.seconds()});
  }
  std::stable_sort(list.begin(), list.end(), [](const Change& a, const Change& b) { return a.seconds > b.seconds; });
  return list;
}

std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + human_seconds(seconds < 0 ? -seconds : seconds);
}

std::string why_slower(const Forecast& best, const std::string& best_name, const Forecast& other,
                       const std::string& name) {
  const double gap = other.step_time_s() - best.step_time_s();
  std::string text = fmt::format("{} takes {:.2f} times the step of {} ({}): ", name,
                                 other.step_time_s() / best.step_time_s(), best_name, signed_seconds(gap));
  std::vector<std::string> parts;
  for (const Change& change : changes(best, other)) {
    // Parts below a twentieth of the gap explain nothing.
    if (std::abs(change.seconds) < gap / 20) continue;
    parts.push_back(fmt::format("{} {}", change.title, signed_seconds(change.seconds)));
  }
  text += join(parts, ", ");
  if (!other.result.busiest_links.empty()) {
    const run::LinkLoad& link = other.result.busiest_links.front();
    text += fmt::format("; busiest link {}, {:.0f} % used", link.name, 100 * link.utilisation);
  }
  return text;
}

std::string results_table(std::span<const Forecast> forecasts, std::span<const std::string> names,
                          const Terminal& terminal) {
  std::vector<std::string> heading{""};
  heading.insert(heading.end(), names.begin(), names.end());
  Table table{heading};
  const auto row = [&](const char* title, auto cell) {
    std::vector<std::string> cells{title};
    for (const Forecast& f : forecasts) cells.push_back(cell(f));
    table.add(cells);
  };
  row("step time", [](const Forecast& f) { return human_duration(f.result.step); });
  row("tokens/s", [](const Forecast& f) { return human_count(f.tokens_per_s()); });
  row("tokens/s/GPU", [](const Forecast& f) { return human_count(f.tokens_per_s_per_gpu()); });
  row("TFLOP/s/GPU", [](const Forecast& f) { return fmt::format("{:.1f}", f.tflops_per_gpu()); });
  row("MFU", [](const Forecast& f) { return fmt::format("{:.1f} %", 100 * f.mfu()); });
  row("GPUs", [](const Forecast& f) { return std::to_string(f.gpus); });
  row("peak memory", [](const Forecast& f) { return human_bytes(f.worst_memory().total); });
  row("fits", [](const Forecast& f) { return std::string{f.fits() ? "yes" : "no"}; });
  for (std::size_t p = 0; p < step_parts(forecasts[0]).size(); ++p) {
    const bool any = std::any_of(forecasts.begin(), forecasts.end(),
                                 [&](const Forecast& f) { return step_parts(f)[p].time > Duration{}; });
    if (any) {
      row(step_parts(forecasts[0])[p].title, [&](const Forecast& f) { return human_duration(step_parts(f)[p].time); });
    }
  }
  return table.render(terminal, "  ");
}

// One stacked bar a scenario, a letter a part, all to the scale of the slowest.
std::string stacked_bars(std::span<const Forecast> forecasts, std::span<const std::string> names) {
  constexpr double kWidth = 60;
  constexpr const char* kLetters = "CTPDEXOIAB";  // in the order of step_parts
  double longest = 0;
  std::size_t name_width = 0;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    longest = std::max(longest, forecasts[i].step_time_s());
    name_width = std::max(name_width, names[i].size());
  }
  std::string text;
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    text += fmt::format("  {:<{}}  ", names[i], name_width);
    const std::vector<StepPart> parts = step_parts(forecasts[i]);
    double end = 0;
    std::size_t cells = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      end += parts[p].time.seconds() / longest * kWidth;
      for (; cells < static_cast<std::size_t>(end + 0.5); ++cells) {
        text += kLetters[p];
        used.insert(p);
      }
    }
    text += '\n';
  }
  std::vector<std::string> legend;
  for (const std::size_t p : used) legend.push_back(fmt::format("{} {}", kLetters[p], step_parts(forecasts[0])[p].title));
  return text + "  " + wrap(join(legend, ", "), 98, "  ") + '\n';
}

}  // namespace

std::vector<InputDifference> differing_inputs(std::span<const scenario::Scenario> scenarios) {
  std::vector<std::map<std::string, std::string>> all;
  std::set<std::string> keys;
  for (const scenario::Scenario& scenario : scenarios) {
    all.push_back(keys_of(scenario));
    for (const auto& [key, value] : all.back()) keys.insert(key);
  }
  std::vector<InputDifference> differences;
  for (const std::string& key : keys) {
    InputDifference difference{key, {}};
    for (const auto& values : all) difference.values.push_back(values.contains(key) ? values.at(key) : "-");
    const auto& values = difference.values;
    if (std::any_of(values.begin(), values.end(), [&](const std::string& v) { return v != values[0]; })) {
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

std::vector<std::string> explain(std::span<const Forecast> forecasts, std::span<const std::string> names) {
  const std::size_t best = fastest(forecasts);
  std::vector<std::string> alike{names[best]};
  std::vector<std::size_t> slower;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    if (i == best) continue;
    const double ratio = forecasts[i].step_time_s() / forecasts[best].step_time_s();
    if (ratio <= 1 + kAlike) {
      alike.push_back(names[i]);
    } else {
      slower.push_back(i);
    }
  }
  std::stable_sort(slower.begin(), slower.end(),
                   [&](std::size_t a, std::size_t b) { return forecasts[a].result.step < forecasts[b].result.step; });
  std::vector<std::string> sentences;
  if (alike.size() > 1) sentences.push_back(join(alike, " and ") + " are equally fast (to 0.1 %)");
  for (const std::size_t i : slower) sentences.push_back(why_slower(forecasts[best], names[best], forecasts[i], names[i]));
  return sentences;
}

std::string comparison_text(std::span<const Forecast> forecasts, std::span<const std::string> names,
                            const Terminal& terminal) {
  std::vector<scenario::Scenario> scenarios;
  for (const Forecast& forecast : forecasts) scenarios.push_back(forecast.scenario);
  std::vector<std::string> heading{""};
  heading.insert(heading.end(), names.begin(), names.end());
  Table inputs{heading};
  for (const InputDifference& difference : differing_inputs(scenarios)) {
    std::vector<std::string> row{difference.key};
    row.insert(row.end(), difference.values.begin(), difference.values.end());
    inputs.add(row);
  }
  std::string text = "Inputs that differ\n" + inputs.render(terminal, "  ");
  text += "\nResults\n" + results_table(forecasts, names, terminal);
  text += "\nWhere the step goes, all to one scale\n" + stacked_bars(forecasts, names);
  text += "\nWhy they differ\n";
  for (const std::string& sentence : explain(forecasts, names)) {
    text += "  " + wrap(sentence, static_cast<std::size_t>(terminal.width), "  ") + '\n';
  }
  return text;
}

}  // namespace stepcast::app
