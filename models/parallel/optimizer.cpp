#include "models/parallel/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace stepcast::parallel {
bool is_weight_product(const workload::Operator& op) {
  return op.kernel.op == plan::OpClass::kGemm && op.kernel.gemm && !op.frozen && op.name != "attention.scores" && op.name != "attention.context";
}

namespace {

constexpr std::int64_t kTensorsPerLaunch = 36;
constexpr std::int64_t kElementsPerLaunch = 320 * 65'536;
constexpr std::int64_t kFp32Bytes = plan::element_bytes(plan::Dtype::kFp32);
constexpr std::int64_t kBlockOf8Bit = 256;
constexpr int kNewtonSchulzSteps = 5;

// [bytes an element]; of Adafactor's sums see factored_bytes.
double state_bytes(Optimizer optimizer, const Strategy& strategy) {
  const auto moment = static_cast<double>(plan::element_bytes(strategy.state_dtype));
  switch (optimizer) {
    case Optimizer::kAdam:
    case Optimizer::kAdamW: return 2.0 * moment;
    case Optimizer::kAdam8bit: return 2.0 * (1.0 + static_cast<double>(kFp32Bytes) / kBlockOf8Bit);
    case Optimizer::kSgd:
    case Optimizer::kMuon: return moment;
    case Optimizer::kAdafactor: return 0.0;
  }
  return 0.0;
}

// 4 (r + c) for square matrices of the mean size.
double factored_bytes(std::int64_t elements, std::int64_t tensors) {
  if (tensors == 0) return 0.0;
  const double side = std::sqrt(static_cast<double>(elements) / static_cast<double>(tensors));
  return 2.0 * kFp32Bytes * side * static_cast<double>(tensors);
}

std::int64_t in_bytes(double bytes) { return static_cast<std::int64_t>(std::ceil(bytes)); }

std::int64_t muon_elements(const StageModel& model, Kind kind) {
  std::int64_t elements = 0;
  for (const StageBlock& block : model.blocks) {
    if (block.role != BlockRole::kLayer) continue;
    for (const workload::Step& step : block.block->forward) {
      const auto* op = std::get_if<workload::Operator>(&step);
      if (op == nullptr || !is_weight_product(*op) || op->routed != (kind == Kind::kExpert)) continue;
      const plan::GemmShape& gemm = *op->kernel.gemm;
      elements += (op->routed ? gemm.batch : 1) * gemm.n * gemm.k;
    }
  }
  return elements;
}

plan::Kernel adafactor_update(std::int64_t elements, std::int64_t tensors, const Strategy& strategy) {
  constexpr int kPasses = 9;  // foreach operations over all tensors
  const std::int64_t parameter = plan::element_bytes(strategy.dtype);
  const std::int64_t master = has_master(strategy) ? kFp32Bytes : 0;
  const std::int64_t read = 3 * plan::element_bytes(strategy.gradient_dtype) + 3 * kFp32Bytes + (master > 0 ? master : parameter);
  const std::int64_t written = 2 * kFp32Bytes + master + parameter;
  return streaming_kernel(update_flops(Optimizer::kAdafactor) * static_cast<double>(elements), elements * read, elements * written,
                          kPasses * fused_launches(elements, tensors));
}

plan::Kernel product(std::int64_t count, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kBytes = plan::element_bytes(plan::Dtype::kBf16);
  plan::Kernel kernel;
  kernel.op = plan::OpClass::kGemm;
  kernel.dtype = plan::Dtype::kBf16;
  kernel.gemm = plan::GemmShape{count, m, n, k};
  kernel.flops = Flops::from_si(2.0 * static_cast<double>(count) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  kernel.read = Bytes{count * (m * k + k * n) * kBytes};
  kernel.written = Bytes{count * m * n * kBytes};
  kernel.launches = static_cast<int>(count);
  return kernel;
}

}  // namespace

// Adam: moments 3 + 4, bias corrections 2, root, sum, quotient 3, step 2; AdamW decays the
// weight besides; 8-bit: scales of two moments, there and back, 8 more; SGD: momentum 2, step 2; Adafactor:
// square, two sums 3, variance 1, root and quotient 3, its mean square 2, step 3; Muon: momentum 2, blend 2, step 4.
double update_flops(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdam: return 14;
    case Optimizer::kAdamW: return 16;
    case Optimizer::kAdam8bit: return 24;
    case Optimizer::kSgd: return 4;
    case Optimizer::kAdafactor: return 12;
    case Optimizer::kMuon: return 8;
  }
  return 0;
}

int fused_launches(std::int64_t elements, std::int64_t tensors) {
  return static_cast<int>(std::max<std::int64_t>({1, ceil_div(tensors, kTensorsPerLaunch), ceil_div(elements, kElementsPerLaunch)}));
}

plan::Kernel streaming_kernel(double flops, std::int64_t read, std::int64_t written, int launches) {
  plan::Kernel kernel;
  kernel.op = plan::OpClass::kOptimizer;
  kernel.pass = plan::Pass::kForward;
  kernel.dtype = plan::Dtype::kFp32;
  kernel.flops = Flops::from_si(flops);
  kernel.read = Bytes{read};
  kernel.written = Bytes{written};
  kernel.launches = launches;
  return kernel;
}

plan::Kernel elementwise_update(Optimizer optimizer, std::int64_t elements, std::int64_t tensors, const Strategy& strategy) {
  const std::int64_t parameter = plan::element_bytes(strategy.dtype);
  const std::int64_t master = has_master(strategy) ? kFp32Bytes : 0;
  const double states = state_bytes(optimizer, strategy);
  const auto n = static_cast<double>(elements);
  const double read = static_cast<double>(plan::element_bytes(strategy.gradient_dtype) + (master > 0 ? master : parameter)) + states;
  const double written = static_cast<double>(master + parameter) + states;
  // bitsandbytes has no multi-tensor kernel.
  const int launches = optimizer == Optimizer::kAdam8bit ? static_cast<int>(std::max<std::int64_t>(1, tensors)) : fused_launches(elements, tensors);
  return streaming_kernel(update_flops(optimizer) * n, in_bytes(n * read), in_bytes(n * written), launches);
}

Updated updated_by_worker(const StageModel& model, const Strategy& strategy) {
  Updated updated;
  for (const Kind kind : {Kind::kDense, Kind::kExpert}) {
    const std::int64_t shards = shard_size(strategy, kind);
    updated.elements += ceil_div(model.parameters_of(kind), shards);
    updated.tensors += ceil_div(model.tensors_of(kind), shards);
    if (strategy.optimizer == Optimizer::kMuon) updated.by_muon += ceil_div(muon_elements(model, kind), shards);
  }
  updated.by_muon = std::min(updated.by_muon, updated.elements);
  return updated;
}

Bytes optimizer_states(const StageModel& model, const Strategy& strategy) {
  const Updated updated = updated_by_worker(model, strategy);
  const double own = state_bytes(strategy.optimizer, strategy);
  if (strategy.optimizer == Optimizer::kAdafactor) return Bytes{in_bytes(factored_bytes(updated.elements, updated.tensors))};
  if (strategy.optimizer != Optimizer::kMuon) return Bytes{in_bytes(own * static_cast<double>(updated.elements))};
  const auto others = static_cast<double>(updated.elements - updated.by_muon);
  return Bytes{in_bytes(own * static_cast<double>(updated.by_muon) + state_bytes(Optimizer::kAdamW, strategy) * others)};
}

std::vector<MuonMatrix> muon_matrices(const StageModel& model, const Strategy& strategy) {
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::int64_t> counts;
  for (const StageBlock& block : model.blocks) {
    if (block.role != BlockRole::kLayer) continue;
    for (const workload::Step& step : block.block->forward) {
      const auto* op = std::get_if<workload::Operator>(&step);
      if (op == nullptr || !is_weight_product(*op)) continue;
      const plan::GemmShape& gemm = *op->kernel.gemm;
      counts[{op->routed, std::min(gemm.n, gemm.k), std::max(gemm.n, gemm.k)}] += op->routed ? gemm.batch : 1;
    }
  }
  std::vector<MuonMatrix> matrices;
  for (const auto& [shape, count] : counts) {
    const auto& [routed, rows, columns] = shape;
    matrices.push_back({rows, columns, ceil_div(count, shard_size(strategy, routed ? Kind::kExpert : Kind::kDense))});
  }
  return matrices;
}

std::vector<UpdateKernel> update_kernels(const StageModel& model, const Strategy& strategy) {
  const Updated updated = updated_by_worker(model, strategy);
  if (strategy.optimizer == Optimizer::kAdafactor) return {{"optimizer.update", adafactor_update(updated.elements, updated.tensors, strategy)}};
  if (strategy.optimizer != Optimizer::kMuon)
    return {{"optimizer.update", elementwise_update(strategy.optimizer, updated.elements, updated.tensors, strategy)}};
  std::vector<UpdateKernel> kernels;
  for (const MuonMatrix& m : muon_matrices(model, strategy)) {
    for (int step = 0; step < kNewtonSchulzSteps; ++step) {
      kernels.push_back({"optimizer.square", product(m.count, m.rows, m.rows, m.columns)});
      kernels.push_back({"optimizer.polynomial", product(m.count, m.rows, m.rows, m.rows)});
      kernels.push_back({"optimizer.apply", product(m.count, m.rows, m.columns, m.rows)});
    }
  }
  kernels.push_back({"optimizer.update", elementwise_update(Optimizer::kMuon, updated.by_muon, updated.tensors, strategy)});
  if (updated.elements > updated.by_muon)
    kernels.push_back({"optimizer.update_others", elementwise_update(Optimizer::kAdamW, updated.elements - updated.by_muon, updated.tensors, strategy)});
  return kernels;
}

}  // namespace stepcast::parallel
