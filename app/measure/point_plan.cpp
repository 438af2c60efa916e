#include "app/measure/point_plan.hpp"

#include <fmt/format.h>

#include "sim/plan/names.hpp"

namespace stepcast::app {
namespace {

constexpr std::int64_t kFloat = 4;

}  // namespace

bool PointPlan::begin(const std::string& name) {
  name_ = name;
  if (known_.contains(name)) return false;
  builder_.layer(next_++);
  return true;
}

void PointPlan::copy(plan::CopyKind kind, Bytes bytes, plan::Memory host) {
  const bool outwards = kind == plan::CopyKind::kDeviceToHost || kind == plan::CopyKind::kHostToNvme;
  builder_.copy(kind == plan::CopyKind::kDeviceToDevice ? compute_ : outwards ? to_host_ : to_device_, name_, kind, bytes, host);
}

void PointPlan::host_adam(std::int64_t parameters) {
  const plan::Kernel adam = adam_kernel(parameters);
  builder_.host_compute(compute_, name_, adam.flops, adam.read + adam.written);
}

void PointPlan::collective(plan::CollectiveKind kind, Bytes bytes, plan::Dtype dtype, bool beside) {
  builder_.collective(beside ? beside_ : compute_, name_, {.kind = kind, .group = plan::GroupId{0U}, .bytes = bytes, .dtype = dtype, .purpose = plan::Purpose::kData});
}

std::string PointPlan::at_once() const { return workers_ > 1 ? fmt::format(" on {} at once", workers_) : ""; }

plan::Plan PointPlan::finish() && {
  plan::Plan plan;
  plan.name = fmt::format("points of {} worker{}", workers_, workers_ == 1 ? "" : "s");
  plan.degrees[plan::Axis::kData] = workers_;
  plan.groups = {{.name = "all", .axes = {plan::Axis::kData}, .stages = {}, .split = {}}};
  plan.programs.push_back(std::move(builder_).finish());
  plan.program_of_stage = {plan::ProgramId{0U}};
  return plan;
}

plan::Kernel gemm_kernel(const plan::GemmShape& s, plan::Pass pass, plan::Dtype dtype) {
  const std::int64_t element = plan::element_bytes(dtype);
  return {.op = plan::OpClass::kGemm, .pass = pass, .dtype = dtype, .gemm = s, .flops = Flops::from_si(2.0 * static_cast<double>(s.batch * s.m * s.n) * static_cast<double>(s.k)),
          .read = Bytes{element * s.batch * (s.m * s.k + s.k * s.n)}, .written = Bytes{(dtype == plan::Dtype::kFp8 ? 2 : element) * s.batch * s.m * s.n}};
}

plan::Kernel attention_kernel(const plan::AttentionShape& s, plan::Pass pass, plan::Dtype dtype) {
  const double pairs = static_cast<double>(s.batch * s.query_heads) * static_cast<double>(s.query_length * s.kv_length);
  const double flops = (pass == plan::Pass::kForward ? 2.0 : 5.0) * pairs * static_cast<double>(s.head_dim) * (s.causal ? 1.0 : 2.0);
  const std::int64_t row = plan::element_bytes(dtype) * s.batch * s.head_dim;
  const std::int64_t queries = row * s.query_heads * s.query_length;
  const std::int64_t keys = row * s.kv_heads * s.kv_length;
  return {.op = plan::OpClass::kAttention, .pass = pass, .dtype = dtype, .attention = s, .flops = Flops::from_si(flops), .read = Bytes{queries + 2 * keys}, .written = Bytes{queries}};
}

plan::Kernel stream_kernel(plan::OpClass op, std::int64_t read, std::int64_t written, double flops_per_element, plan::Dtype dtype) {
  return {.op = op, .dtype = dtype, .flops = Flops::from_si(flops_per_element * static_cast<double>(written / plan::element_bytes(dtype))), .read = Bytes{read}, .written = Bytes{written}};
}

plan::Kernel adam_kernel(std::int64_t parameters) {
  return {.op = plan::OpClass::kOptimizer, .dtype = plan::Dtype::kFp32, .flops = Flops::from_si(14.0 * static_cast<double>(parameters)),
          .read = Bytes{4 * kFloat * parameters}, .written = Bytes{3 * kFloat * parameters}};
}

std::string text_of(const plan::GemmShape& s) { return fmt::format("{}{}x{}x{}", s.batch > 1 ? fmt::format("{} x ", s.batch) : "", s.m, s.n, s.k); }

}  // namespace stepcast::app
