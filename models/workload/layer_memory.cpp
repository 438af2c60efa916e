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

// Latents before their norms, and what enters the projections out of them; sharded over the sequence.
void save_latents(const LayerContext& c, Saved& saved) {
  if (!c.shape.latent) return;
  const LatentAttention& l = *c.shape.latent;
  const std::int64_t n = c.d.norm_rows;
  saved.add("attention.q_norm.input", n * l.q_rank * norm_input_bytes(c));
  saved.add("attention.q_up.input", n * l.q_rank * c.d.gemm_bytes);
  saved.add("attention.kv_norm.input", n * l.kv_rank * norm_input_bytes(c));
  saved.add("attention.kv_up.input", n * l.kv_rank * c.d.gemm_bytes);
}

void save_attention(const LayerContext& c, Saved& saved, bool with_scores) {
  const LocalDims& d = c.d;
  save_latents(c, saved);
  if (c.shape.qk_norm)
    saved.add("attention.qk_norm.input", d.rows * (d.q_width + d.kv_width) * norm_input_bytes(c));
  saved.add("attention.qkv", d.rows * (c.expands_kv() ? 2 * d.q_width + d.out_width : d.qkv_width) * d.bytes);
  if (c.flash()) {
    saved.add("attention.statistics", d.batch * d.q_heads * d.sequence * kFp32Bytes);
    saved.add("attention.output", d.rows * d.out_width * d.bytes);
    // A ring sends from a buffer of its own, which then serves the backward pass.
    if (d.context > 1 && is_ring(c.options.context_style))
      saved.add("attention.ring.keys_values", d.rows * (d.kv_width + d.v_width) * d.bytes);
    // In 16 bit the flash kernel's output is the projection's input: one tensor.
    if (d.gemm_bytes != d.bytes)
      saved.add("attention.out.input", d.rows * d.out_width * d.gemm_bytes);
  } else {
    if (with_scores) saved.add("attention.scores", score_bytes(c));
    saved.add("attention.out.input", d.rows * d.out_width * d.gemm_bytes);
  }
}

void save_mlp(const LayerContext& c, Saved& saved) {
  const LocalDims& d = c.d;
  saved.add("mlp.activation.input", d.rows * d.up_width * d.bytes);
  if (!c.options.fused_kernels && c.shape.gated_mlp)
    saved.add("mlp.gate", d.rows * d.ffn * d.bytes);
  saved.add("mlp.down.input", d.rows * d.ffn * d.gemm_bytes);
}

// The router reads the norm's output, which is kept as mlp.up.input. Of the choice: scores in fp32, and for
// each chosen expert a probability and a place.
void save_experts(const LayerContext& c, Saved& saved) {
  const ExpertDims& e = *c.experts;
  const LocalDims& d = c.d;
  const ExpertShape& shape = *c.shape.experts;
  const std::int64_t rows = e.all_rows();
  if (d.gemm_bytes != d.bytes) saved.add("router.input", e.tokens * d.hidden * d.bytes);
  saved.add("router.scores", e.tokens * shape.count * kFp32Bytes);
  saved.add("router.choice", e.tokens * shape.top_k * 2 * kFp32Bytes);
  saved.add("experts.up.input", rows * d.hidden * d.gemm_bytes);
  saved.add("experts.probabilities", rows * kFp32Bytes);
  saved.add("experts.activation.input", rows * e.up_width * d.bytes);
  saved.add("experts.down.input", rows * e.ffn * d.gemm_bytes);
  saved.add("shared.activation.input", d.rows * e.shared_up_width * d.bytes);
  saved.add("shared.down.input", d.rows * e.shared_ffn * d.gemm_bytes);
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
  if (c.experts)
    save_experts(c, saved);
  else
    save_mlp(c, saved);
  if (c.post_norms()) saved.add("norm2.post.input", norm_input);
  if (!parallel) saved.add("residual2.mask", mask);
  return kept_for_adapters(c, saved.take());
}

Bytes total(const std::vector<SavedTensor>& tensors) {
  Bytes sum{0};
  for (const SavedTensor& tensor : tensors) sum += tensor.size;
  return sum;
}

// Peaks of tensors that live only within the pass; each line is one moment of it.
std::int64_t expert_forward_workspace(const LayerContext& c) {
  const ExpertDims& e = *c.experts;
  const std::int64_t row = c.d.hidden * c.d.bytes;
  return std::max((e.tokens + e.sent) * row + e.arrived * c.d.hidden * e.dispatch_bytes,  // before the experts
                  (e.all_rows() + e.sent + e.tokens) * row);                              // behind them
}

std::int64_t expert_backward_workspace(const LayerContext& c) {
  const ExpertDims& e = *c.experts;
  const std::int64_t row = c.d.hidden * c.d.bytes;
  const std::int64_t ffn = e.all_rows() * e.ffn * c.d.bytes;
  const std::int64_t up = e.all_rows() * e.up_width * c.d.bytes;
  return std::max({(e.sent + e.all_rows()) * row,  // the gradient on its way in
                   e.all_rows() * row + ffn,       // dX of experts.down
                   ffn + up,                       // through the activation
                   up + e.all_rows() * row,        // dX of experts.up
                   (e.all_rows() + e.sent) * row + e.tokens * row});  // on its way out
}

std::int64_t forward_workspace(const LayerContext& c) {
  const LocalDims& d = c.d;
  const std::int64_t e = d.bytes;
  const std::int64_t full = d.rows * d.hidden * e;  // a gathered input, or a row-parallel output
  const std::int64_t gathered = d.sequence_parallel ? full : 0;
  const std::int64_t shard = d.norm_rows * d.hidden * e;
  const std::int64_t scores = c.flash() ? 0 : d.scores * e;  // before the softmax
  const std::int64_t experts = c.experts ? expert_forward_workspace(c) : 0;
  const std::int64_t kept_through = std::max({gathered, full + shard, scores, experts});
  const bool drops_mlp = c.options.recompute == Recompute::kOperators ||
                         (c.options.recompute == Recompute::kSelective && (c.experts ? c.options.recompute_parts.experts : c.options.recompute_parts.mlp));
  if (c.options.recompute != Recompute::kFull && !drops_mlp) return kept_through;
  // Nothing is kept, so a pass holds its half's tensors until the half is through.
  const std::int64_t attention = d.rows * (d.qkv_width + d.out_width) * e;
  const std::int64_t mlp = c.experts ? experts + c.experts->all_rows() * (c.experts->up_width + c.experts->ffn) * e
                                     : d.rows * (d.up_width + d.ffn) * e;
  if (drops_mlp) return std::max(kept_through, 2 * shard + std::max(gathered + mlp, mlp + full));
  return 2 * shard + std::max({gathered + attention + scores + score_bytes(c), attention + full,
                               gathered + mlp, mlp + full});
}

std::int64_t backward_workspace(const LayerContext& c, std::int64_t weight_gradient) {
  const LocalDims& d = c.d;
  const std::int64_t e = d.bytes;
  const std::int64_t full = d.rows * d.hidden * e;
  const std::int64_t gathered = d.sequence_parallel ? full : 0;
  const std::int64_t residual = d.norm_rows * d.hidden * e;  // the incoming gradient, until joined
  const std::int64_t ffn = c.experts ? 0 : d.rows * d.ffn * e;
  const std::int64_t up = c.experts ? 0 : d.rows * d.up_width * e;
  const std::int64_t q = d.rows * d.out_width * e;
  const std::int64_t qkv = d.rows * d.qkv_width * e;
  const std::int64_t scores = c.flash() ? 0 : 2 * d.scores * e;  // gradient into and out of softmax
  return residual + std::max({gathered + ffn,                    // dX of mlp.down
                              ffn + up,                          // through the activation
                              up + gathered + full + weight_gradient,  // dX of mlp.up, input gathered again
                              gathered + q,           // dX of attention.out
                              q + qkv + scores,       // through the attention core
                              qkv + gathered + full,  // dX of attention.qkv
                              c.experts ? expert_backward_workspace(c) : 0,
                              residual + full});      // through the norm
}

// Inputs and output gradients of the linear layers, as their weight-gradient products read them.
void fill_weight_operands(const LayerContext& c, Block& block) {
  const LocalDims& d = c.d;
  const std::int64_t n = d.norm_rows * d.hidden;
  std::int64_t inputs = (c.shared_norm() ? n : 2 * n) + d.rows * d.out_width;
  std::int64_t outputs = d.rows * (d.qkv_width + d.hidden);
  if (c.shape.latent) {
    const LatentAttention& l = *c.shape.latent;
    inputs += d.norm_rows * (l.q_rank + l.kv_rank);
    outputs += d.norm_rows * (l.q_rank + l.kv_rank + l.rope_dim);
  }
  if (c.experts) {
    const ExpertDims& e = *c.experts;
    inputs += e.all_rows() * (d.hidden + e.ffn) + d.rows * e.shared_ffn;
    outputs += e.tokens * c.shape.experts->count + e.all_rows() * (e.up_width + d.hidden);
    if (e.shared_ffn > 0) outputs += d.rows * (e.shared_up_width + d.hidden);
  } else {
    inputs += d.rows * d.ffn;
    outputs += d.rows * (d.up_width + d.hidden);
  }
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
  if (shape.latent) {
    const LatentAttention& l = *shape.latent;
    if (l.q_rank > 0) {
      add(d.hidden * l.q_rank);
      add_norm(l.q_rank);
    }
    add((l.q_rank > 0 ? l.q_rank : d.hidden) * d.q_width);
    add(d.hidden * (l.kv_rank + l.rope_dim));
    add_norm(l.kv_rank);
    add(l.kv_rank * d.q_heads * (l.nope_dim + l.value_dim));
    if (shape.attention_bias) add(l.q_rank + l.kv_rank + l.rope_dim);
  } else {
    add(d.hidden * d.qkv_width);
    if (has_qkv_bias(shape)) add(d.qkv_width);
  }
  if (shape.qk_norm && shape.qk_norm_gain) {
    add_norm(shape.qk_norm_whole ? d.q_width : d.head_dim);
    add_norm(shape.qk_norm_whole ? d.kv_width : d.head_dim);
  }
  if (shape.attention_sinks) add(d.q_heads);
  add(d.out_width * d.hidden);
  if (has_output_bias(shape)) add(d.hidden);
  if (c.experts) {
    const ExpertDims& e = *c.experts;
    add(shape.experts->count * d.hidden);
    if (shape.experts->router_bias) add(shape.experts->count);
    if (e.shared_ffn > 0) {
      add(d.hidden * e.shared_up_width);
      add(e.shared_ffn * d.hidden);
      if (shape.experts->shared_gate) add(d.hidden);
    }
    // One tensor an expert and projection.
    const std::int64_t bias = shape.experts->bias ? e.up_width + d.hidden : 0;
    block.routed_parameters = e.local * (d.hidden * (e.up_width + e.ffn) + bias);
    block.routed_count = e.local * (shape.experts->bias ? 4 : 2);
  } else {
    add(d.hidden * d.up_width);
    if (shape.mlp_bias) add(d.up_width);
    add(d.ffn * d.hidden);
    if (shape.mlp_bias) add(d.hidden);
  }
  block.parameters = parameters + block.routed_parameters;
  block.matrix_count = tensors + block.routed_count;
}

}  // namespace

namespace {

// What is taken out, in bytes.
Bytes drop_recomputed(const LayerContext& c, std::vector<SavedTensor>& saved) {
  Bytes dropped{0};
  std::erase_if(saved, [&](const SavedTensor& tensor) {
    if (!is_recomputed(c, tensor.name)) return false;
    dropped += tensor.size;
    return true;
  });
  return dropped;
}

}  // namespace

std::int64_t largest_weight_gradient(const std::vector<Step>& backward) {
  std::int64_t largest = 0;
  for (const Step& step : backward) {
    const auto* op = std::get_if<Operator>(&step);
    if (op == nullptr || op->kernel.pass != plan::Pass::kWeightGrad || !op->kernel.gemm) continue;
    largest = std::max(largest, op->kernel.gemm->batch * op->kernel.gemm->m * op->kernel.gemm->n);
  }
  return largest;
}

void fill_layer_memory(const LayerContext& c, Block& block) {
  switch (c.options.recompute) {
    case Recompute::kNone:
      block.saved = saved_tensors(c, true);
      break;
    case Recompute::kSelective:
      block.saved = saved_tensors(c, !c.options.recompute_parts.attention_core);
      block.recompute_peak = drop_recomputed(c, block.saved);
      if (c.options.recompute_parts.attention_core) block.recompute_peak += Bytes{score_bytes(c)};
      break;
    case Recompute::kOperators: {
      const std::vector<SavedTensor> all = saved_tensors(c, true);
      block.saved = operators_kept(c, all);
      // Values, and half of what enters a gated activation, are kept before they are joined.
      const std::int64_t joined = c.d.rows * (c.d.v_width + c.d.ffn) * c.d.bytes;
      for (const SavedTensor& tensor : all)
        if (tensor.name != "attention.output" && tensor.name != "attention.statistics") block.recompute_peak += tensor.size;
      block.recompute_peak -= Bytes{joined};
      if (c.options.fused_kernels) block.recompute_peak -= Bytes{c.d.norm_rows * c.d.hidden * c.d.bytes};
      break;
    }
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
  // Not added up in the GEMM, a weight gradient is a tensor of its own until it has been added.
  const std::int64_t weight_gradient = c.options.fused_accumulation ? 0 : largest_weight_gradient(block.backward) * c.d.bytes;
  block.backward_workspace = Bytes{backward_workspace(c, weight_gradient)};
  fill_weight_operands(c, block);
  fill_parameters(c, block);
  if (c.options.adapters) freeze_layer(c, block);
}

}  // namespace stepcast::workload
