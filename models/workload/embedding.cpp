#include "models/workload/steps.hpp"

namespace stepcast::workload {

using plan::OpClass;
using plan::Pass;

namespace {

struct Context {
  const ModelShape& shape;
  const BlockOptions& options;
  LocalDims d;
};

// Each rank holds a band of the vocabulary, looks up what falls in it, zeros the rest, and the sum
// over the ranks is the embedding; with sequence parallelism each keeps its tokens of the sum.
std::vector<Step> forward(const Context& c) {
  const LocalDims& d = c.d;
  StepList steps{d, c.options};
  const std::int64_t n = d.rows * d.hidden * d.bytes;
  steps.add("embedding", {OpClass::kEmbedding, Pass::kForward, 0, n, n, d.t > 1 ? 3 : 1});
  steps.reduce("embedding");
  const std::int64_t m = d.norm_rows * d.hidden;
  if (c.shape.position == Position::kLearned) steps.sum("embedding.position", m, Pass::kForward);
  if (c.shape.embedding_norm)
    steps.norm("embedding.norm", c.shape.norm, d.norm_rows, d.hidden, false);
  if (c.options.dropout > 0)
    steps.add("embedding.dropout", {OpClass::kElementwise, Pass::kForward, static_cast<double>(m),
                                    m * d.bytes, m * d.bytes + m, 1});
  return steps.take();
}

// Nothing before it needs a gradient.
std::vector<Step> backward(const Context& c) {
  if (c.options.adapters) return {};
  const LocalDims& d = c.d;
  StepList steps{d, c.options};
  const std::int64_t m = d.norm_rows * d.hidden;
  if (c.options.dropout > 0)
    steps.add("embedding.dropout.grad",
              {OpClass::kElementwise, Pass::kBackward, static_cast<double>(m), m * (d.bytes + 1),
               m * d.bytes, 1});
  if (c.shape.embedding_norm)
    steps.norm("embedding.norm.grad", c.shape.norm, d.norm_rows, d.hidden, true);
  if (c.shape.position == Position::kLearned) {
    const std::int64_t table = d.sequence * d.hidden * d.gradient_bytes;
    steps.add("embedding.position.grad", {OpClass::kEmbedding, Pass::kWeightGrad,
                                          static_cast<double>(m), m * d.bytes + table, table, 1});
  }
  steps.gather("embedding.grad", true);
  // Scatter-add: every token's gradient is added to its row, read and written once.
  const std::int64_t n = d.rows * d.hidden;
  const std::int64_t owned = n / d.t;  // rows of this rank's band, on average
  steps.add("embedding.grad",
            {OpClass::kEmbedding, Pass::kWeightGrad, static_cast<double>(owned),
             n * d.bytes + owned * d.gradient_bytes, owned * d.gradient_bytes, 1});
  return steps.take();
}

}  // namespace

Block make_embedding(const ModelShape& shape, const BlockOptions& options) {
  const Context c{shape, options, local_dims(shape, options)};
  const LocalDims& d = c.d;
  const std::int64_t m = d.norm_rows * d.hidden;
  Block block;
  block.name = "embedding";
  block.forward = forward(c);
  block.backward = backward(c);
  if (shape.embedding_norm) block.saved.push_back({"embedding.norm.input", Bytes{m * d.bytes}});
  if (options.dropout > 0) block.saved.push_back({"embedding.mask", Bytes{m}});
  block.forward_workspace = Bytes{d.rows * d.hidden * d.bytes};
  block.backward_workspace = Bytes{d.rows * d.hidden * d.bytes};

  block.weight_gradients = Bytes{m * d.bytes};  // the table's rows are looked up again by token

  block.parameters = d.vocab * d.hidden;
  block.matrix_count = 1;
  if (shape.position == Position::kLearned) {
    block.parameters += shape.max_positions * d.hidden;
    ++block.matrix_count;
  }
  if (shape.embedding_norm) {
    block.parameters += norm_parameters(shape, d.hidden);
    block.matrix_count += norm_parameters(shape, d.hidden) / d.hidden;
  }
  if (options.adapters) freeze(d, block);
  return block;
}

}  // namespace stepcast::workload
