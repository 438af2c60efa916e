// models/workload/steps.hpp — builds the step list of a block, kernel by kernel, for one
// tensor-parallel rank. Private to models/workload.
//
// Model    a linear layer Y[m,n] = X[m,k] W[k,n] runs three products: forward, input gradient
//          dX = dY W^T and weight gradient dW = X^T dY, 2 m n k FLOPs each                     (1)
// Bytes    each operand once; weight gradients are added into `gradient_dtype` (read and write),
//          in the GEMM's epilogue or, without fused accumulation, by a second kernel
// Source   (1) by definition; order of kernels and collectives: Megatron-LM column- and
//          row-parallel linear layers (arXiv 1909.08053 section 3, 2205.05198 section 4.2.2)
// Ignores  the FP8 copy of a weight (made once a step, kept for all micro-batches), amax updates
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/local_dims.hpp"

namespace stepcast::workload {

// One memory-bound kernel (or, unfused, `launches` of them), bytes in total.
struct Work {
  plan::OpClass op = plan::OpClass::kElementwise;
  plan::Pass pass = plan::Pass::kForward;
  double flops = 0;
  std::int64_t read = 0;
  std::int64_t written = 0;
  int launches = 1;
};

// How tensor-parallel ranks share a weight.
enum class Split : std::uint8_t { kWhole, kColumns, kRows };

struct Linear {
  std::string name;
  std::int64_t n = 0;  // output width
  std::int64_t k = 0;  // input width
  bool bias = false;   // inside the GEMM's epilogue
  std::int64_t rows = 0;    // 0: the tokens inside the column/row-parallel pair
  std::int64_t groups = 1;  // weights of their own, `rows` each: one grouped GEMM, or as many where experts run one after another
  bool routed = false;      // routed experts' weights
  std::optional<plan::Dtype> dtype = {};  // empty: that of linear layers
  Projection projection = Projection::kNone;  // what adapters know it as
  Split split = Split::kWhole;
};

inline Linear adaptable(Linear linear, Projection projection, Split split) {
  linear.projection = projection;
  linear.split = split;
  return linear;
}

// What happens to dX of a linear layer and to its saved input.
enum class InputGradient : std::uint8_t {
  kLocal,    // row-parallel, or summed with another before it is reduced
  kReduced,  // column-parallel: all-reduced (or reduce-scattered) beside the weight gradient
};

// All parameters of a block become frozen ones, stored as they are trained elsewhere.
void freeze(const LocalDims& dims, Block& block);

// Tensor-parallel gathers and scatters run inside the products beside them (product_overlap.cpp).
void hide_in_products(std::vector<Step>& steps);

class StepList {
 public:
  StepList(const LocalDims& dims, const BlockOptions& options)
      : d_{dims}, fused_{options.fused_kernels}, fused_accumulation_{options.fused_accumulation}, grouped_experts_{options.grouped_experts},
        hides_{options.overlap_tensor_parallel && dims.sequence_parallel}, adapters_{options.adapters} {}

  void add(std::string name, const Work& work);
  void add_kernel(std::string name, const plan::Kernel& kernel);
  void gemm(std::string name, plan::Pass pass, plan::Dtype dtype, plan::GemmShape shape,
            std::int64_t read, std::int64_t written);
  void collective(std::string name, plan::CollectiveKind kind, std::int64_t bytes,
                  plan::Dtype dtype, int overlap_steps = 0, bool for_weights = false);
  // Over other ranks than the tensor-parallel ones. Requires: there are others.
  void exchange(std::string name, Over over, plan::CollectiveKind kind, std::int64_t bytes, plan::Dtype dtype,
                int overlap_steps = 0, Parts parts = Parts::kEqual);

  void norm(const std::string& name, NormKind kind, std::int64_t rows, std::int64_t width,
            bool backward, int launches = 1);
  void linear(const Linear& linear);
  // `sharded_input`: X was saved as a sequence shard and must be gathered again for dW.
  void linear_backward(const Linear& linear, InputGradient input_gradient, bool sharded_input);
  // a + b -> out, over `elements` activations.
  void sum(const std::string& name, std::int64_t elements, plan::Pass pass);

  // Enter the column-parallel part: all-gather of the sequence shards, nothing without them.
  void gather(const std::string& name, bool for_weights = false) { gather_of(name, d_.hidden, for_weights); }
  void gather_of(const std::string& name, std::int64_t width, bool for_weights = false);
  // Leave the row-parallel part: all-reduce, or reduce-scatter into sequence shards.
  void reduce(const std::string& name, int overlap_steps = 0) { reduce(name, d_.hidden, overlap_steps); }
  void reduce(const std::string& name, std::int64_t width, int overlap_steps);

  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  [[nodiscard]] std::vector<Step> take() {
    if (hides_) hide_in_products(steps_);
    return std::move(steps_);
  }
  [[nodiscard]] const LocalDims& dims() const { return d_; }
  [[nodiscard]] bool fused() const { return fused_; }
  // Kernels that add the gradients of `tensors` small parameters (biases, gains) to their sums.
  [[nodiscard]] int accumulations(int tensors) const { return fused_accumulation_ || frozen() ? 0 : tensors; }
  // Only adapters are trained.
  [[nodiscard]] bool frozen() const { return adapters_.has_value(); }

 private:
  // adapter_steps.cpp
  void adapter(const Linear& linear);
  void frozen_backward(const Linear& linear, InputGradient input_gradient, bool sharded_input);
  void adapter_gradient(const Linear& linear);
  void adapter_gemm(const Linear& linear, const char* suffix, plan::Pass pass, plan::GemmShape shape);
  void adapter_weight_gradient(const Linear& linear, const char* suffix, std::int64_t n, std::int64_t k);
  void dequantise(const Linear& linear, plan::Pass pass);
  [[nodiscard]] bool adapted(const Linear& linear) const { return adapters_ && adapters_->on(linear.projection); }

  // Kernels of an operator over the experts' rows: one, or one for each of the rank's experts.
  [[nodiscard]] int kernels_of(const Linear& linear) const { return linear.routed && !grouped_experts_ ? static_cast<int>(linear.groups) : 1; }
  void cast_to_fp8(const std::string& name, plan::Pass pass, std::int64_t elements, int launches);
  void gemm_of(const Linear& linear, std::string name, plan::Pass pass, plan::GemmShape shape, std::int64_t read,
               std::int64_t written);

  LocalDims d_;
  bool fused_;
  bool fused_accumulation_;
  bool grouped_experts_;
  bool hides_;
  std::optional<Adapters> adapters_;
  std::vector<Step> steps_;
};

}  // namespace stepcast::workload
