// Validation for people and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/validate/validation.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(const std::optional<double>& value, bool sign) {
  if (!value) return "-";
  return sign ? fmt::format("{:+.1f} %", 100.0 * *value) : fmt::format("{:.1f} %", 100.0 * *value);
}

std::string count_text(const ValidationRow& row) {
  if (row.count == 0 && !row.measured_count) return "-";
  return row.measured_count ? fmt::format("{}/{}", row.count, *row.measured_count) : std::to_string(row.count);
}

std::string table_text(const char* title, const char* first, const std::vector<ValidationRow>& rows, double step_s, const Terminal& terminal) {
  if (rows.empty()) return "";
  Table table{{first, "count", "forecast", "measured", "share", "error", "absolute"}};
  for (const ValidationRow& row : rows) {
    table.add({row.name, count_text(row), human_seconds(row.forecast_s), human_seconds(row.measured_s), percent(row.measured_s / step_s, false), percent(row.signed_error(), true), percent(row.absolute, false)});
  }
  return fmt::format("\n{}\n{}", title, table.render(terminal, "  "));
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json rows_json(const std::vector<ValidationRow>& rows, double step_s) {
  Json json = Json::array();
  for (const ValidationRow& row : rows) {
    json.push_back({{"name", row.name}, {"count", row.count}, {"measured_count", row.measured_count.value_or(row.count)}, {"forecast_s", row.forecast_s}, {"measured_s", row.measured_s},
                    {"share_of_step", row.measured_s / step_s}, {"signed_error", or_null(row.signed_error())}, {"absolute_error", or_null(row.absolute)}});
  }
  return json;
}

std::string place_text(const ComparedInstruction& c) {
  std::string text = fmt::format("worker {} {}", c.worker.value(), c.stream);
  if (c.layer) text += fmt::format(" layer {}", *c.layer);
  if (c.micro_batch) text += fmt::format(" micro-batch {}", *c.micro_batch);
  return text;
}

}  // namespace

std::string validation_text(const Validation& v, const Terminal& terminal) {
  const auto line = [](const char* name, const std::string& value) { return fmt::format("  {:<12} {}\n", name, value); };
  std::string text;
  text += line("step", fmt::format("forecast {}, measured {}: {}", human_seconds(v.forecast_step_s), human_seconds(v.measured_step_s),
                                   paint(terminal, Tone::kStrong, percent(v.step_error(), true))));
  text += line("matched", v.exact ? fmt::format("{} of {} instructions of {} worker{}, one by one", v.matched, std::max(v.forecast_count, v.measured_count), v.workers, v.workers == 1 ? "" : "s")
                                  : fmt::format("{} of {} instructions and {} kernels, by class and order; classes with other counts by their sums", v.matched, v.forecast_count, v.measured_count));
  for (const std::string& note : v.notes) text += line("note", wrap(note, 84, std::string(15, ' ')));
  text += table_text(v.exact ? "By class of work (mean over workers)" : "By class of work", "class", v.by_class, v.measured_step_s, terminal);
  text += table_text("By stream", "stream", v.by_stream, v.measured_step_s, terminal);
  text += table_text("By phase of the compute stream: they add up to the step", "phase", v.by_phase, v.measured_step_s, terminal);
  text += table_text("Beside it", "", v.beside, v.measured_step_s, terminal);
  if (!v.worst.empty()) {
    Table table{{"instruction", "where", "class", "forecast", "measured", "difference"}};
    for (const ComparedInstruction& c : v.worst) {
      table.add({c.name + " (" + c.stage + ")", place_text(c), c.work, human_duration(c.forecast), human_duration(c.measured),
                 (c.difference_s() < 0.0 ? "-" : "+") + human_seconds(std::abs(c.difference_s()))});
    }
    text += fmt::format("\nFurthest apart\n{}", table.render(terminal, "  "));
  }
  return text;
}

Json validation_json(const Validation& v) {
  Json json{{"name", v.name}, {"alignment", v.exact ? "instruction" : "class"}, {"forecast_step_s", v.forecast_step_s}, {"measured_step_s", v.measured_step_s}, {"step_error", v.step_error()},
            {"workers", v.workers}, {"matched", v.matched}, {"forecast_instructions", v.forecast_count}, {"measured_instructions", v.measured_count}};
  json["by_class"] = rows_json(v.by_class, v.measured_step_s);
  json["by_stream"] = rows_json(v.by_stream, v.measured_step_s);
  json["by_phase"] = rows_json(v.by_phase, v.measured_step_s);
  json["beside"] = rows_json(v.beside, v.measured_step_s);
  json["worst"] = Json::array();
  for (const ComparedInstruction& c : v.worst) {
    json["worst"].push_back({{"instruction", c.name}, {"stage", c.stage}, {"class", c.work}, {"worker", c.worker.value()}, {"stream", c.stream}, {"layer", c.layer ? Json(*c.layer) : Json(nullptr)},
                             {"micro_batch", c.micro_batch ? Json(*c.micro_batch) : Json(nullptr)}, {"forecast_s", c.forecast.seconds()}, {"measured_s", c.measured.seconds()},
                             {"difference_s", c.difference_s()}});
  }
  json["notes"] = v.notes;
  return json;
}

}  // namespace stepcast::app
