// What of a layer is computed again for its backward pass, where that is not all of it.
//
// Selective  the parts of RecomputeParts, each as Megatron-Core's recompute_modules checkpoints it: what a part
//            writes is dropped, what it reads is kept, its forward kernels and collectives run again
// Operators  torchtitan's selective recomputation by operator: outputs of every second matrix product, of
//            attention and of reduce-scatters are kept, all else runs again. In a Llama layer the products are q, k,
//            v, out, gate, up, down: k, out and up (of a gated MLP: the half that is not activated) are the second ones.
//            Products in fp8 count alike: torchtitan's list names aten.mm alone, but its published peaks are those of bf16
//            (Llama-3-8B, 8 and 128 GPUs: 77.0 and 76.8 GiB, 62.0 and 61.8; benchmarks/llama3_h100_202412_torchtitan.md)
// Source     Megatron-LM transformer_config.py (recompute_modules), mlp.py, moe_layer.py; torchtitan
//            activation_checkpoint.py (_get_save_ops and mm_count)
// Ignores    Operators: the output of the last product, which nothing in the backward pass reads (the compiler
//            drops it, eager mode keeps it)
#include <algorithm>

#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::Pass;

namespace {

bool again(const LayerContext& c, bool RecomputeParts::*part) { return c.options.recompute_parts.*part; }

// A part within one that is computed again as a whole.
bool second_half_again(const LayerContext& c) { return c.options.recompute_parts.*(c.experts ? &RecomputeParts::experts : &RecomputeParts::mlp); }
bool projections_again(const LayerContext& c) { return again(c, &RecomputeParts::qkv) || again(c, &RecomputeParts::attention); }
bool activations_too(const LayerContext& c) {
  return again(c, c.experts ? &RecomputeParts::expert_activations : &RecomputeParts::mlp_activations);
}

void norm(const LayerContext& c, StepList& steps, const char* name) {
  steps.norm(name, c.shape.norm, c.d.norm_rows, c.d.hidden, false);
}

// The halves of fused products that are the second ones.
Linear key_projection(const LayerContext& c) { return {"attention.key", c.d.kv_width, c.d.hidden, has_qkv_bias(c.shape)}; }
Linear other_half(const LayerContext& c) { return {"mlp.up.half", c.d.ffn, c.d.hidden}; }

}  // namespace

std::vector<Step> selective_recompute(const LayerContext& c) {
  StepList steps{c.d, c.options};
  if (again(c, &RecomputeParts::norms)) {
    norm(c, steps, "norm1");
    norm(c, steps, "norm2");
  }
  if (again(c, &RecomputeParts::latents) && c.shape.latent) {
    latents_again(c, steps);
    prepare_heads(c, steps);
  }
  if (projections_again(c)) {
    steps.gather("attention");
    steps.linear(c.qkv());
    prepare_heads(c, steps);
  }
  if (again(c, &RecomputeParts::attention) || (again(c, &RecomputeParts::attention_core) && !c.flash())) attention_core(c, steps);
  if (second_half_again(c)) {
    if (c.experts) {
      expert_half(c, steps);
    } else {
      steps.gather("mlp");
      mlp_half(c, steps);
      steps.reduce("mlp");
    }
    return steps.take();
  }
  if (c.experts && again(c, &RecomputeParts::shared)) shared_experts_again(c, steps);
  if (!c.experts && again(c, &RecomputeParts::up)) {
    steps.gather("mlp");
    steps.linear(c.up());
  }
  if (activations_too(c)) activations_again(c, steps);
  return steps.take();
}

bool is_recomputed(const LayerContext& c, const std::string& name) {
  if (again(c, &RecomputeParts::norms) && (name == "attention.qkv.input" || name == "mlp.up.input" || name == "router.input")) return true;
  if (again(c, &RecomputeParts::latents) && c.shape.latent &&
      (name == "attention.qkv" || name == "attention.q_up.input" || name == "attention.kv_up.input"))
    return true;
  if (projections_again(c) && (name == "attention.qkv" || name == "attention.qk_norm.input")) return true;
  if (again(c, &RecomputeParts::attention) &&
      (name == "attention.output" || name == "attention.statistics" || name == "attention.out.input" || name == "attention.scores"))
    return true;
  const bool of_second_half = name.starts_with("experts.") || name.starts_with("router.") || name.starts_with("shared.") ||
                              (name.starts_with("mlp.") && name != "mlp.up.input");
  if (second_half_again(c) && of_second_half) return true;
  if (again(c, &RecomputeParts::shared) && name.starts_with("shared.")) return true;
  if (again(c, &RecomputeParts::up) && name == "mlp.activation.input") return true;
  return activations_too(c) && (name.ends_with(".down.input") || (again(c, &RecomputeParts::up) && name == "mlp.gate"));
}

std::vector<Step> operators_again(const LayerContext& c) {
  StepList steps{c.d, c.options};
  const std::int64_t n = c.d.norm_rows * c.d.hidden;
  norm(c, steps, "norm1");
  steps.gather("attention");
  steps.linear(key_projection(c));
  prepare_heads(c, steps);
  // With sequence parallelism the scattered sum is kept.
  if (!c.d.sequence_parallel) {
    steps.linear(c.out());
    steps.reduce("attention");
  }
  steps.sum("residual1", n, Pass::kForward);
  norm(c, steps, "norm2");
  steps.gather("mlp");
  if (c.shape.gated_mlp) steps.linear(other_half(c));
  activations_again(c, steps);
  return steps.take();
}

std::vector<SavedTensor> operators_kept(const LayerContext& c, const std::vector<SavedTensor>& all) {
  const LocalDims& d = c.d;
  std::vector<SavedTensor> kept{{"layer.input", Bytes{d.norm_rows * d.hidden * d.bytes}}};
  kept.push_back({"attention.query_value", Bytes{d.rows * (d.q_width + d.v_width) * d.bytes}});
  kept.push_back({"mlp.gate", Bytes{d.rows * d.ffn * d.bytes}});
  if (d.sequence_parallel) kept.push_back({"attention.scattered", Bytes{d.norm_rows * d.hidden * d.bytes}});
  std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
               [](const SavedTensor& t) { return t.name == "attention.output" || t.name == "attention.statistics"; });
  return kept;
}

}  // namespace stepcast::workload
