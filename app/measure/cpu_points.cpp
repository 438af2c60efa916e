#include <fmt/format.h>

#include "app/measure/measure_points.hpp"
#include "app/measure/point_plan.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/names.hpp"

namespace stepcast::app {
namespace {

using plan::Dtype;
using plan::OpClass;
using plan::Pass;

constexpr std::int64_t kFloat = 4;

class CpuPoints {
 public:
  CpuPoints(std::int32_t workers, bool quick, const std::set<std::string>& known) : quick_{quick}, points_{workers, known} {}

  plan::Plan make() && {
    if (points_.workers() == 1) {
      alone();
    } else {
      together();
    }
    return std::move(points_).finish();
  }

 private:
  void alone() {
    for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{64, 256, 1024} : std::vector<std::int64_t>{32, 64, 128, 256, 384, 512, 768, 1024, 1536}) {
      for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad}) gemm({1, n, n, n}, pass);
    }
    if (!quick_) {
      for (const plan::GemmShape& shape : {plan::GemmShape{1, 128, 2048, 512}, {1, 2048, 128, 512}, {1, 512, 2048, 128}, {1, 512, 128, 2048}, {1, 16, 1024, 1024},
                                           {1, 1024, 16, 1024}, {1, 1024, 1024, 16}, {1, 2048, 512, 1024}, {1, 200, 300, 500}, {8, 128, 128, 128}}) {
        gemm(shape, Pass::kForward);
      }
    }
    for (const std::int64_t length : quick_ ? std::vector<std::int64_t>{256} : std::vector<std::int64_t>{64, 128, 256, 512, 1024}) {
      for (const Pass pass : {Pass::kForward, Pass::kBackward}) attention(length, pass);
    }
    streams();
    for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{1 << 20} : std::vector<std::int64_t>{1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22}) {
      points_.kernel(fmt::format("adam {}", n), adam_kernel(n));
      if (points_.begin(fmt::format("host adam {}", n))) points_.host_adam(n);
    }
    for (const std::int64_t bytes : sizes(1 << 12, 64 << 20)) {
      if (points_.begin(fmt::format("copy {}", bytes))) points_.copy(plan::CopyKind::kHostToDevice, Bytes{bytes});
      if (bytes >= 1 << 20 && points_.begin(fmt::format("nvme write {}", bytes))) points_.copy(plan::CopyKind::kHostToNvme, Bytes{bytes});
      if (bytes >= 1 << 20 && points_.begin(fmt::format("nvme read {}", bytes))) points_.copy(plan::CopyKind::kNvmeToHost, Bytes{bytes});
    }
  }

  void together() {
    for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{512} : std::vector<std::int64_t>{128, 256, 512, 1024}) gemm({1, n, n, n}, Pass::kForward);
    streams();
    for (const plan::CollectiveKind kind : {plan::CollectiveKind::kAllReduce, plan::CollectiveKind::kAllGather, plan::CollectiveKind::kReduceScatter,
                                            plan::CollectiveKind::kBroadcast, plan::CollectiveKind::kAllToAll, plan::CollectiveKind::kSendReceive}) {
      for (const std::int64_t bytes : sizes(kFloat * points_.workers(), 16 << 20)) {
        if (points_.begin(fmt::format("{} {} x{}", plan::name_of(kind), bytes, points_.workers()))) points_.collective(kind, Bytes{bytes}, Dtype::kFp32);
      }
    }
    const plan::GemmShape shape{1, 512, 512, 512};
    for (const std::int64_t bytes : sizes(1 << 20, 16 << 20)) {
      if (!points_.begin(fmt::format("gemm {} beside all_reduce {} x{}", text_of(shape), bytes, points_.workers()))) continue;
      points_.compute(gemm_kernel(shape, Pass::kForward, Dtype::kFp32));
      points_.collective(plan::CollectiveKind::kAllReduce, Bytes{bytes}, Dtype::kFp32, true);
    }
  }

  void streams() {
    for (const std::int64_t bytes : sizes(1 << 14, 64 << 20)) {
      stream("stream", OpClass::kElementwise, bytes, bytes, 0.0);
      if (bytes < 1 << 20 && quick_) continue;
      stream("activation", OpClass::kElementwise, bytes, bytes, 5.0);
      stream("norm", OpClass::kNorm, bytes, bytes, 4.0);
      stream("sum", OpClass::kElementwise, 2 * bytes, bytes, 1.0);
      if (points_.workers() > 1) continue;
      stream("loss", OpClass::kLoss, 2 * bytes, bytes, 5.0);
      stream("fill", OpClass::kElementwise, 0, bytes, 0.0);
    }
  }

  [[nodiscard]] std::vector<std::int64_t> sizes(std::int64_t least, std::int64_t most) const {
    std::vector<std::int64_t> list;
    for (std::int64_t bytes = least; bytes <= most; bytes *= quick_ ? 16 : 4) list.push_back(bytes);
    return list;
  }

  void gemm(const plan::GemmShape& s, Pass pass) {
    points_.kernel(fmt::format("gemm {} {}{}", text_of(s), plan::name_of(pass), points_.at_once()), gemm_kernel(s, pass, Dtype::kFp32));
  }

  void attention(std::int64_t length, Pass pass) {
    const plan::AttentionShape s{.batch = 1, .query_heads = 4, .kv_heads = 4, .query_length = length, .kv_length = length, .head_dim = 64, .value_dim = 64};
    points_.kernel(fmt::format("attention 4 heads of 64, {} tokens {}", length, plan::name_of(pass)), attention_kernel(s, pass, Dtype::kFp32));
  }

  void stream(const char* what, OpClass op, std::int64_t read, std::int64_t written, double flops_per_element) {
    points_.kernel(fmt::format("{} {} + {}{}", what, read, written, points_.at_once()), stream_kernel(op, read, written, flops_per_element, Dtype::kFp32));
  }

  bool quick_;
  PointPlan points_;
};

}  // namespace

plan::Plan cpu_points(std::int32_t workers, bool quick, const std::set<std::string>& known) { return CpuPoints{workers, quick, known}.make(); }

}  // namespace stepcast::app
