#include "app/measure_points.hpp"

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/plan/builder.hpp"

namespace stepcast::app {
namespace {

using plan::Kernel;
using plan::OpClass;
using plan::Pass;

constexpr std::int64_t kFloat = 4;

class Points {
 public:
  Points(std::int32_t workers, bool quick, const std::set<std::string>& known) : workers_{workers}, quick_{quick}, known_{known} {}

  plan::Plan make() && {
    if (workers_ == 1) {
      alone();
    } else {
      together();
    }
    plan::Plan plan;
    plan.name = fmt::format("points of {} worker{}", workers_, workers_ == 1 ? "" : "s");
    plan.degrees[plan::Axis::kData] = workers_;
    plan.groups = {{.name = "all", .axes = {plan::Axis::kData}, .stages = {}, .split = {}}};
    plan.programs.push_back(std::move(builder_).finish());
    plan.program_of_stage = {plan::ProgramId{0U}};
    return plan;
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
      kernel(fmt::format("adam {}", n), {.op = OpClass::kOptimizer, .dtype = plan::Dtype::kFp32, .flops = Flops::from_si(14.0 * static_cast<double>(n)),
                                         .read = Bytes{4 * kFloat * n}, .written = Bytes{3 * kFloat * n}});
      if (begin(fmt::format("host adam {}", n))) builder_.host_compute(compute_, name_, Flops::from_si(14.0 * static_cast<double>(n)), Bytes{7 * kFloat * n});
    }
    for (const std::int64_t bytes : sizes(1 << 12, 64 << 20)) {
      if (begin(fmt::format("copy {}", bytes))) builder_.copy(compute_, name_, plan::CopyKind::kHostToDevice, Bytes{bytes});
      if (bytes >= 1 << 20 && begin(fmt::format("nvme write {}", bytes))) builder_.copy(compute_, name_, plan::CopyKind::kHostToNvme, Bytes{bytes});
      if (bytes >= 1 << 20 && begin(fmt::format("nvme read {}", bytes))) builder_.copy(compute_, name_, plan::CopyKind::kNvmeToHost, Bytes{bytes});
    }
  }

  void together() {
    for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{512} : std::vector<std::int64_t>{128, 256, 512, 1024}) gemm({1, n, n, n}, Pass::kForward);
    streams();
    for (const plan::CollectiveKind kind : {plan::CollectiveKind::kAllReduce, plan::CollectiveKind::kAllGather, plan::CollectiveKind::kReduceScatter,
                                            plan::CollectiveKind::kBroadcast, plan::CollectiveKind::kAllToAll, plan::CollectiveKind::kSendReceive}) {
      for (const std::int64_t bytes : sizes(kFloat * workers_, 16 << 20)) {
        if (begin(fmt::format("{} {} x{}", plan::name_of(kind), bytes, workers_))) collective(compute_, kind, bytes);
      }
    }
    const std::int64_t n = 512;
    for (const std::int64_t bytes : sizes(1 << 20, 16 << 20)) {
      if (!begin(fmt::format("gemm {0}x{0}x{0} beside all_reduce {1} x{2}", n, bytes, workers_))) continue;
      builder_.compute(compute_, name_, gemm_kernel({1, n, n, n}, Pass::kForward));
      collective(beside_, plan::CollectiveKind::kAllReduce, bytes);
    }
  }

  void streams() {
    for (const std::int64_t bytes : sizes(1 << 14, 64 << 20)) {
      stream("stream", OpClass::kElementwise, bytes, bytes, 0.0);
      if (bytes < 1 << 20 && quick_) continue;
      stream("activation", OpClass::kElementwise, bytes, bytes, 5.0);
      stream("norm", OpClass::kNorm, bytes, bytes, 4.0);
      stream("sum", OpClass::kElementwise, 2 * bytes, bytes, 1.0);
      if (workers_ > 1) continue;
      stream("loss", OpClass::kLoss, 2 * bytes, bytes, 5.0);
      stream("fill", OpClass::kElementwise, 0, bytes, 0.0);
    }
  }

  [[nodiscard]] std::vector<std::int64_t> sizes(std::int64_t least, std::int64_t most) const {
    std::vector<std::int64_t> list;
    for (std::int64_t bytes = least; bytes <= most; bytes *= quick_ ? 16 : 4) list.push_back(bytes);
    return list;
  }

  // False: known already.
  bool begin(const std::string& name) {
    name_ = name;
    if (known_.contains(name)) return false;
    builder_.layer(next_++);
    return true;
  }

  void kernel(const std::string& name, const Kernel& kernel) {
    if (begin(name)) builder_.compute(compute_, name, kernel);
  }

  static Kernel gemm_kernel(const plan::GemmShape& s, Pass pass) {
    return {.op = OpClass::kGemm, .pass = pass, .dtype = plan::Dtype::kFp32, .gemm = s, .flops = Flops::from_si(2.0 * static_cast<double>(s.batch * s.m * s.n) * static_cast<double>(s.k)),
            .read = Bytes{kFloat * s.batch * (s.m * s.k + s.k * s.n)}, .written = Bytes{kFloat * s.batch * s.m * s.n}};
  }

  void gemm(const plan::GemmShape& s, Pass pass) {
    kernel(fmt::format("gemm {}{}x{}x{} {}{}", s.batch > 1 ? fmt::format("{} x ", s.batch) : "", s.m, s.n, s.k, plan::name_of(pass), at_once()), gemm_kernel(s, pass));
  }

  void attention(std::int64_t length, Pass pass) {
    const plan::AttentionShape s{.batch = 1, .query_heads = 4, .kv_heads = 4, .query_length = length, .kv_length = length, .head_dim = 64, .value_dim = 64};
    // Half of the square: two products forward, five backward.
    const double flops = (pass == Pass::kForward ? 2.0 : 5.0) * static_cast<double>(s.query_heads * length * length) * static_cast<double>(s.head_dim);
    const std::int64_t tensor = kFloat * s.query_heads * length * s.head_dim;
    kernel(fmt::format("attention 4 heads of 64, {} tokens {}", length, plan::name_of(pass)),
           {.op = OpClass::kAttention, .pass = pass, .dtype = plan::Dtype::kFp32, .attention = s, .flops = Flops::from_si(flops), .read = Bytes{3 * tensor}, .written = Bytes{tensor}});
  }

  void stream(const char* what, OpClass op, std::int64_t read, std::int64_t written, double flops_per_element) {
    kernel(fmt::format("{} {} + {}{}", what, read, written, at_once()),
           {.op = op, .dtype = plan::Dtype::kFp32, .flops = Flops::from_si(flops_per_element * static_cast<double>(written / kFloat)), .read = Bytes{read}, .written = Bytes{written}});
  }

  void collective(plan::StreamId stream, plan::CollectiveKind kind, std::int64_t bytes) {
    builder_.collective(stream, name_, {.kind = kind, .group = plan::GroupId{0U}, .bytes = Bytes{bytes}, .dtype = plan::Dtype::kFp32, .purpose = plan::Purpose::kData});
  }

  [[nodiscard]] std::string at_once() const { return workers_ > 1 ? fmt::format(" on {} at once", workers_) : ""; }

  std::int32_t workers_;
  bool quick_;
  const std::set<std::string>& known_;
  plan::ProgramBuilder builder_{"points"};
  plan::StreamId compute_ = builder_.stream(plan::StreamKind::kCompute, "compute");
  plan::StreamId beside_ = builder_.stream(plan::StreamKind::kCommunication, "beside");
  std::uint16_t next_ = 0;
  std::string name_;
};

}  // namespace

plan::Plan cpu_points(std::int32_t workers, bool quick, const std::set<std::string>& known) { return Points{workers, quick, known}.make(); }

}  // namespace stepcast::app
