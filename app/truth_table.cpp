#include "app/truth_table.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "app/setup.hpp"
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

TruthOutcome forecast_row(calibration::TruthRow row, const std::string& file, const HardwareShelf& shelf) {
  TruthOutcome outcome{.row = std::move(row)};
  outcome.reason = outcome.row.refusal;
  if (!outcome.ok()) return outcome;
  if (!outcome.row.step_s && !outcome.row.memory) {
    outcome.reason = "neither a step time nor a memory figure to compare with";
    return outcome;
  }
  try {
    const scenario::Loaded loaded =
        scenario::load_scenario_text(outcome.row.scenario, fmt::format("{}:{}", file, outcome.row.line));
    const Forecast f = forecast(prepare(shelf, loaded), {});
    outcome.forecast_step_s = f.step_time_s();
    outcome.forecast_memory = f.worst_memory().total;
  } catch (const UserError& error) {
    outcome.reason = one_line(error);
  }
  return outcome;
}

std::optional<double> relative_pct(std::optional<double> forecast, std::optional<double> measured) {
  if (!forecast || !measured || *measured <= 0.0) return std::nullopt;
  return (*forecast / *measured - 1.0) * 100.0;
}

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

std::string or_dash(std::optional<double> value, const char* unit, int decimals = 1) {
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : "-";
}

nlohmann::ordered_json or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::optional<double> as_number(std::optional<Bytes> bytes) {
  return bytes ? std::optional<double>{bytes->si()} : std::nullopt;
}

}  // namespace

std::optional<double> TruthOutcome::error_pct() const { return relative_pct(forecast_step_s, row.step_s); }

std::optional<double> TruthOutcome::memory_error_pct() const {
  return relative_pct(as_number(forecast_memory), as_number(row.memory));
}

std::vector<TruthOutcome> forecast_table(const std::string& file, const HardwareShelf& shelf, unsigned threads,
                                         const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<calibration::TruthRow> rows = calibration::read_truth_table(CsvTable::read(file), shelf.catalogue);
  std::vector<TruthOutcome> outcomes(rows.size());
  std::atomic<std::size_t> next{0};
  std::size_t done = 0;
  std::mutex reporting;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      try {
        outcomes[i] = forecast_row(std::move(rows[i]), file, shelf);
      } catch (...) {
        const std::scoped_lock lock{reporting};
        failure = std::current_exception();
        next = rows.size();
        return;
      }
      const std::scoped_lock lock{reporting};
      progress(++done, outcomes.size());
    }
  };
  std::vector<std::jthread> pool;
  for (unsigned t = 1; t < std::max(1u, threads); ++t) pool.emplace_back(work);
  work();
  pool.clear();
  if (failure) std::rethrow_exception(failure);
  return outcomes;
}

TruthSummary summarise(const std::vector<TruthOutcome>& outcomes) {
  TruthSummary summary{.n = outcomes.size()};
  std::vector<double> errors, absolute, memory;
  for (const TruthOutcome& outcome : outcomes) {
    ++(outcome.ok() ? summary.ok : summary.refused);
    if (const auto error = outcome.error_pct()) {
      errors.push_back(*error);
      absolute.push_back(std::abs(*error));
    }
    if (const auto error = outcome.memory_error_pct()) memory.push_back(std::abs(*error));
  }
  summary.mape_pct = mean(absolute);
  summary.median_ape_pct = median(absolute);
  if (!absolute.empty()) summary.worst_ape_pct = *std::max_element(absolute.begin(), absolute.end());
  summary.bias_pct = mean(errors);
  summary.memory_mape_pct = mean(memory);
  return summary;
}

std::string truth_text(const std::vector<TruthOutcome>& outcomes) {
  std::string text = fmt::format("{:<34} {:>12} {:>12} {:>9} {:>13} {:>13} {:>9}  {}\n", "row", "measured_s", "forecast_s",
                                 "error_%", "measured_GiB", "forecast_GiB", "error_%", "assumed or refused");
  constexpr double kGib = 1073741824.0;
  const auto gib = [](std::optional<Bytes> bytes) { return bytes ? std::optional<double>{bytes->si() / kGib} : std::nullopt; };
  std::map<std::string, std::size_t> reasons;
  for (const TruthOutcome& o : outcomes) {
    const bool has_memory = o.row.memory.has_value();
    std::string note = o.ok() ? join(o.row.assumed, ", ") : "refused: " + o.reason;
    if (!o.ok()) ++reasons[o.reason];
    text += fmt::format("{:<34} {:>12} {:>12} {:>9} {:>13} {:>13} {:>9}  {}\n", o.row.id, or_dash(o.row.step_s, "", 4),
                        or_dash(o.forecast_step_s, "", 4), or_dash(o.error_pct(), "", 1), or_dash(gib(o.row.memory), "", 1),
                        or_dash(has_memory ? gib(o.forecast_memory) : std::nullopt, "", 1), or_dash(o.memory_error_pct(), "", 1),
                        note);
  }
  const TruthSummary s = summarise(outcomes);
  text += fmt::format("\n{} rows, {} forecast, {} refused\n", s.n, s.ok, s.refused);
  for (const auto& [reason, count] : reasons) text += fmt::format("  {:>4}  {}\n", count, reason);
  text += fmt::format("step time: mean absolute error {}, median {}, worst {}, mean signed {}\n", or_dash(s.mape_pct, " %"),
                      or_dash(s.median_ape_pct, " %"), or_dash(s.worst_ape_pct, " %"), or_dash(s.bias_pct, " %"));
  text += fmt::format("memory:    mean absolute error {}\n", or_dash(s.memory_mape_pct, " %"));
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
                    {"measured_memory", or_null(as_number(o.row.memory))},
                    {"forecast_memory", or_null(as_number(o.forecast_memory))}});
  }
  const TruthSummary s = summarise(outcomes);
  return {{"rows", std::move(rows)},
          {"summary",
           {{"n", s.n},
            {"ok", s.ok},
            {"refused", s.refused},
            {"mape_pct", or_null(s.mape_pct)},
            {"median_ape_pct", or_null(s.median_ape_pct)},
            {"worst_ape_pct", or_null(s.worst_ape_pct)},
            {"memory_mape_pct", or_null(s.memory_mape_pct)}}}};
}

}  // namespace stepcast::app
