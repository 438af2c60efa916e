#include "app/validate/truth_table.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "app/scenario/setup.hpp"
#include "app/validate/parallel_rows.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {
namespace {

// "parallel.tp: 6 does not divide ...": the first problem in one line.
std::string one_line(const UserError& error) {
  const Diagnostic& first = error.diagnostics().front();
  return first.path.empty() ? first.problem : first.path + ": " + first.problem;
}

}  // namespace

scenario::Loaded load_row(const calibration::TruthRow& row, const std::string& file, const HardwareShelf& shelf) {
  std::string text = row.scenario;
  if (!row.machine.empty()) text += fmt::format("profile: \"{}/{}.yaml\"\n", shelf.machines, row.machine);
  return scenario::load_scenario_text(text, fmt::format("{}:{}", file, row.line));
}

std::string table_of(const calibration::TruthRow& row, const std::string& file) {
  return row.family.empty() ? std::filesystem::path(file).stem().string() : row.family;
}

std::string machine_name(const std::string& table, const std::string& gpu) { return table + "-" + gpu; }

namespace {

// Takes the profile that was fitted to the table, where there is one for the row's GPU; that GPU.
std::string take_fitted(scenario::Loaded& loaded, const std::string& table, const HardwareShelf& shelf) {
  const std::string gpu = pick_hardware(shelf, loaded).gpu.name;
  const std::string path = fmt::format("{}/{}.yaml", shelf.machines, machine_name(table, gpu));
  if (!std::filesystem::exists(path)) return "";
  loaded.scenario.profile = path;
  return gpu;
}

// Which of them the shipped fits saw.
void mark_seen(std::vector<TruthOutcome>& outcomes) {
  std::map<std::string, std::vector<TruthOutcome*>> by_gpu;
  for (TruthOutcome& outcome : outcomes) {
    if (!outcome.fitted_on.empty() && outcome.ok() && outcome.row.step_s) by_gpu[outcome.fitted_on].push_back(&outcome);
  }
  for (const auto& [gpu, rows] : by_gpu) {
    std::vector<std::string> names;
    for (const TruthOutcome* row : rows) names.push_back(row->row.id);
    const std::vector<bool> seen = deal_rows(names, kShippedShare, kShippedSeed);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->seen = seen[i];
  }
}

// Errors of the rows with a fitted profile, seen or held out.
ErrorSummary fitted_errors(const std::vector<TruthOutcome>& outcomes, bool seen) {
  std::vector<double> errors;
  for (const TruthOutcome& outcome : outcomes) {
    const auto error = outcome.error_pct();
    if (error && !outcome.fitted_on.empty() && outcome.seen == seen) errors.push_back(*error);
  }
  return sum_up(errors);
}

std::string fitted_text(const std::vector<TruthOutcome>& outcomes) {
  std::string text;
  for (const bool seen : {true, false}) {
    const ErrorSummary e = fitted_errors(outcomes, seen);
    if (e.n > 0) text += fmt::format("  {:<28} {:>4} rows: mean {}, median {}, worst {}, signed {}\n", seen ? "seen by the profile's fit" : "held out from it", e.n,
                                     or_dash(e.mean_absolute, " %"), or_dash(e.median_absolute, " %"), or_dash(e.worst_absolute, " %"), or_dash(e.mean_signed, " %"));
  }
  return text;
}

// All, in the table's order; or the worst first.
std::vector<const TruthOutcome*> rows_shown(const std::vector<TruthOutcome>& outcomes, std::optional<double> worse_than) {
  std::vector<const TruthOutcome*> shown;
  const auto off = [](const TruthOutcome* o) { return std::abs(o->error_pct().value_or(0.0)); };
  for (const TruthOutcome& o : outcomes) {
    if (!worse_than || (o.error_pct() && off(&o) >= 100.0 * *worse_than)) shown.push_back(&o);
  }
  if (worse_than) std::stable_sort(shown.begin(), shown.end(), [&](const TruthOutcome* a, const TruthOutcome* b) { return off(a) > off(b); });
  return shown;
}

TruthOutcome forecast_row(calibration::TruthRow row, const std::string& file, const HardwareShelf& shelf, bool fitted) {
  TruthOutcome outcome{.row = std::move(row)};
  outcome.reason = outcome.row.refusal;
  if (!outcome.ok()) return outcome;
  if (!outcome.row.step_s && !outcome.row.memory.stated()) {
    outcome.reason = "neither a step time nor a memory figure to compare with";
    return outcome;
  }
  try {
    scenario::Loaded loaded = load_row(outcome.row, file, shelf);
    if (fitted) outcome.fitted_on = take_fitted(loaded, table_of(outcome.row, file), shelf);
    const Forecast f = forecast(prepare(shelf, loaded), {});
    outcome.forecast_step_s = f.step_time_s();
    if (outcome.row.memory.stated()) outcome.memory = compared_memory(f, outcome.row.memory);
  } catch (const UserError& error) {
    outcome.reason = one_line(error);
  }
  return outcome;
}

nlohmann::ordered_json or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::optional<double> as_number(std::optional<Bytes> bytes) {
  return bytes ? std::optional<double>{bytes->si()} : std::nullopt;
}

std::optional<double> memory_error_pct(const TruthOutcome& outcome) {
  return outcome.memory ? outcome.memory->error_pct() : std::nullopt;
}

std::vector<ComparedMemory> compared_rows(const std::vector<TruthOutcome>& outcomes) {
  std::vector<ComparedMemory> rows;
  for (const TruthOutcome& outcome : outcomes) {
    if (outcome.memory) rows.push_back(*outcome.memory);
  }
  return rows;
}

std::map<std::string, std::vector<ComparedMemory>> compared_by_family(const std::vector<TruthOutcome>& outcomes) {
  std::map<std::string, std::vector<ComparedMemory>> rows;
  for (const TruthOutcome& outcome : outcomes) {
    if (outcome.memory) rows[outcome.row.family].push_back(*outcome.memory);
  }
  return rows;
}

// What a row assumed, or why it is refused; and whether a run that did not fit was foreseen.
std::string note(const TruthOutcome& outcome) {
  if (!outcome.ok()) return "refused: " + outcome.reason;
  std::string text = join(outcome.row.assumed, ", ");
  if (outcome.memory && outcome.memory->measured.out_of_memory) {
    text += fmt::format("{}out of memory: forecast {}", text.empty() ? "" : "; ", outcome.memory->fits ? "to fit" : "not to fit");
  }
  return text;
}

}  // namespace

std::optional<double> TruthOutcome::error_pct() const { return relative_pct(forecast_step_s, row.step_s); }

std::vector<TruthOutcome> forecast_table(const std::string& file, const HardwareShelf& shelf, const TableOptions& options,
                                         const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<calibration::TruthRow> rows = calibration::read_truth_table(CsvTable::read(file), shelf.catalogue);
  std::vector<TruthOutcome> outcomes(rows.size());
  std::size_t done = 0;
  std::mutex reporting;
  in_parallel(rows.size(), options.threads, [&](std::size_t i) {
    outcomes[i] = forecast_row(std::move(rows[i]), file, shelf, options.fitted);
    const std::scoped_lock lock{reporting};
    progress(++done, outcomes.size());
  });
  mark_seen(outcomes);
  return outcomes;
}

TruthSummary summarise(const std::vector<TruthOutcome>& outcomes) {
  TruthSummary summary{.n = outcomes.size()};
  std::vector<double> errors;
  for (const TruthOutcome& outcome : outcomes) {
    ++(outcome.ok() ? summary.ok : summary.refused);
    if (const auto error = outcome.error_pct()) errors.push_back(*error);
  }
  summary.step = sum_up(errors);
  summary.memory = sum_up(compared_rows(outcomes));
  return summary;
}

std::string truth_text(const std::vector<TruthOutcome>& outcomes, std::optional<double> worse_than) {
  std::string text = fmt::format("{:<34} {:>12} {:>12} {:>9} {:>13} {:>13} {:>9} {:<9}  {}\n", "row", "measured_s", "forecast_s",
                                 "error_%", "measured_GiB", "forecast_GiB", "error_%", "memory", "assumed or refused");
  constexpr double kGib = 1073741824.0;
  const auto gib = [](std::optional<Bytes> bytes) { return bytes ? std::optional<double>{bytes->si() / kGib} : std::nullopt; };
  std::map<std::string, std::size_t> reasons;
  for (const TruthOutcome& o : outcomes) {
    if (!o.ok()) ++reasons[o.reason];
  }
  for (const TruthOutcome* row : rows_shown(outcomes, worse_than)) {
    const TruthOutcome& o = *row;
    const auto forecast_memory = o.memory ? std::optional{o.memory->forecast} : std::nullopt;
    text += fmt::format("{:<34} {:>12} {:>12} {:>9} {:>13} {:>13} {:>9} {:<9}  {}\n", o.row.id, or_dash(o.row.step_s, "", 4),
                        or_dash(o.forecast_step_s, "", 4), or_dash(o.error_pct(), "", 1), or_dash(gib(o.row.memory.peak), "", 2),
                        or_dash(gib(forecast_memory), "", 2), or_dash(memory_error_pct(o), "", 1),
                        o.row.memory.stated() ? name_of(o.row.memory.measure) : "-", note(o));
  }
  const TruthSummary s = summarise(outcomes);
  text += fmt::format("\n{} rows, {} forecast, {} refused\n", s.n, s.ok, s.refused);
  for (const auto& [reason, count] : reasons) text += fmt::format("  {:>4}  {}\n", count, reason);
  text += fmt::format("step time: mean absolute error {}, median {}, worst {}, mean signed {}\n", or_dash(s.step.mean_absolute, " %"),
                      or_dash(s.step.median_absolute, " %"), or_dash(s.step.worst_absolute, " %"), or_dash(s.step.mean_signed, " %"));
  text += fitted_text(outcomes);
  const auto by_family = compared_by_family(outcomes);
  text += by_family.empty() ? "memory: no row prints any\n" : "memory by family\n" + memory_summary_text(by_family);
  return text;
}

nlohmann::ordered_json truth_json(const std::vector<TruthOutcome>& outcomes) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TruthOutcome& o : outcomes) {
    rows.push_back({{"row_id", o.row.id},
                    {"status", o.ok() ? "ok" : "refused"},
                    {"reason", o.ok() ? join(o.row.assumed, ", ") : o.reason},
                    {"measured_step_s", or_null(o.row.step_s)},
                    {"forecast_step_s", or_null(o.forecast_step_s)},
                    {"error_pct", or_null(o.error_pct())},
                    {"fitted_profile", o.fitted_on.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(machine_name(o.row.family, o.fitted_on))},
                    {"seen_by_fit", o.fitted_on.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(o.seen)},
                    {"measured_memory", or_null(as_number(o.row.memory.peak))},
                    {"forecast_memory", or_null(as_number(o.memory ? std::optional{o.memory->forecast} : std::nullopt))},
                    {"memory_error_pct", or_null(memory_error_pct(o))},
                    {"memory_measure", o.row.memory.stated() ? nlohmann::ordered_json(name_of(o.row.memory.measure)) : nullptr},
                    {"memory_worker", o.row.memory.stated() ? nlohmann::ordered_json(o.row.memory.last_rank ? "last rank" : "fullest") : nullptr},
                    {"out_of_memory", o.row.memory.out_of_memory},
                    {"fits", o.memory ? nlohmann::ordered_json(o.memory->fits) : nullptr}});
  }
  const TruthSummary s = summarise(outcomes);
  nlohmann::ordered_json families = nlohmann::ordered_json::object();
  for (const auto& [family, compared] : compared_by_family(outcomes)) families[family] = to_json(sum_up(compared));
  return {{"rows", std::move(rows)},
          {"summary",
           {{"n", s.n},
            {"ok", s.ok},
            {"refused", s.refused},
            {"mape_pct", or_null(s.step.mean_absolute)},
            {"median_ape_pct", or_null(s.step.median_absolute)},
            {"worst_ape_pct", or_null(s.step.worst_absolute)},
            {"bias_pct", or_null(s.step.mean_signed)},
            {"memory_mape_pct", or_null(s.memory.errors.mean_absolute)},
            {"memory", to_json(s.memory)},
            {"memory_by_family", std::move(families)}}}};
}

}  // namespace stepcast::app
