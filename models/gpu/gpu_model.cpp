#include "models/gpu/gpu_model.hpp"

#include <algorithm>
#include <utility>

#include "models/gpu/attention.hpp"
#include "models/gpu/gemm.hpp"
#include "models/gpu/memory_bound.hpp"
#include "sim/base/check.hpp"

namespace stepcast::gpu {

namespace {

double operand_bytes(const plan::GemmShape& s, plan::Dtype dtype) {
  return static_cast<double>(s.batch) * static_cast<double>(s.m + s.n) * static_cast<double>(s.k) *
         static_cast<double>(plan::element_bytes(dtype));
}

}  // namespace

GpuParameters at_clock(GpuParameters gpu, double fraction) {
  for (FlopRate& rate : gpu.hardware.peak) rate = rate * fraction;
  gpu.hardware.vector_fp32 = gpu.hardware.vector_fp32 * fraction;
  gpu.hardware.clock = gpu.hardware.clock * fraction;
  gpu.memory.l2_bandwidth = gpu.memory.l2_bandwidth * fraction;
  gpu.gemm.operand_bandwidth = gpu.gemm.operand_bandwidth * fraction;
  gpu.gemm.sm_bandwidth = gpu.gemm.sm_bandwidth * fraction;
  return gpu;
}

GpuParameters beside(GpuParameters gpu, const Taken& taken) {
  constexpr double kLeastSms = 0.25;
  constexpr double kLeastBandwidth = 0.5;
  const auto most = static_cast<std::int64_t>((1.0 - kLeastSms) * static_cast<double>(gpu.hardware.sm_count));
  gpu.hardware.sms_taken = std::min(taken.sms, most);
  const double left = static_cast<double>(gpu.hardware.free_sms()) / static_cast<double>(gpu.hardware.sm_count);
  const double bandwidth = gpu.hardware.memory_bandwidth.si();
  gpu.hardware.memory_bandwidth = Bandwidth::from_si(std::max(bandwidth - taken.memory.si(), kLeastBandwidth * bandwidth));
  gpu.hardware.vector_fp32 = gpu.hardware.vector_fp32 * left;
  gpu.memory.l2_bandwidth = gpu.memory.l2_bandwidth * left;
  return gpu;
}

GpuModel::GpuModel(GpuParameters parameters) : parameters_{std::move(parameters)} {
  const GpuParameters& p = parameters_;
  SIM_CHECK(p.hardware.sm_count > 0, p.hardware.sm_count);
  SIM_CHECK(p.hardware.memory_bandwidth.si() > 0, p.hardware.memory_bandwidth.si());
  SIM_CHECK(p.hardware.vector_fp32.si() > 0 && p.hardware.clock.si() > 0 && p.hardware.l2.count() > 0);
  SIM_CHECK(p.memory.streaming_efficiency > 0 && p.memory.reduction_efficiency > 0);
  SIM_CHECK(p.memory.l2_bandwidth.si() > 0 && p.gemm.memory_efficiency > 0);
  SIM_CHECK(p.gemm.operand_bandwidth.si() > 0 && p.gemm.sm_bandwidth.si() > 0);
  for (const GemmLibrary* library : {&p.gemm.standard, &p.gemm.fp8})
    SIM_CHECK(!library->tiles.empty() && library->mma_efficiency > 0, library->mma_efficiency);
  SIM_CHECK(p.attention.mma_efficiency > 0 && p.attention.backward_mma_efficiency > 0);
  SIM_CHECK(p.attention.scores_per_clock > 0, p.attention.scores_per_clock);
}

Duration GpuModel::time(const plan::Kernel& kernel) const {
  const double floor_s = parameters_.kernel_latency.seconds();
  double seconds = floor_s * std::max(kernel.launches, 1);
  switch (kernel.op) {
    case plan::OpClass::kGemm: {
      SIM_CHECK(kernel.gemm.has_value() && supports(kernel.dtype), static_cast<int>(kernel.dtype));
      const plan::GemmShape& s = *kernel.gemm;
      if (s.batch == 0 || s.m == 0 || s.n == 0 || s.k == 0) break;
      const int runs = std::max(kernel.launches, 1);
      SIM_CHECK(s.batch % runs == 0, s.batch, runs);
      const plan::GemmShape run{s.batch / runs, s.m, s.n, s.k};
      const double c_bytes = std::max(
          kernel.written.si(), kernel.read.si() + kernel.written.si() - operand_bytes(s, kernel.dtype));
      seconds += parameters_.crowding.products * runs * plan_gemm(parameters_, run, kernel.dtype, c_bytes / runs, kernel.pass).seconds;
      break;
    }
    case plan::OpClass::kAttention:
      SIM_CHECK(kernel.attention.has_value() && supports(kernel.dtype), static_cast<int>(kernel.dtype));
      seconds += parameters_.crowding.attention * attention_seconds(parameters_, *kernel.attention, kernel.dtype, kernel.pass,
                                   kernel.read.si() + kernel.written.si());
      break;
    default: seconds += crowding_of(kernel.op) * memory_bound_seconds(parameters_, kernel);
  }
  return Duration::from_seconds(seconds);
}

Duration GpuModel::launch_cost(const plan::Kernel& kernel) const {
  return parameters_.host_launch * std::max(kernel.launches, 1);
}

double GpuModel::crowding_of(plan::OpClass op) const {
  return reduces_rows(op) ? parameters_.crowding.reductions : parameters_.crowding.streams;
}

bool GpuModel::supports(plan::Dtype dtype) const { return peak(dtype).si() > 0; }

FlopRate GpuModel::peak(plan::Dtype dtype) const {
  return parameters_.hardware.peak[static_cast<std::size_t>(dtype)];
}

}  // namespace stepcast::gpu
