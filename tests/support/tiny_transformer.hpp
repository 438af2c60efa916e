// tests/support/tiny_transformer.hpp — a model that trains in no time, of the form that the executor trains for real.
#pragma once

#include "models/parallel/strategy.hpp"
#include "models/workload/model_shape.hpp"

namespace stepcast::test {

inline workload::ModelShape tiny_transformer(std::int64_t layers) {
  workload::ModelShape shape;
  shape.name = "tiny";
  shape.layers = layers;
  shape.hidden = 32;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 8;
  shape.ffn = 48;
  shape.vocab = 256;
  shape.gated_mlp = true;
  return shape;
}

// In fp32, one sequence of 16 tokens a micro-batch.
inline parallel::Strategy tiny_strategy(std::int32_t tp, std::int32_t pp, std::int32_t dp, std::int64_t global_batch) {
  parallel::Strategy s;
  s.tp = tp;
  s.pp = pp;
  s.dp = dp;
  s.sequence = 16;
  s.global_batch = global_batch;
  s.micro_batch = 1;
  s.dtype = s.gradient_dtype = plan::Dtype::kFp32;
  return s;
}

}  // namespace stepcast::test
