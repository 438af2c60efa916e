// DeepSpeed's estimator, ZeRO's table and the 40-byte rule, row by row against recorded values (../shared/headlines).
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "models/parallel/estimators.hpp"
#include "sim/base/csv.hpp"
#include "tests/support/shared_data.hpp"

namespace stepcast::parallel {
namespace {

struct Table {
  CsvTable csv;
  const std::string& text(const CsvTable::Row& row, const char* column) const { return row.fields[csv.require_column(column)]; }
  double number(const CsvTable::Row& row, const char* column) const { return std::stod(text(row, column)); }
};

std::optional<Table> table(const char* name) {
  const auto path = test::shared_path(std::string{"headlines/"} + name);
  if (!path) return std::nullopt;
  return Table{CsvTable::read(*path)};
}

// Equal to the last digit printed, two decimals.
bool prints_as(double value, double printed) { return std::abs(value - printed) <= 0.005 + 1e-9; }

}  // namespace

TEST_SUITE_BEGIN("diff");

TEST_CASE("estimators: DeepSpeed's printed values, every row") {
  const auto values = table("deepspeed_estimators.csv");
  if (!values) return;
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  std::size_t matched = 0;
  for (const auto& row : values->csv.rows()) {
    const std::string layer = values->text(row, "largest_layer_m");
    const EstimatorInput input{.parameters = values->number(row, "params_b") * 1e9, .largest_layer = layer.empty() ? 0.0 : std::stod(layer) * 1e6,
                               .gpus_per_node = std::stol(values->text(row, "gpus_per_node")), .nodes = std::stol(values->text(row, "nodes"))};
    CAPTURE(row.line);
    for (const DeepSpeedEstimate& estimate : deepspeed_estimates(input)) {
      if ("zero" + std::to_string(estimate.stage) != values->text(row, "stage")) continue;
      if ((estimate.offload_parameters ? "cpu" : "none") != values->text(row, "offload_param")) continue;
      if ((estimate.offload_optimizer ? "cpu" : "none") != values->text(row, "offload_optimizer")) continue;
      if (estimate.zero_init && std::to_string(static_cast<int>(*estimate.zero_init)) != values->text(row, "zero_init")) continue;
      CHECK(prints_as(estimate.host_bytes_per_node / kGib, values->number(row, "cpu_per_node_gib")));
      CHECK(prints_as(estimate.device_bytes / kGib, values->number(row, "gpu_gib")));
      ++matched;
    }
  }
  CHECK(matched == values->csv.rows().size());
}

TEST_CASE("estimators: ZeRO's table, every row") {
  const auto values = table("zero_memory_table.csv");
  if (!values) return;
  for (const auto& row : values->csv.rows()) {
    const std::string size = values->text(row, "params");
    const double parameters = std::stod(size) * (size.back() == 'T' ? 1e12 : 1e9);
    const ZeroStates states = zero_states(parameters, std::stol(values->text(row, "dp")));
    CAPTURE(row.line);
    CHECK(prints_as(states.baseline / 1e9, values->number(row, "baseline_gb")));
    CHECK(prints_as(states.optimizer / 1e9, values->number(row, "pos_gb")));
    CHECK(prints_as(states.gradients / 1e9, values->number(row, "pos_g_gb")));
    CHECK(prints_as(states.parameters / 1e9, values->number(row, "pos_g_p_gb")));
  }
}

TEST_CASE("estimators: the rule of forty bytes, every row") {
  const auto values = table("bytes_per_param.csv");
  if (!values) return;
  for (const auto& row : values->csv.rows()) {
    const RuleOfThumb rule = rule_of_40(values->number(row, "params_b") * 1e9, 80e9);
    CAPTURE(row.line);
    CHECK(std::abs(rule.bytes / 1e9 - values->number(row, "rule40_gb")) <= 0.5);  // the table has whole gigabytes
    CHECK(rule.gpus == std::stol(values->text(row, "gpus_80gb")));
  }
}

}  // namespace stepcast::parallel
