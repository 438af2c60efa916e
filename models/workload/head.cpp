// Final norm, logits, vocabulary-parallel cross-entropy.
//
// Cost of one logit, per rank, with a 16-bit compute dtype (Megatron-LM VocabParallelCrossEntropy):
//   forward   2 B 16-bit logit + 4 B fp32 copy, which is turned into the softmax in place
//   kept      4 B, the softmax                       (Korthikanti et al. section 4.3: 4 s b v / t)
//   backward  4 B softmax, turned into the gradient in place, + 2 B gradient in 16 bit
// Each further fp32 copy (logit_copies): another 4 B in each pass, and 4 B of a gradient in fp32 before the 16-bit one. One: PyTorch's
// log-softmax (fp32 logits and their log-softmax forward; that, its gradient and the logits' gradient backward). Two: its
// tensor-parallel form (torch/distributed/tensor/parallel/loss.py: shifted logits and their exponentials besides).
// The weight's gradient is a tensor of the compute dtype until it is added to its sum; with fused accumulation one of
// that size stands for it (Megatron-LM layers.py LinearWithGradAccumulationAndAsyncCommunication).
#include <algorithm>

#include "models/workload/steps.hpp"

namespace stepcast::workload {

using plan::CollectiveKind;
using plan::Dtype;
using plan::OpClass;
using plan::Pass;

namespace {

constexpr std::int64_t kFp32Bytes = 4;

struct Context {
  const ModelShape& shape;
  const BlockOptions& options;
  LocalDims d;
  [[nodiscard]] std::int64_t logits() const { return d.rows * d.vocab; }
  // The logits projection stays in the compute dtype where other GEMMs run in FP8.
  [[nodiscard]] Linear projection() const {
    return {"head.logits", d.vocab, d.hidden, shape.head_bias};
  }
};

LocalDims head_dims(const ModelShape& shape, const BlockOptions& options) {
  LocalDims d = local_dims(shape, options);
  d.gemm_dtype = d.dtype;
  d.gemm_bytes = d.bytes;
  return d;
}

// Each row's maximum, its own label's logit and its sum of exponentials are reduced over the ranks.
void loss_reductions(const Context& c, StepList& steps) {
  const std::int64_t bytes = c.d.rows * kFp32Bytes;
  for (const char* name : {"head.loss.max", "head.loss.label", "head.loss.sum"})
    steps.collective(name, CollectiveKind::kAllReduce, bytes, Dtype::kFp32);
}

std::vector<Step> forward(const Context& c) {
  const LocalDims& d = c.d;
  StepList steps{d, c.options};
  steps.norm("final_norm", c.shape.norm, d.norm_rows, d.hidden, false);
  steps.gather("head");
  steps.linear(c.projection());

  Work loss{.op = OpClass::kLoss, .pass = Pass::kForward};
  loss.flops = 5 * static_cast<double>(c.logits());  // max, subtract, exp, sum, divide
  const std::int64_t e = d.bytes;
  if (c.options.fused_loss) {  // one pass for max and sum, one that writes the softmax
    loss.read = c.logits() * 2 * e;
    loss.written = c.logits() * kFp32Bytes;
    loss.launches = 2;
  } else {  // cast, max, subtract, exp, sum, divide, each through fp32
    loss.read = c.logits() * (e + 5 * kFp32Bytes);
    loss.written = c.logits() * 4 * kFp32Bytes;
    loss.launches = 6;
  }
  steps.add("head.loss", loss);
  loss_reductions(c, steps);
  return steps.take();
}

std::vector<Step> backward(const Context& c) {
  const LocalDims& d = c.d;
  StepList steps{d, c.options};
  Work loss{.op = OpClass::kLoss, .pass = Pass::kBackward};
  loss.flops = 2 * static_cast<double>(c.logits());
  loss.read = c.logits() * kFp32Bytes * (c.options.fused_loss ? 1 : 2);  // unfused: scale, then cast
  loss.written = c.logits() * (d.bytes + (c.options.fused_loss ? 0 : kFp32Bytes));
  loss.launches = c.options.fused_loss ? 1 : 2;
  steps.add("head.loss.grad", loss);
  steps.linear_backward(c.projection(), InputGradient::kReduced, d.sequence_parallel);
  steps.norm("final_norm.grad", c.shape.norm, d.norm_rows, d.hidden, true);
  return steps.take();
}

}  // namespace

Block make_head(const ModelShape& shape, const BlockOptions& options, bool shares_embedding) {
  const Context c{shape, options, head_dims(shape, options)};
  const LocalDims& d = c.d;
  const std::int64_t n = d.norm_rows * d.hidden * d.bytes;
  const std::int64_t full = d.rows * d.hidden * d.bytes;
  const std::int64_t gathered = d.sequence_parallel ? full : 0;
  const std::int64_t logits = c.logits() * d.bytes;
  const std::int64_t softmax = c.logits() * kFp32Bytes;
  const std::int64_t copies = options.logit_copies * softmax;
  const std::int64_t gradients = options.logit_copies > 0 ? copies + softmax : 0;
  const std::int64_t weight = d.vocab * d.hidden * d.bytes;  // its gradient, or what stands for it

  Block block;
  block.name = "head";
  block.forward = forward(c);
  block.backward = backward(c);
  block.saved = {{"final_norm.input", Bytes{n}},
                 {"head.logits.input", Bytes{n}},
                 {"head.softmax", Bytes{softmax}}};
  block.forward_workspace = Bytes{gathered + logits + copies};
  // The loss's gradient beside the softmax, or the gradients of copies; then, the softmax gone, the weight's gradient as well.
  block.backward_workspace = Bytes{gathered + full + std::max({logits + copies, gradients, logits + weight - softmax})};

  block.weight_inputs = Bytes{n};
  block.weight_gradients = Bytes{c.logits() * d.bytes};

  block.parameters = norm_parameters(shape, d.hidden);
  block.matrix_count = norm_parameters(shape, d.hidden) / d.hidden;
  if (!(shape.tied_embeddings && shares_embedding)) {
    block.parameters += d.vocab * d.hidden;
    ++block.matrix_count;
  }
  if (shape.head_bias) {
    block.parameters += d.vocab;
    ++block.matrix_count;
  }
  if (options.adapters) {
    std::erase_if(block.saved, [](const SavedTensor& tensor) { return tensor.name == "head.logits.input"; });
    freeze(d, block);
  }
  return block;
}

}  // namespace stepcast::workload
