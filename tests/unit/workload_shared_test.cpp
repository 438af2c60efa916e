// Against third parties' tables, where they are at hand.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "models/workload/hf_config.hpp"
#include "models/workload/presets.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/shared_data.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

class Table {
 public:
  explicit Table(const std::string& path) : table_{CsvTable::read(path)} {}
  [[nodiscard]] std::size_t size() const { return table_.rows().size(); }
  [[nodiscard]] const std::string& text(std::size_t row, const char* column) const {
    return table_.rows().at(row).fields.at(table_.require_column(column));
  }
  [[nodiscard]] double number(std::size_t row, const char* column) const {
    return std::strtod(text(row, column).c_str(), nullptr);
  }

 private:
  CsvTable table_;
};

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("workload: every collected config.json loads exactly or is refused for its reason") {
  const auto folder = shared_path("formats/hf_configs");
  if (!folder) return;
  const Table index{*folder + "/index.csv"};
  std::map<std::string, std::int64_t> totals, active;
  const Table counts{*folder + "/param_counts.csv"};
  for (std::size_t i = 0; i < counts.size(); ++i)
    totals[counts.text(i, "file")] =
        std::strtoll(counts.text(i, "params_total_computed").c_str(), nullptr, 10);
  for (std::size_t i = 0; i < counts.size(); ++i)
    active[counts.text(i, "file")] =
        std::strtoll(counts.text(i, "params_active_per_token_computed").c_str(), nullptr, 10);

  int loaded = 0, compared = 0, refused = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::string& file = index.text(i, "file");
    const std::string& type = index.text(i, "model_type");
    CAPTURE(file);
    std::string error;
    try {
      const ModelShape shape = load_hf_config(*folder + "/" + file);
      ++loaded;
      CHECK(shape.experts.has_value() == !index.text(i, "experts").empty());
      if (shape.experts) {
        CHECK(shape.experts->count == std::strtoll(index.text(i, "experts").c_str(), nullptr, 10));
        CHECK(shape.experts->top_k == std::strtoll(index.text(i, "top_k").c_str(), nullptr, 10));
      }
      CHECK(shape.layers == std::strtoll(index.text(i, "layers").c_str(), nullptr, 10));
      CHECK(shape.hidden == std::strtoll(index.text(i, "hidden").c_str(), nullptr, 10));
      if (!index.text(i, "heads").empty())
        CHECK(shape.heads == std::strtoll(index.text(i, "heads").c_str(), nullptr, 10));
      CHECK(shape.note.empty() == (index.text(i, "nested_text").empty() && type != "mimo" && type != "deepseek_v3"));
      if (totals.count(file) > 0) {
        ++compared;
        CHECK(count_parameters(shape).total == totals[file]);
        if (shape.experts) {
          CHECK(count_parameters(shape).active == active[file]);
          MESSAGE(file << ": counted " << count_parameters(shape).total << " (active " << count_parameters(shape).active
                       << "), in the table " << totals[file]);
        }
      }
      continue;
    } catch (const UserError& refusal) {
      error = refusal.what();
    }
    ++refused;
    INFO(error);
    if (type == "deepseek_v32" || type == "glm_moe_dsa") CHECK(has(error, "(DSA)"));
    if (type == "nemotron_h" || type == "qwen3_next") CHECK(has(error, "hybrid"));
    if (type == "nemotron-nas") CHECK(has(error, "layers of different shapes"));
    CHECK_FALSE(has(error, "not valid JSON"));
    CHECK_FALSE(has(error, "family is not known"));
  }
  CHECK(loaded == 41);
  CHECK(compared == 29);
  CHECK(loaded + refused == static_cast<int>(index.size()));
}

// Rows that print TFLOP/s and a step time, or one from the other by a stated formula: the
// convention's FLOPs over time and devices must give the TFLOP/s back.
TEST_CASE("workload: conventions reproduce printed TFLOP/s of Megatron-LM runs") {
  const auto path = shared_path("truth/megatron_lm.csv");
  if (!path) return;
  const Table table{*path};
  int model_rows = 0, hardware_rows = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double tflops = table.number(i, "tflops_gpu");
    const double step = table.text(i, "step_s").empty() ? table.number(i, "step_s_derived")
                                                        : table.number(i, "step_s");
    if (tflops <= 0 || step <= 0) continue;
    CAPTURE(table.text(i, "row_id"));
    ModelShape shape = gpt_shape(static_cast<std::int64_t>(table.number(i, "layers")),
                                 static_cast<std::int64_t>(table.number(i, "hidden")),
                                 static_cast<std::int64_t>(table.number(i, "heads")),
                                 static_cast<std::int64_t>(table.number(i, "vocab")));
    shape.ffn = static_cast<std::int64_t>(table.number(i, "ffn"));
    shape.gated_mlp = table.text(i, "gated_mlp") == "1";
    if (!table.text(i, "kv_heads").empty())
      shape.kv_heads = static_cast<std::int64_t>(table.number(i, "kv_heads"));
    const auto sequence = static_cast<std::int64_t>(table.number(i, "seq_len"));
    double flops = model_flops_per_sequence(shape, sequence, FlopsConvention::kMegatron).si();
    const std::string& definition = table.text(i, "tflops_def");
    if (has(definition, "hardware")) {
      // Full recomputation runs every layer's forward pass again: a third of the layers' share.
      BlockOptions options;
      options.sequence = sequence;
      options.attention = AttentionKernel::kUnfused;
      options.recompute = Recompute::kFull;
      flops +=
          static_cast<double>(shape.layers) * gemm_flops(make_layer(shape, 0, options).recompute);
      ++hardware_rows;
    } else {
      ++model_rows;
    }
    const double ratio = flops * table.number(i, "global_batch") /
                         (step * table.number(i, "n_gpus")) / (tflops * 1e12);
    CHECK(ratio == doctest::Approx(1.0).epsilon(0.01));
  }
  CHECK(model_rows >= 10);
  CHECK(hardware_rows >= 15);
}

// Korthikanti et al. figure 7, percent of the memory without either technique, read off and
// rounded.
TEST_CASE("workload: activation memory relative to none") {
  const auto path = shared_path("truth/activation_memory_relative.csv");
  if (!path) return;
  const Table table{*path};
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> models{
      {"GPT-22B", {6144, 64}},
      {"GPT-175B", {12288, 96}},
      {"GPT-530B", {20480, 128}},
      {"GPT-1T", {25600, 160}}};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto [hidden, heads] = models.at(table.text(i, "model"));
    CAPTURE(table.text(i, "model"));
    const ModelShape shape = gpt_shape(1, hidden, heads);
    const auto percent = [&](bool sequence_parallel, Recompute recompute) {
      BlockOptions options;
      options.sequence = 2048;
      options.tensor_parallel = 8;
      options.attention = AttentionKernel::kUnfused;
      options.dropout = 0.1;
      const auto none = static_cast<double>(saved_bytes(make_layer(shape, 0, options)));
      options.sequence_parallel = sequence_parallel;
      options.recompute = recompute;
      return 100 * static_cast<double>(saved_bytes(make_layer(shape, 0, options))) / none;
    };
    CHECK(percent(true, Recompute::kNone) ==
          doctest::Approx(table.number(i, "seq_parallel_pct")).epsilon(0.01));
    CHECK(percent(false, Recompute::kSelective) ==
          doctest::Approx(table.number(i, "selective_pct")).epsilon(0.01));
    CHECK(percent(true, Recompute::kSelective) ==
          doctest::Approx(table.number(i, "selective_plus_seq_pct")).epsilon(0.01));
    CHECK(percent(false, Recompute::kFull) ==
          doctest::Approx(table.number(i, "full_pct")).epsilon(0.01));
  }
}

TEST_SUITE_END();
