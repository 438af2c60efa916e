// Latent attention's projections (DeepSeek-V2, arXiv 2405.04434 section 2.1.2), as trained: nothing absorbed.
//
// Order    into the latents on this rank's own tokens, weights the same on all tensor-parallel ranks; norm;
//          the latents gathered over sequence shards (narrow); out of the latents by heads; the shared rotated
//          key part joined to each head's key
// Source   Megatron-Core MLASelfAttention
#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::OpClass;
using plan::Pass;

namespace {

Linear q_down(const LayerContext& c) {
  return adaptable({"attention.q_down", c.shape.latent->q_rank, c.d.hidden, false, c.d.norm_rows}, Projection::kQkv, Split::kWhole);
}
Linear kv_down(const LayerContext& c) {
  return adaptable({"attention.kv_down", c.shape.latent->kv_rank + c.shape.latent->rope_dim, c.d.hidden, false, c.d.norm_rows},
                   Projection::kQkv, Split::kWhole);
}
// Straight from the hidden state where there is no latent for queries.
Linear q_up(const LayerContext& c) {
  const std::int64_t from = c.shape.latent->q_rank > 0 ? c.shape.latent->q_rank : c.d.hidden;
  return adaptable({"attention.q_up", c.d.q_width, from}, Projection::kQkv, Split::kColumns);
}
Linear kv_up(const LayerContext& c) {
  const std::int64_t width = c.d.q_heads * (c.shape.latent->nope_dim + c.shape.latent->value_dim);
  return adaptable({"attention.kv_up", width, c.shape.latent->kv_rank}, Projection::kQkv, Split::kColumns);
}

// Keys of nope_dim and the shared part become keys of the whole width.
void join_keys(const LayerContext& c, StepList& steps, bool backward) {
  const LatentAttention& l = *c.shape.latent;
  const std::int64_t apart = c.d.rows * (c.d.q_heads * l.nope_dim + l.rope_dim) * c.d.bytes;
  const std::int64_t joined = c.d.rows * c.d.kv_width * c.d.bytes;
  steps.add(backward ? "attention.join_keys.grad" : "attention.join_keys",
            {OpClass::kElementwise, backward ? Pass::kBackward : Pass::kForward, 0, backward ? joined : apart,
             backward ? apart : joined, 1});
}

void latent_norm(const LayerContext& c, StepList& steps, const char* name, std::int64_t width, bool backward) {
  steps.norm(name, c.shape.norm, c.d.norm_rows, width, backward);
}

}  // namespace

std::vector<Linear> latent_linears(const LayerContext& c) {
  std::vector<Linear> linears{kv_down(c), q_up(c), kv_up(c)};
  if (c.shape.latent->q_rank > 0) linears.push_back(q_down(c));
  return linears;
}

void latent_projections(const LayerContext& c, StepList& steps) {
  const LatentAttention& l = *c.shape.latent;
  if (l.q_rank > 0) {
    steps.linear(q_down(c));
    latent_norm(c, steps, "attention.q_norm", l.q_rank, false);
  }
  steps.linear(kv_down(c));
  latent_norm(c, steps, "attention.kv_norm", l.kv_rank, false);
  steps.gather_of("attention.q", l.q_rank > 0 ? l.q_rank : c.d.hidden);
  steps.linear(q_up(c));
  steps.gather_of("attention.kv", l.kv_rank + l.rope_dim);
  steps.linear(kv_up(c));
  join_keys(c, steps, false);
}

void latents_again(const LayerContext& c, StepList& steps) {
  const LatentAttention& l = *c.shape.latent;
  if (l.q_rank > 0) latent_norm(c, steps, "attention.q_norm", l.q_rank, false);
  latent_norm(c, steps, "attention.kv_norm", l.kv_rank, false);
  steps.gather_of("attention.q", l.q_rank > 0 ? l.q_rank : c.d.hidden);
  steps.linear(q_up(c));
  steps.gather_of("attention.kv", l.kv_rank + l.rope_dim);
  steps.linear(kv_up(c));
  join_keys(c, steps, false);
}

void latent_projections_backward(const LayerContext& c, StepList& steps) {
  const LatentAttention& l = *c.shape.latent;
  const bool regather = c.d.sequence_parallel;
  join_keys(c, steps, true);
  if (c.d.t > 1) steps.reduce("attention.rope_key.grad", l.rope_dim, 0);
  steps.linear_backward(kv_up(c), InputGradient::kReduced, regather);
  steps.linear_backward(q_up(c), InputGradient::kReduced, regather);
  latent_norm(c, steps, "attention.kv_norm.grad", l.kv_rank, true);
  steps.linear_backward(kv_down(c), InputGradient::kLocal, false);
  if (l.q_rank > 0) {
    latent_norm(c, steps, "attention.q_norm.grad", l.q_rank, true);
    steps.linear_backward(q_down(c), InputGradient::kLocal, false);
  }
  steps.sum("attention.latents.grad", c.d.norm_rows * c.d.hidden, Pass::kBackward);
}

}  // namespace stepcast::workload
