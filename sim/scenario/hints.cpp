#include "sim/scenario/hints.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/scenario/describe.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::scenario {
namespace {

// Names that people bring from training frameworks.
constexpr std::array<std::pair<std::string_view, std::string_view>, 34> kSynonyms{{
    {"tensor_model_parallel_size", "parallel.tp"}, {"tensor_parallel_size", "parallel.tp"},
    {"tensor_parallel", "parallel.tp"}, {"tensor_parallel_degree", "parallel.tp"},
    {"pipeline_model_parallel_size", "parallel.pp"}, {"pipeline_parallel_size", "parallel.pp"},
    {"pipeline_parallel", "parallel.pp"}, {"pipeline_parallel_degree", "parallel.pp"},
    {"data_parallel_size", "parallel.dp"}, {"data_parallel", "parallel.dp"},
    {"data_parallel_shard_degree", "parallel.shard_group"}, {"context_parallel_size", "parallel.cp"},
    {"expert_model_parallel_size", "parallel.ep"}, {"zero_stage", "parallel.zero"}, {"stage", "parallel.zero"},
    {"fsdp", "parallel.zero"}, {"micro_batch_size", "batch.micro"}, {"train_micro_batch_size_per_gpu", "batch.micro"},
    {"per_device_train_batch_size", "batch.micro"}, {"global_batch_size", "batch.global"},
    {"train_batch_size", "batch.global"}, {"seq_length", "model.sequence"}, {"seq_len", "model.sequence"},
    {"sequence_length", "model.sequence"}, {"recompute_granularity", "memory.recompute"},
    {"activation_checkpointing", "memory.recompute"}, {"gradient_checkpointing", "memory.recompute"},
    {"num_layers", "model.shape.layers"}, {"num_hidden_layers", "model.shape.layers"},
    {"hidden_size", "model.shape.hidden"}, {"num_attention_heads", "model.shape.heads"},
    {"num_key_value_heads", "model.shape.kv_heads"}, {"intermediate_size", "model.shape.ffn"},
    {"vocab_size", "model.shape.vocab"},
}};

void find_key(const std::vector<Described>& keys, const std::string& path, const std::string& wanted,
              std::vector<std::string>& found) {
  for (const Described& d : keys) {
    if (d.key == wanted) found.push_back(child_path(path, d.key));
    find_key(d.children, child_path(path, d.key), wanted, found);
  }
}

}  // namespace

KeyHint hint_for_key(const std::string& key) {
  KeyHint hint;
  find_key(describe(Scenario{}).children, "", key, hint.paths);
  if (!hint.paths.empty()) {
    std::vector<std::string> sections;
    for (const std::string& path : hint.paths) {
      const std::size_t dot = path.rfind('.');
      sections.push_back(dot == std::string::npos ? "the top level" : path.substr(0, dot));
    }
    hint.text = fmt::format("'{}' is a key of {}", key, join(sections, ", "));
    return hint;
  }
  for (const auto& [theirs, ours] : kSynonyms) {
    if (theirs == key) return {fmt::format("here it is called '{}'", ours), {std::string{ours}}};
  }
  return hint;
}

}  // namespace stepcast::scenario
