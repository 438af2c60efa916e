#include <algorithm>

#include "models/workload/steps.hpp"

namespace stepcast::workload {

using plan::Pass;

namespace {

void append(std::vector<Step>& to, const std::vector<Step>& from) { to.insert(to.end(), from.begin(), from.end()); }

Linear projection(const LocalDims& d) { return {"projection", d.hidden, 2 * d.hidden, false, d.norm_rows}; }

std::vector<Step> join_inputs(const ModelShape& shape, const BlockOptions& options, const LocalDims& d) {
  StepList steps{d, options};
  steps.norm("norm.hidden", shape.norm, d.norm_rows, d.hidden, false);
  steps.norm("norm.embedding", shape.norm, d.norm_rows, d.hidden, false);
  steps.linear(projection(d));
  return steps.take();
}

std::vector<Step> join_inputs_backward(const ModelShape& shape, const BlockOptions& options, const LocalDims& d) {
  StepList steps{d, options};
  steps.linear_backward(projection(d), InputGradient::kLocal, false);
  steps.norm("norm.embedding.grad", shape.norm, d.norm_rows, d.hidden, true);
  steps.norm("norm.hidden.grad", shape.norm, d.norm_rows, d.hidden, true);
  steps.sum("hidden.grad", d.norm_rows * d.hidden, Pass::kBackward);
  return steps.take();
}

}  // namespace

Block make_predictor(const ModelShape& shape, const BlockOptions& options) {
  const LocalDims d = local_dims(shape, options);
  ModelShape shared = shape;  // the head's table counts once
  shared.tied_embeddings = true;
  const Block embedding = make_embedding(shape, options);
  const Block layer = make_layer(shape, shape.layers - 1, options);
  const Block head = make_head(shared, options, true);

  Block block;
  block.name = "predictor";
  block.forward = embedding.forward;
  append(block.forward, join_inputs(shape, options, d));
  append(block.forward, layer.forward);
  append(block.forward, head.forward);
  block.recompute = layer.recompute;
  block.recompute_peak = layer.recompute_peak;
  block.backward = head.backward;
  append(block.backward, layer.backward);
  append(block.backward, join_inputs_backward(shape, options, d));
  append(block.backward, embedding.backward);

  const std::int64_t n = d.norm_rows * d.hidden;
  block.saved = embedding.saved;
  block.saved.push_back({"norm.inputs", Bytes{2 * n * d.bytes}});
  block.saved.push_back({"projection.input", Bytes{2 * n * d.gemm_bytes}});
  block.saved.insert(block.saved.end(), layer.saved.begin(), layer.saved.end());
  block.saved.insert(block.saved.end(), head.saved.begin(), head.saved.end());
  block.forward_workspace = std::max({embedding.forward_workspace, layer.forward_workspace, head.forward_workspace});
  block.backward_workspace = std::max({embedding.backward_workspace, layer.backward_workspace, head.backward_workspace});

  block.weight_inputs = embedding.weight_inputs + layer.weight_inputs + head.weight_inputs + Bytes{2 * n * d.gemm_bytes};
  block.weight_gradients = embedding.weight_gradients + layer.weight_gradients + head.weight_gradients + Bytes{n * d.gemm_bytes};

  const std::int64_t norm = norm_parameters(shape, d.hidden);
  block.parameters = layer.parameters + head.parameters + 2 * d.hidden * d.hidden + 2 * norm;
  block.matrix_count = layer.matrix_count + head.matrix_count + 1 + 2 * norm / d.hidden;
  block.routed_parameters = layer.routed_parameters;
  block.routed_count = layer.routed_count;
  return block;
}

}  // namespace stepcast::workload
