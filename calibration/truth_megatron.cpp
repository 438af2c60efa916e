#include "calibration/truth_megatron.hpp"

#include <array>

#include <fmt/format.h>

namespace stepcast::calibration {
namespace {

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

struct Tokenizer {
  std::string_view model;  // how the test case's name starts
  std::int64_t vocab;
};
// model_config.yaml: nemotron_2_256k.model; Llama2Tokenizer; BERT's word pieces.
constexpr std::array kTokenizers{Tokenizer{"gpt:gpt3_15b", 256000}, Tokenizer{"mixtral:", 32000},
                                 Tokenizer{"bert:", 30522}};

std::optional<std::int64_t> vocab_of(std::string_view model) {
  for (const Tokenizer& tokenizer : kTokenizers) {
    if (model.starts_with(tokenizer.model)) return tokenizer.vocab;
  }
  return std::nullopt;
}

bool before_hopper(std::string_view gpu) { return gpu.starts_with("A100") || gpu.starts_with("V100"); }

std::string workspace(const MegatronTestRow& row) {
  const bool deterministic = has(row.notes, "deterministic-mode");
  const double handle = deterministic || !before_hopper(row.gpu) ? 32.0 : 8.125;  // :4096:8, :4096:2:16:8
  constexpr double kMebibyte = 1048576.0;
  const double scores = static_cast<double>(2 * row.scores) / kMebibyte;
  const double engine = has(row.notes, "transformer-impl=local") ? scores : before_hopper(row.gpu) ? 4.0 : 32.0;
  return fmt::format("{:g} MiB", 2 * handle + engine);
}

}  // namespace

std::optional<MegatronTest> megatron_test(const MegatronTestRow& row) {
  if (!has(row.notes, "flags: ")) return std::nullopt;
  constexpr std::int64_t kLarge = 4096;  // hidden, of the models of 7B and up
  const bool local = has(row.notes, "transformer-impl=local") || has(row.notes, "attention-backend=local");
  const bool release = has(row.model, "_release");
  MegatronTest test;
  if (row.model.starts_with("t5:")) test.refusal = "encoder and decoder are not modelled yet";
  if (row.model.starts_with("hybrid:")) test.refusal = "state-space layers are not modelled yet";
  test.unfused_attention = local || has(row.notes, "attention-backend=unfused");
  test.fused_loss = has(row.model, "cross_entropy_loss_fusion");
  test.fused_accumulation = !has(row.notes, "no-gradient-accumulation-fusion");
  test.grouped_experts = has(row.notes, "moe-grouped-gemm") || has(row.model, "groupedGEMM");
  test.tied = !has(row.model, "untie") && row.hidden < kLarge;
  test.bias = !has(row.model, "disable_bias") && !row.experts && !(release && row.hidden >= kLarge);
  test.rotary = has(row.model, "rope") || (release && row.hidden >= kLarge);
  test.rms_norm = row.model.starts_with("mixtral:");
  test.qk_norm = has(row.model, "qk_layernorm");
  if (row.context_parallel || (release && row.hidden >= kLarge)) test.dropout = 0.0;
  test.vocab = vocab_of(row.model);
  test.library_workspace = workspace(row);
  return test;
}

}  // namespace stepcast::calibration
