// executor/common/transformer_facts.hpp — the transformer that a plan's operators describe: read off its kernels, so that a plan file is
// all that a worker needs.
//
// Understood   decoder-only; RMSNorm, SwiGLU, rotary positions, no biases (Llama's form), ends tied or not; flash attention, causal; tp with or
//              without sequence parallelism, pp, dp, ZeRO 0 to 3, any recomputation, any schedule of one chunk a stage; fp32
// Refused      everything else, naming the operator
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stepcast::executor {

// One worker's part; widths are local.
struct TransformerFacts {
  std::int64_t rows = 0;       // tokens of a micro-batch
  std::int64_t sequence = 0;
  std::int64_t hidden = 0;
  plan::AttentionShape attention;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;      // 0: this stage has neither end
  bool first = false;          // has the embedding
  bool last = false;           // has the head
  std::vector<std::uint16_t> layers;  // of this stage, ascending
  std::int64_t micro_batches = 0;     // of one replica
  std::int32_t tp = 1;
  std::int32_t tp_rank = 0;
  std::int32_t dp_rank = 0;    // replica, over data and context
  bool sequence_parallel = false;  // norms and sums of hidden states: one's own rows of them
  bool tied = false;               // one table for both ends, or a copy at each
  std::int64_t tokens_in_step = 0;    // all replicas

  [[nodiscard]] std::int64_t query_width() const { return attention.query_heads * attention.head_dim; }
  [[nodiscard]] std::int64_t key_width() const { return attention.kv_heads * attention.head_dim; }
  [[nodiscard]] std::int64_t qkv_width() const { return query_width() + 2 * key_width(); }
  // Rows of hidden states between the products.
  [[nodiscard]] std::int64_t own_rows() const { return sequence_parallel ? rows / tp : rows; }
  [[nodiscard]] std::int64_t first_own_row() const { return sequence_parallel ? tp_rank * own_rows() : 0; }
  [[nodiscard]] std::int64_t samples() const { return rows / sequence; }  // of a micro-batch
};

// Throws UserError naming `file`.
TransformerFacts read_transformer(const plan::Plan& plan, RankId rank, const std::string& file);

}  // namespace stepcast::executor
