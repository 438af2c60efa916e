// models/workload/layer_parts.hpp — the pieces make_layer() is put together from. Private to
// models/workload.
//
// Model    sequential block    x + drop(attn(norm(x))), then the same with the MLP
//          parallel block      x + drop(attn(norm1(x)) + mlp(norm2(x))), one reduction for both
//          Gemma 2/3           a further norm on each half's output before the residual sum
//          experts             layer_experts.cpp; latent attention: latent.cpp; context parallelism: flash.cpp
// Ignores  soft-capping of scores (Gemma 2), the work of attention sinks, partial rotary embeddings (all of
//          the head is counted as rotated), norm statistics (8 B a token) among saved tensors
#pragma once

#include "models/workload/local_dims.hpp"
#include "models/workload/steps.hpp"

namespace stepcast::workload {

struct LayerContext {
  const ModelShape& shape;
  const BlockOptions& options;
  LocalDims d;
  std::optional<std::int64_t> window;  // of this layer, shorter than the sequence
  std::optional<ExpertDims> experts;   // of a layer that has them

  [[nodiscard]] bool flash() const { return options.attention == AttentionKernel::kFlash; }
  [[nodiscard]] bool dropout() const { return options.dropout > 0; }
  [[nodiscard]] bool post_norms() const { return shape.norms_per_layer >= 4; }
  // One norm feeds both halves of a parallel block, so their input gradients are one tensor.
  [[nodiscard]] bool shared_norm() const {
    return shape.parallel_block && shape.norms_per_layer < 2;
  }
  // The unfused attention's GEMMs want one K and V per query head.
  [[nodiscard]] bool expands_kv() const { return !flash() && d.kv_heads < d.q_heads; }

  [[nodiscard]] Linear qkv() const {
    return adaptable({"attention.qkv", d.qkv_width, d.hidden, has_qkv_bias(shape)}, Projection::kQkv, Split::kColumns);
  }
  // Biases of row-parallel layers are added after the reduction, with the residual.
  [[nodiscard]] Linear out() const { return adaptable({"attention.out", d.hidden, d.out_width, false}, Projection::kOut, Split::kRows); }
  // The bias of `up` is added with the activation.
  [[nodiscard]] Linear up() const { return adaptable({"mlp.up", d.up_width, d.hidden, false}, Projection::kUp, Split::kColumns); }
  [[nodiscard]] Linear down() const { return adaptable({"mlp.down", d.hidden, d.ffn, false}, Projection::kDown, Split::kRows); }
};

// Rows and width that an activation function works on; `up` counts the gate.
struct ActivationSize {
  std::string name;  // "mlp"
  std::int64_t rows = 0;
  std::int64_t up = 0;
  std::int64_t out = 0;
  bool bias = false;
  int parts = 1;            // kernels that share the rows
};
void activation(const LayerContext& c, StepList& steps, const ActivationSize& size);
void activation_backward(const LayerContext& c, StepList& steps, const ActivationSize& size);
// Gradient of a bias over `rows` of `width`: a column sum, or one for each of `parts`.
void bias_gradient(const LayerContext& c, StepList& steps, const std::string& name, std::int64_t rows,
                   std::int64_t width, int parts = 1);

// From the norm's output to q, k and v through the latents, and back.
void latent_projections(const LayerContext& c, StepList& steps);
void latent_projections_backward(const LayerContext& c, StepList& steps);

// From what the norms read to q, k and v; the activation functions of the MLP or the experts: for the
// backward pass.
void latents_again(const LayerContext& c, StepList& steps);
void activations_again(const LayerContext& c, StepList& steps);

// From the norm's output to what the residual adds, and back. Requires: c.experts.
void expert_half(const LayerContext& c, StepList& steps);
void expert_half_backward(const LayerContext& c, StepList& steps);

// Scores to context: the part selective recomputation runs again.
void attention_core(const LayerContext& c, StepList& steps);
void attention_core_backward(const LayerContext& c, StepList& steps);

void flash_forward(const LayerContext& c, StepList& steps);
void flash_backward(const LayerContext& c, StepList& steps);

// Between the QKV projection and the scores: head norms, rotary embedding, K and V expansion.
void prepare_heads(const LayerContext& c, StepList& steps);
void prepare_heads_backward(const LayerContext& c, StepList& steps);

// FLOPs per element of an activation function.
double activation_flops(Activation activation);

// From the gathered input to what is reduced.
void mlp_half(const LayerContext& c, StepList& steps);
// Requires: c.experts.
void shared_experts_again(const LayerContext& c, StepList& steps);

// layer_recompute.cpp
std::vector<Step> selective_recompute(const LayerContext& c);
bool is_recomputed(const LayerContext& c, const std::string& saved);  // by it
// Requires: a dense layer with fused attention and no latents.
std::vector<Step> operators_again(const LayerContext& c);
std::vector<SavedTensor> operators_kept(const LayerContext& c, const std::vector<SavedTensor>& all);

std::vector<Step> layer_forward(const LayerContext& c);
std::vector<Step> layer_backward(const LayerContext& c);

// Matrices of the layer that adapters may go on, and that a 4-bit base packs.
std::vector<Linear> latent_linears(const LayerContext& c);  // Requires: latent attention
std::vector<Linear> expert_linears(const LayerContext& c);  // Requires: c.experts
std::vector<Linear> adaptable_linears(const LayerContext& c);

// Elements that this rank holds of the adapter on a linear layer; of all its groups.
std::int64_t adapter_elements(const Linear& linear, const LocalDims& dims, std::int64_t rank);

// Takes out what only gradients of frozen weights would read; adds what adapters keep.
std::vector<SavedTensor> kept_for_adapters(const LayerContext& c, std::vector<SavedTensor> saved);
// All parameters become frozen ones, adapters the trained ones; their operands and workspace.
void freeze_layer(const LayerContext& c, Block& block);

// Saved tensors, peaks, parameters: everything of the block that is not a step.
void fill_layer_memory(const LayerContext& c, Block& block);

}  // namespace stepcast::workload
