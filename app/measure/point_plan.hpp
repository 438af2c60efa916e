// app/measure/point_plan.hpp — points to measure, gathered as a plan whose instructions are points (executor/common/measure.hpp): all instructions of a
// point share a `layer`, and a point's name is its label. Points whose name is known are left out.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sim/plan/builder.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::app {

class PointPlan {
 public:
  PointPlan(std::int32_t workers, const std::set<std::string>& known) : workers_{workers}, known_{known} {}

  // False: the point is known already. What is added until the next begin() runs at once, on its streams.
  bool begin(const std::string& name);
  void compute(const plan::Kernel& kernel) { builder_.compute(compute_, name_, kernel); }
  // On a stream of its own, beside kernels.
  void copy(plan::CopyKind kind, Bytes bytes, plan::Memory host = plan::Memory::kPinnedHost);
  void host_adam(std::int64_t parameters);
  // Of all workers; on the stream of kernels, or beside it.
  void collective(plan::CollectiveKind kind, Bytes bytes, plan::Dtype dtype, bool beside = false);

  // A point of one kernel.
  void kernel(const std::string& name, const plan::Kernel& kernel) {
    if (begin(name)) compute(kernel);
  }

  [[nodiscard]] std::int32_t workers() const { return workers_; }
  // " on 4 at once", or nothing for one worker.
  [[nodiscard]] std::string at_once() const;

  plan::Plan finish() &&;

 private:
  std::int32_t workers_;
  const std::set<std::string>& known_;
  plan::ProgramBuilder builder_{"points"};
  plan::StreamId compute_ = builder_.stream(plan::StreamKind::kCompute, "compute");
  plan::StreamId beside_ = builder_.stream(plan::StreamKind::kCommunication, "beside");
  plan::StreamId to_device_ = builder_.stream(plan::StreamKind::kHostToDevice, "to device");
  plan::StreamId to_host_ = builder_.stream(plan::StreamKind::kDeviceToHost, "to host");
  std::uint16_t next_ = 0;
  std::string name_;
};

// Kernels as points describe them. fp32 matrices hold 4 bytes an element, sums of narrower ones are written as they are read.
plan::Kernel gemm_kernel(const plan::GemmShape& shape, plan::Pass pass, plan::Dtype dtype);
// Causal flash attention: half of the square; two products forward, five backward.
plan::Kernel attention_kernel(const plan::AttentionShape& shape, plan::Pass pass, plan::Dtype dtype);
plan::Kernel stream_kernel(plan::OpClass op, std::int64_t read, std::int64_t written, double flops_per_element, plan::Dtype dtype);
plan::Kernel adam_kernel(std::int64_t parameters);

// "4096x1024x512", "8 x 128x128x128".
std::string text_of(const plan::GemmShape& shape);

}  // namespace stepcast::app
