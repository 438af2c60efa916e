#include "models/workload/steps.hpp"

#include <utility>

namespace stepcast::workload {

using plan::CollectiveKind;
using plan::Dtype;
using plan::OpClass;
using plan::Pass;

namespace {

constexpr std::int64_t kFp32Bytes = 4;

double product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

// Bytes per element and kernels of a norm; unfused ones work on fp32 copies.
struct NormTraffic {
  std::int64_t read = 0;
  std::int64_t written = 0;
  int launches = 1;
};

// `frozen`: backward passes without the gradients of gain and shift.
NormTraffic norm_traffic(NormKind kind, bool backward, bool fused, bool frozen, std::int64_t e) {
  if (fused) return backward ? NormTraffic{2 * e, e, frozen ? 1 : 2} : NormTraffic{e, e, 1};
  const int casts = e == kFp32Bytes ? 0 : 2;  // into fp32 and back
  const std::int64_t cast = casts == 0 ? 0 : e + kFp32Bytes;
  if (kind == NormKind::kLayerNorm) {
    // forward: cast, norm, cast; backward: cast, dx (x, dy), gain and shift (x, dy), cast.
    if (!backward) return {cast + 4, cast + 4, 1 + casts};
    return {cast + (frozen ? 8 : 16), cast + 4, (frozen ? 1 : 2) + casts};
  }
  // RMSNorm written out, forward: cast, square, mean, scale, cast, gain.
  if (!backward) return {cast + 12 + e, cast + 8 + e, 4 + casts};
  // backward: gain (dx; dgain), cast, scale (dx; row sum), square, sum of both, cast.
  return {cast + (frozen ? 1 : 3) * e + 8 + 8 + 4 + 8, cast + e + 4 + 4 + 4, (frozen ? 5 : 6) + casts};
}

int norm_tensors(NormKind kind) { return kind == NormKind::kLayerNorm ? 2 : 1; }

}  // namespace

void StepList::add(std::string name, const Work& work) {
  plan::Kernel kernel;
  kernel.op = work.op;
  kernel.pass = work.pass;
  kernel.dtype = d_.dtype;
  kernel.flops = Flops::from_si(work.flops);
  kernel.read = Bytes{work.read};
  kernel.written = Bytes{work.written};
  kernel.launches = work.launches;
  steps_.emplace_back(Operator{std::move(name), kernel});
}

void StepList::add_kernel(std::string name, const plan::Kernel& kernel) {
  steps_.emplace_back(Operator{std::move(name), kernel});
}

void StepList::gemm(std::string name, Pass pass, Dtype dtype, plan::GemmShape shape,
                    std::int64_t read, std::int64_t written) {
  plan::Kernel kernel;
  kernel.op = OpClass::kGemm;
  kernel.pass = pass;
  kernel.dtype = dtype;
  kernel.gemm = shape;
  kernel.flops = Flops::from_si(2 * product(shape.batch, shape.m) * product(shape.n, shape.k));
  kernel.read = Bytes{read};
  kernel.written = Bytes{written};
  steps_.emplace_back(Operator{std::move(name), kernel});
}

void StepList::collective(std::string name, CollectiveKind kind, std::int64_t bytes, Dtype dtype,
                          int overlap_steps, bool for_weights) {
  if (d_.t == 1) return;
  steps_.emplace_back(BlockCollective{std::move(name), kind, Bytes{bytes}, dtype,
                                      overlap_steps > 0, overlap_steps, for_weights});
}

void StepList::exchange(std::string name, Over over, CollectiveKind kind, std::int64_t bytes, Dtype dtype,
                        int overlap_steps, Parts parts) {
  steps_.emplace_back(
      BlockCollective{std::move(name), kind, Bytes{bytes}, dtype, overlap_steps > 0, overlap_steps, false, over, parts});
}

void StepList::norm(const std::string& name, NormKind kind, std::int64_t rows, std::int64_t width,
                    bool backward, int launches) {
  const NormTraffic traffic = norm_traffic(kind, backward, fused_, frozen(), d_.bytes);
  const std::int64_t elements = rows * width;
  const double per_element = (kind == NormKind::kLayerNorm ? 7 : 4) * (backward ? 2 : 1);
  add(name, {OpClass::kNorm, backward ? Pass::kBackward : Pass::kForward,
             per_element * static_cast<double>(elements), elements * traffic.read,
             elements * traffic.written, traffic.launches * launches +
                                  (backward ? accumulations(launches * norm_tensors(kind)) : 0)});
}

void StepList::cast_to_fp8(const std::string& name, Pass pass, std::int64_t elements, int launches) {
  if (d_.gemm_dtype != Dtype::kFp8) return;
  // Written twice: as it is, and transposed for the weight gradient, where there is one (FP8 tensor cores take
  // only K-major operands; Transformer Engine's cast_transpose).
  add(name, {OpClass::kElementwise, pass, static_cast<double>(elements), elements * d_.bytes,
             (frozen() ? 1 : 2) * elements, launches});
}

void StepList::gemm_of(const Linear& l, std::string name, Pass pass, plan::GemmShape shape, std::int64_t read,
                       std::int64_t written) {
  gemm(std::move(name), pass, l.dtype.value_or(d_.gemm_dtype), shape, read, written);
  std::get<Operator>(steps_.back()).kernel.launches = kernels_of(l);
  std::get<Operator>(steps_.back()).routed = l.routed;
  std::get<Operator>(steps_.back()).frozen = frozen();
}

void StepList::linear(const Linear& l) {
  const std::int64_t rows = l.rows > 0 ? l.rows : d_.rows;
  const std::int64_t m = l.groups * rows;
  const std::int64_t e = l.dtype ? plan::element_bytes(*l.dtype) : d_.gemm_bytes;
  if (!l.dtype) cast_to_fp8(l.name + ".cast", Pass::kForward, m * l.k, kernels_of(l));
  dequantise(l, Pass::kForward);
  gemm_of(l, l.name, Pass::kForward, {l.groups, rows, l.n, l.k},
          (m * l.k + l.groups * l.k * l.n) * e + (l.bias ? l.groups * l.n * d_.bytes : 0), m * l.n * d_.bytes);
  if (adapted(l)) adapter(l);
}

void StepList::linear_backward(const Linear& l, InputGradient input_gradient, bool sharded_input) {
  const std::int64_t rows = l.rows > 0 ? l.rows : d_.rows;
  const std::int64_t m = l.groups * rows;
  const std::int64_t weights = l.groups * l.n * l.k;
  const std::int64_t e = l.dtype ? plan::element_bytes(*l.dtype) : d_.gemm_bytes;
  const bool reduced = input_gradient == InputGradient::kReduced && d_.t > 1;
  if (!l.dtype) cast_to_fp8(l.name + ".grad.cast", Pass::kBackward, m * l.n, kernels_of(l));
  if (frozen()) return frozen_backward(l, input_gradient, sharded_input);

  // The gathered input is needed by dW only: beside dX, and beside the issue of dX's reduction.
  if (sharded_input)
    collective(l.name + ".regather", CollectiveKind::kAllGather, m * l.k * d_.bytes, d_.dtype,
               reduced ? 2 : 1, true);
  gemm_of(l, l.name + ".dgrad", Pass::kInputGrad, {l.groups, rows, l.k, l.n}, (m * l.n + weights) * e,
          m * l.k * d_.bytes);
  if (reduced) reduce(l.name + ".dgrad", l.k, 1 + accumulations(1) + (l.bias ? 1 : 0));

  const std::int64_t inputs = m * (l.n + l.k) * e;
  if (fused_accumulation_) {
    gemm_of(l, l.name + ".wgrad", Pass::kWeightGrad, {l.groups, l.n, l.k, rows},
            inputs + weights * d_.gradient_bytes, weights * d_.gradient_bytes);
  } else {
    gemm_of(l, l.name + ".wgrad", Pass::kWeightGrad, {l.groups, l.n, l.k, rows}, inputs, weights * d_.bytes);
    add(l.name + ".accumulate",
        {OpClass::kElementwise, Pass::kWeightGrad, static_cast<double>(weights),
         weights * (d_.bytes + d_.gradient_bytes), weights * d_.gradient_bytes, kernels_of(l)});
  }
  if (l.bias)
    add(l.name + ".bias_grad",
        {OpClass::kElementwise, Pass::kWeightGrad, product(m, l.n),
         m * l.n * d_.bytes + l.groups * l.n * d_.gradient_bytes, l.groups * l.n * d_.gradient_bytes,
         1 + accumulations(1)});
}

void StepList::sum(const std::string& name, std::int64_t elements, Pass pass) {
  add(name, {OpClass::kElementwise, pass, static_cast<double>(elements), 2 * elements * d_.bytes,
             elements * d_.bytes, 1});
}

void StepList::gather_of(const std::string& name, std::int64_t width, bool for_weights) {
  if (!d_.sequence_parallel) return;
  collective(name + ".gather", CollectiveKind::kAllGather, d_.rows * width * d_.bytes, d_.dtype, 0, for_weights);
}

void StepList::reduce(const std::string& name, std::int64_t width, int overlap_steps) {
  const std::int64_t bytes = d_.rows * width * d_.bytes;
  if (d_.sequence_parallel)
    collective(name + ".scatter", CollectiveKind::kReduceScatter, bytes, d_.dtype, overlap_steps);
  else
    collective(name + ".all_reduce", CollectiveKind::kAllReduce, bytes, d_.dtype, overlap_steps);
}

}  // namespace stepcast::workload
