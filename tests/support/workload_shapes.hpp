// tests/support/workload_shapes.hpp — model shapes and sums over step lists for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/operators.hpp"

namespace stepcast::test {

// GPT as in Megatron-LM: LayerNorm, GELU, biases everywhere, 4h wide MLP, tied embeddings.
inline workload::ModelShape gpt_shape(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                      std::int64_t vocab = 51200) {
  workload::ModelShape shape;
  shape.name = "gpt";
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = shape.kv_heads = heads;
  shape.head_dim = hidden / heads;
  shape.ffn = 4 * hidden;
  shape.vocab = vocab;
  shape.tied_embeddings = true;
  shape.attention_bias = shape.mlp_bias = true;
  shape.norm = workload::NormKind::kLayerNorm;
  shape.activation = workload::Activation::kGeluTanh;
  shape.position = workload::Position::kLearned;
  shape.max_positions = 2048;
  return shape;
}

// Llama-3-8B: arXiv 2407.21783 table 3.
inline workload::ModelShape llama3_8b() {
  workload::ModelShape shape;
  shape.name = "llama3-8b";
  shape.layers = 32;
  shape.hidden = 4096;
  shape.heads = 32;
  shape.kv_heads = 8;
  shape.head_dim = 128;
  shape.ffn = 14336;
  shape.vocab = 128256;
  shape.gated_mlp = true;
  return shape;
}

inline double gemm_flops(const std::vector<workload::Step>& steps) {
  double sum = 0;
  for (const auto& step : steps)
    if (const auto* op = std::get_if<workload::Operator>(&step))
      if (op->kernel.op == plan::OpClass::kGemm || op->kernel.op == plan::OpClass::kAttention)
        sum += op->kernel.flops.si();
  return sum;
}

inline std::int64_t saved_bytes(const workload::Block& block) {
  std::int64_t sum = 0;
  for (const auto& tensor : block.saved) sum += tensor.size.count();
  return sum;
}

// Index of the step called `name`; the list's length when there is none.
inline std::size_t find_step(const std::vector<workload::Step>& steps, std::string_view name) {
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (std::visit([&](const auto& step) { return step.name == name; }, steps[i])) return i;
  return steps.size();
}

inline std::vector<workload::BlockCollective> collectives(
    const std::vector<workload::Step>& steps) {
  std::vector<workload::BlockCollective> list;
  for (const auto& step : steps)
    if (const auto* c = std::get_if<workload::BlockCollective>(&step)) list.push_back(*c);
  return list;
}

}  // namespace stepcast::test
