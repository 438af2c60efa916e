#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

using plan::OpClass;
using plan::Pass;

namespace {

void attention_half(const LayerContext& c, StepList& steps) {
  if (c.shape.latent)
    latent_projections(c, steps);
  else
    steps.linear(c.qkv());
  prepare_heads(c, steps);
  attention_core(c, steps);
  steps.linear(c.out());
}

// x + dropout(y + bias).
void residual(const LayerContext& c, StepList& steps, const std::string& name, bool bias) {
  const LocalDims& d = c.d;
  const std::int64_t n = d.norm_rows * d.hidden;
  const double flops = static_cast<double>(n);
  const std::int64_t mask = c.dropout() ? n : 0;
  if (steps.fused()) {
    steps.add(name, {OpClass::kElementwise, Pass::kForward,
                     flops * (1 + (bias ? 1 : 0) + (c.dropout() ? 1 : 0)), 2 * n * d.bytes,
                     n * d.bytes + mask, 1});
    return;
  }
  if (bias)
    steps.add(name + ".bias",
              {OpClass::kElementwise, Pass::kForward, flops, n * d.bytes, n * d.bytes, 1});
  if (c.dropout())
    steps.add(name + ".dropout",
              {OpClass::kElementwise, Pass::kForward, flops, n * d.bytes, n * d.bytes + mask, 1});
  steps.sum(name, n, Pass::kForward);
}

void norm(const LayerContext& c, StepList& steps, const std::string& name) {
  steps.norm(name, c.shape.norm, c.d.norm_rows, c.d.hidden, false);
}

void sequential(const LayerContext& c, StepList& steps) {
  norm(c, steps, "norm1");
  if (!c.shape.latent) steps.gather("attention");
  attention_half(c, steps);
  steps.reduce("attention");
  if (c.post_norms()) norm(c, steps, "norm1.post");
  residual(c, steps, "residual1", has_output_bias(c.shape));

  norm(c, steps, "norm2");
  if (c.experts) {
    expert_half(c, steps);
  } else {
    steps.gather("mlp");
    mlp_half(c, steps);
    steps.reduce("mlp");
  }
  if (c.post_norms()) norm(c, steps, "norm2.post");
  residual(c, steps, "residual2", c.shape.mlp_bias && !c.experts);
}

void parallel(const LayerContext& c, StepList& steps) {
  norm(c, steps, "norm1");
  steps.gather("attention");
  attention_half(c, steps);
  if (!c.shared_norm()) {
    norm(c, steps, "norm2");
    steps.gather("mlp");
  }
  mlp_half(c, steps);
  steps.sum("block.sum", c.d.rows * c.d.hidden, Pass::kForward);
  steps.reduce("block");
  residual(c, steps, "residual1", has_output_bias(c.shape) || c.shape.mlp_bias);
}

}  // namespace

void mlp_half(const LayerContext& c, StepList& steps) {
  steps.linear(c.up());
  activation(c, steps, {"mlp", c.d.rows, c.d.up_width, c.d.ffn, c.shape.mlp_bias});
  steps.linear(c.down());
}

double activation_flops(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return 1;
    case Activation::kSilu:
      return 4;              // negate, exp, add, divide
    case Activation::kGelu:  // erf counted as a polynomial
    case Activation::kGeluTanh:
      return 10;  // cube, scale, add, scale, tanh, add, scale, product
  }
  return 0;
}

// The bias of `up` joins the activation in one kernel, or runs before it.
void activation(const LayerContext& c, StepList& steps, const ActivationSize& size) {
  const LocalDims& d = c.d;
  const std::int64_t out = size.rows * size.out;
  const std::int64_t in = size.rows * size.up;
  Work work{.op = OpClass::kElementwise, .pass = Pass::kForward};
  work.flops = activation_flops(c.shape.activation) * static_cast<double>(out) +
               (c.shape.gated_mlp ? static_cast<double>(out) : 0.0);
  work.read = in * d.bytes;
  work.written = out * d.bytes;
  if (!steps.fused()) {
    if (c.shape.gated_mlp) {  // f(gate), then the product with the other half
      work.read = 3 * out * d.bytes;
      work.written = 2 * out * d.bytes;
      work.launches = 2;
    }
    if (size.bias)
      steps.add(size.name + ".bias", {OpClass::kElementwise, Pass::kForward, static_cast<double>(in),
                             in * d.bytes, in * d.bytes, size.parts});
  }
  work.launches *= size.parts;
  steps.add(size.name + ".activation", work);
}

std::vector<Step> layer_forward(const LayerContext& c) {
  StepList steps{c.d, c.options};
  if (c.shape.parallel_block)
    parallel(c, steps);
  else
    sequential(c, steps);
  return steps.take();
}

}  // namespace stepcast::workload
