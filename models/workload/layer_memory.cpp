#include <algorithm>

#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

namespace {

constexpr std::int64_t kFp32Bytes = 4;
constexpr std::int64_t kMaskBytes = 1;

class Saved {
 public:
  void add(const char* name, std::int64_t bytes) {
    if (bytes > 0) list_.push_back({name, Bytes{bytes}});
  }
  [[nodiscard]] std::vector<SavedTensor> take() { return std::move(list_); }

 private:
  std::vector<SavedTensor> list_;
};

// An unfused norm keeps an fp32 copy of its input, and RMSNorm its normalised value as well.
std::int64_t norm_input_bytes(const LayerContext& c) {
  if (c.options.fused_kernels) return c.d.bytes;
  return kFp32Bytes + (c.shape.norm == NormKind::kRmsNorm ? c.d.bytes : 0);
}

// The scores that selective recomputation drops: softmax output, dropout mask, dropped-out scores.
std::int64_t score_bytes(const LayerContext& c) {
  if (c.flash()) return 0;
  const std::int64_t softmax = c.options.fused_kernels ? 0 : kFp32Bytes;  // kept in fp32 besides
  const std::int64_t used = c.d.bytes;                                    // what multiplies V
  const std::int64_t kept = c.options.fused_kernels && c.dropout() ? c.d.bytes : 0;
  return c.d.scores * (softmax + used + kept + (c.dropout() ? kMaskBytes : 0));
}

void save_attention(const LayerContext& c, Saved& saved, bool with_scores) {
  const LocalDims& d = c.d;
  if (c.shape.qk_norm)
    saved.add("attention.qk_norm.input", d.rows * (d.q_width + d.kv_width) * norm_input_bytes(c));
  saved.add("attention.qkv", d.rows * (c.expands_kv() ? 3 * d.q_width : d.qkv_width) * d.bytes);
  if (c.flash()) {
    saved.add("attention.statistics", d.batch * d.q_heads * d.sequence * kFp32Bytes);
    saved.add("attention.output", d.rows * d.q_width * d.bytes);
    // In 16 bit the flash kernel's output is the projection's input: one tensor.
    if (d.gemm_bytes != d.bytes)
      saved.add("attention.out.input", d.rows * d.q_width * d.gemm_bytes);
  } else {
    if (with_scores) saved.add("attention.scores", score_bytes(c));
    saved.add("attention.out.input", d.rows * d.q_width * d.gemm_bytes);
  }
}

void save_mlp(const LayerContext& c, Saved& saved) {
  const LocalDims& d = c.d;
  saved.add("mlp.activation.input", d.rows * d.up_width * d.bytes);
  if (!c.options.fused_kernels && c.shape.gated_mlp)
    saved.add("mlp.gate", d.rows * d.ffn * d.bytes);
  saved.add("mlp.down.input", d.rows * d.ffn * d.gemm_bytes);
}

std::vector<SavedTensor> saved_tensors(const LayerContext& c, bool with_scores) {
  const std::int64_t n = c.d.norm_rows * c.d.hidden;
  const std::int64_t mask = c.dropout() ? n * kMaskBytes : 0;
  const std::int64_t norm_input = n * norm_input_bytes(c);
  const bool parallel = c.shape.parallel_block;
  Saved saved;
  saved.add("norm1.input", norm_input);
  saved.add("attention.qkv.input", n * c.d.gemm_bytes);
  save_attention(c, saved, with_scores);
  if (c.post_norms()) saved.add("norm1.post.input", norm_input);
  saved.add("residual1.mask", mask);
  if (!parallel) saved.add("norm2.input", norm_input);
  if (!c.shared_norm()) saved.add("mlp.up.input", n * c.d.gemm_bytes);
  save_mlp(c, saved);
  if (c.post_norms()) saved.add("norm2.post.input", norm_input);
  if (!parallel) saved.add("residual2.mask", mask);
  return saved.take();
}

Bytes total(const std::vector<SavedTensor>& tensors) {
  Bytes sum{0};
  for (const SavedTensor& tensor : tensors) sum += tensor.size;
  return sum;
}

// Peaks of tensors that live only within the pass; each line is one moment of it.
std::int64_t forward_workspace(const LayerContext& c) {
  const LocalDims& d = c.d;
  const std::int64_t e = d.bytes;
  const std::int64_t full = d.rows * d.hidden * e;  // a gathered input, or a row-parallel output
  const std::int64_t gathered = d.sequence_parallel ? full : 0;
  const std::int64_t shard = d.norm_rows * d.hidden * e;
  const std::int64_t scores = c.flash() ? 0 : d.scores * e;  // before the softmax
  if (c.options.recompute != Recompute::kFull) return std::max({gathered, full + shard, scores});
  // Nothing is kept, so a pass holds its half's tensors until the half is through.
  const std::int64_t attention = d.rows * (d.qkv_width + d.q_width) * e;
  const std::int64_t mlp = d.rows * (d.up_width + d.ffn) * e;
  return 2 * shard + std::max({gathered + attention + scores + score_bytes(c), attention + full,
                               gathered + mlp, mlp + full});
}

std::int64_t backward_workspace(const LayerContext& c) {
  const LocalDims& d = c.d;
  const std::int64_t e = d.bytes;
  const std::int64_t full = d.rows * d.hidden * e;
  const std::int64_t gathered = d.sequence_parallel ? full : 0;
  const std::int64_t residual = d.norm_rows * d.hidden * e;  // the incoming gradient, until joined
  const std::int64_t ffn = d.rows * d.ffn * e;
  const std::int64_t up = d.rows * d.up_width * e;
  const std::int64_t q = d.rows * d.q_width * e;
  const std::int64_t qkv = d.rows * d.qkv_width * e;
  const std::int64_t scores = c.flash() ? 0 : 2 * d.scores * e;  // gradient into and out of softmax
  return residual + std::max({gathered + ffn,                    // dX of mlp.down
                              ffn + up,                          // through the activation
                              up + gathered + full,   // dX of mlp.up, input gathered again
                              gathered + q,           // dX of attention.out
                              q + qkv + scores,       // through the attention core
                              qkv + gathered + full,  // dX of attention.qkv
                              residual + full});      // through the norm
}

// Inputs and output gradients of the four linear layers, as their weight-gradient products read them.
void fill_weight_operands(const LayerContext& c, Block& block) {
  const LocalDims& d = c.d;
  const std::int64_t n = d.norm_rows * d.hidden;
  const std::int64_t inputs = (c.shared_norm() ? n : 2 * n) + d.rows * (d.q_width + d.ffn);
  const std::int64_t outputs = d.rows * (d.qkv_width + d.up_width + 2 * d.hidden);
  block.weight_inputs = Bytes{inputs * d.gemm_bytes};
  block.weight_gradients = Bytes{outputs * d.gemm_bytes};
}

void fill_parameters(const LayerContext& c, Block& block) {
  const LocalDims& d = c.d;
  const ModelShape& shape = c.shape;
  std::int64_t parameters = 0;
  std::int64_t tensors = 0;
  const auto add = [&](std::int64_t elements) {
    parameters += elements;
    ++tensors;
  };
  const auto add_norm = [&](std::int64_t width) {
    parameters += norm_parameters(shape, width);
    tensors += norm_parameters(shape, width) / width;
  };
  for (int i = 0; i < shape.norms_per_layer; ++i) add_norm(d.hidden);
  add(d.hidden * d.qkv_width);
  if (has_qkv_bias(shape)) add(d.qkv_width);
  if (shape.qk_norm) {
    add_norm(d.head_dim);
    add_norm(d.head_dim);
  }
  add(d.q_width * d.hidden);
  if (has_output_bias(shape)) add(d.hidden);
  add(d.hidden * d.up_width);
  if (shape.mlp_bias) add(d.up_width);
  add(d.ffn * d.hidden);
  if (shape.mlp_bias) add(d.hidden);
  block.parameters = parameters;
  block.matrix_count = tensors;
}

}  // namespace

void fill_layer_memory(const LayerContext& c, Block& block) {
  switch (c.options.recompute) {
    case Recompute::kNone:
      block.saved = saved_tensors(c, true);
      break;
    case Recompute::kSelective:
      block.saved = saved_tensors(c, false);
      block.recompute_peak = Bytes{score_bytes(c)};
      break;
    case Recompute::kFull: {
      const Bytes input{c.d.norm_rows * c.d.hidden * c.d.bytes};
      block.saved = {{"layer.input", input}};
      block.recompute_peak = total(saved_tensors(c, true));
      // A fused norm keeps the layer's input itself, which is there already.
      if (c.options.fused_kernels) block.recompute_peak -= input;
      break;
    }
  }
  block.forward_workspace = Bytes{forward_workspace(c)};
  block.backward_workspace = Bytes{backward_workspace(c)};
  fill_weight_operands(c, block);
  fill_parameters(c, block);
}

}  // namespace stepcast::workload
