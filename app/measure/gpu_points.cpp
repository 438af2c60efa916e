#include <array>
#include <string_view>

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

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct HostKind {
  plan::Memory memory;
  const char* name;
};
constexpr std::array kHostKinds{HostKind{plan::Memory::kPinnedHost, "pinned"}, HostKind{plan::Memory::kPageableHost, "pageable"}, HostKind{plan::Memory::kManaged, "managed"}};

class GpuPoints {
 public:
  GpuPoints(std::int32_t workers, bool quick, const std::string& suffix, const std::set<std::string>& known) : quick_{quick}, suffix_{suffix}, points_{workers, known} {}

  plan::Plan make() && {
    if (points_.workers() > 1) {
      together();
    } else {
      launches();
      products();
      attentions();
      streams();
      copies();
      side_by_side();
      sustained();
    }
    return std::move(points_).finish();
  }

  plan::Plan sustained_alone() && {
    sustained();
    return std::move(points_).finish();
  }

 private:
  // A kernel that does nothing; many, queued before they start, whose time each is the gap between kernels; and so many that the host that
  // issues them is what takes the time.
  void launches() {
    for (const int count : {1, 100, 5000}) {
      plan::Kernel nothing = stream_kernel(OpClass::kElementwise, 0, 0, 0.0, Dtype::kFp32);
      nothing.launches = count;
      points_.kernel(fmt::format("launch x{}", count), nothing);
    }
  }

  void products() {
    for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{1024, 4096} : std::vector<std::int64_t>{256, 512, 1024, 2048, 4096, 8192}) {
      for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad}) gemm({1, n, n, n}, pass, Dtype::kBf16);
    }
    // Layers of transformers, tokens by width by width; few rows and odd ones show how tiles are laid.
    for (const std::int64_t m : quick_ ? std::vector<std::int64_t>{2048} : std::vector<std::int64_t>{16, 128, 129, 512, 1000, 2048, 4096, 8192, 16384}) {
      for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{1024, 4096}, {4096, 4096}, {6144, 4096}, {14336, 4096}, {4096, 14336}, {8192, 1024}, {32000, 4096}}) {
        if (m != n || n != k) gemm({1, m, n, k}, Pass::kForward, Dtype::kBf16);
      }
    }
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kTf32, Dtype::kFp32, Dtype::kFp8}) {
      for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{4096} : std::vector<std::int64_t>{1024, 2048, 4096, 8192}) {
        if (dtype == Dtype::kFp32 && n > 4096) continue;
        gemm({1, n, n, n}, Pass::kForward, dtype);
      }
      if (!quick_) gemm({1, 4096, 14336, 4096}, Pass::kForward, dtype);
    }
    if (!quick_) {
      for (const plan::GemmShape& s : {plan::GemmShape{8, 512, 4096, 4096}, {64, 1024, 1024, 128}, {64, 1024, 128, 1024}}) gemm(s, Pass::kForward, Dtype::kBf16);
    }
  }

  void attentions() {
    for (const std::int64_t dim : {128, 64}) {
      for (const std::int64_t length : quick_ ? std::vector<std::int64_t>{2048} : std::vector<std::int64_t>{512, 1024, 2048, 4096, 8192, 16384}) {
        for (const std::int64_t batch : quick_ ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 4}) {
          if (batch * length > 16384) continue;
          for (const std::int64_t kv : {32, 8}) {
            if (kv != 32 && dim != 128) continue;
            const plan::AttentionShape s{.batch = batch, .query_heads = 32, .kv_heads = kv, .query_length = length, .kv_length = length, .head_dim = dim, .value_dim = dim};
            for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
              points_.kernel(fmt::format("attention {} x {} heads ({} kv) of {}, {} tokens bf16 {}", batch, s.query_heads, kv, dim, length, plan::name_of(pass)), attention_kernel(s, pass, Dtype::kBf16));
            }
          }
        }
      }
    }
  }

  void streams() {
    for (const std::int64_t bytes : sizes(64 << 10, 1024 * kMiB)) {
      stream("stream", OpClass::kElementwise, bytes, bytes, 0.0);
      stream("activation", OpClass::kElementwise, bytes, bytes, 5.0);
      stream("norm", OpClass::kNorm, bytes, bytes, 4.0);
      stream("softmax", OpClass::kSoftmax, bytes, bytes, 5.0);
      stream("sum", OpClass::kElementwise, 2 * bytes, bytes, 1.0);
      stream("loss", OpClass::kLoss, 2 * bytes, bytes, 5.0);
      stream("fill", OpClass::kElementwise, 0, bytes, 0.0);
    }
    for (const std::int64_t n : quick_ ? std::vector<std::int64_t>{16 << 20} : std::vector<std::int64_t>{1 << 16, 1 << 20, 16 << 20, 128 << 20}) {
      points_.kernel(fmt::format("adam {}", n), adam_kernel(n));
      if (n <= 16 << 20 && points_.begin(fmt::format("host adam {}", n))) points_.host_adam(n);
    }
  }

  void copies() {
    for (const std::int64_t bytes : sizes(4 << 10, 256 * kMiB)) {
      for (const HostKind& host : kHostKinds) {
        if (points_.begin(fmt::format("copy host_to_device {} {}", bytes, host.name))) points_.copy(plan::CopyKind::kHostToDevice, Bytes{bytes}, host.memory);
        if (points_.begin(fmt::format("copy device_to_host {} {}", bytes, host.name))) points_.copy(plan::CopyKind::kDeviceToHost, Bytes{bytes}, host.memory);
      }
      if (points_.begin(fmt::format("copy device_to_device {}", bytes))) points_.copy(plan::CopyKind::kDeviceToDevice, Bytes{bytes});
      if (points_.begin(fmt::format("copy both ways {} pinned", bytes))) {
        points_.copy(plan::CopyKind::kHostToDevice, Bytes{bytes});
        points_.copy(plan::CopyKind::kDeviceToHost, Bytes{bytes});
      }
      if (bytes < kMiB) continue;
      if (points_.begin(fmt::format("nvme write {}", bytes))) points_.copy(plan::CopyKind::kHostToNvme, Bytes{bytes});
      if (points_.begin(fmt::format("nvme read {}", bytes))) points_.copy(plan::CopyKind::kNvmeToHost, Bytes{bytes});
    }
  }

  // A product while copy engines move as much as fits beside it.
  void side_by_side() {
    const plan::GemmShape shape{1, 4096, 4096, 4096};
    for (const std::int64_t bytes : {16 * kMiB, 64 * kMiB}) {
      if (points_.begin(fmt::format("gemm {} bf16 beside copy host_to_device {}", text_of(shape), bytes))) {
        points_.compute(gemm_kernel(shape, Pass::kForward, Dtype::kBf16));
        points_.copy(plan::CopyKind::kHostToDevice, Bytes{bytes});
      }
      if (points_.begin(fmt::format("stream {0} + {0} beside copy both ways {1}", 256 * kMiB, bytes))) {
        points_.compute(stream_kernel(OpClass::kElementwise, 256 * kMiB, 256 * kMiB, 0.0, Dtype::kFp32));
        points_.copy(plan::CopyKind::kHostToDevice, Bytes{bytes});
        points_.copy(plan::CopyKind::kDeviceToHost, Bytes{bytes});
      }
    }
  }

  // The same kernel for a good part of a second: what clock, power and temperature do, as the card is found.
  void sustained() {
    const plan::GemmShape large{1, 8192, 8192, 8192};
    sustained("gemm " + text_of(large) + " bf16", gemm_kernel(large, Pass::kForward, Dtype::kBf16), 200);
    const plan::GemmShape small{1, 1024, 4096, 1024};
    sustained("gemm " + text_of(small) + " bf16", gemm_kernel(small, Pass::kForward, Dtype::kBf16), 5000);
    sustained(fmt::format("stream {0} + {0}", 512 * kMiB), stream_kernel(OpClass::kElementwise, 512 * kMiB, 512 * kMiB, 0.0, Dtype::kFp32), 500);
    const plan::AttentionShape s{.batch = 1, .query_heads = 32, .kv_heads = 32, .query_length = 4096, .kv_length = 4096, .head_dim = 128, .value_dim = 128};
    sustained("attention of 4096 tokens bf16", attention_kernel(s, Pass::kForward, Dtype::kBf16), 500);
  }

  void sustained(const std::string& what, const plan::Kernel& kernel, int times) {
    if (!points_.begin(fmt::format("sustained {} x{}{}", what, times, suffix_))) return;
    for (int i = 0; i < times; ++i) points_.compute(kernel);
  }

  void together() {
    for (const plan::CollectiveKind kind : {plan::CollectiveKind::kAllReduce, plan::CollectiveKind::kAllGather, plan::CollectiveKind::kReduceScatter,
                                            plan::CollectiveKind::kBroadcast, plan::CollectiveKind::kAllToAll, plan::CollectiveKind::kSendReceive}) {
      for (const std::int64_t bytes : sizes(std::int64_t{1024} * points_.workers(), 1024 * kMiB)) {
        if (points_.begin(fmt::format("{} {} x{}", plan::name_of(kind), bytes, points_.workers()))) points_.collective(kind, Bytes{bytes}, Dtype::kBf16);
      }
    }
    gemm({1, 4096, 4096, 4096}, Pass::kForward, Dtype::kBf16);
    for (const std::int64_t bytes : sizes(16 * kMiB, 256 * kMiB)) {
      for (const plan::CollectiveKind kind : {plan::CollectiveKind::kAllReduce, plan::CollectiveKind::kAllGather}) {
        const plan::GemmShape shape{1, 4096, 4096, 4096};
        if (!points_.begin(fmt::format("gemm {} bf16 beside {} {} x{}", text_of(shape), plan::name_of(kind), bytes, points_.workers()))) continue;
        for (int i = 0; i < 4; ++i) points_.compute(gemm_kernel(shape, Pass::kForward, Dtype::kBf16));
        points_.collective(kind, Bytes{bytes}, Dtype::kBf16, true);
      }
    }
  }

  [[nodiscard]] std::vector<std::int64_t> sizes(std::int64_t least, std::int64_t most) const {
    std::vector<std::int64_t> list;
    for (std::int64_t bytes = least; bytes <= most; bytes *= quick_ ? 64 : 4) list.push_back(bytes);
    return list;
  }

  void gemm(const plan::GemmShape& s, Pass pass, Dtype dtype) {
    points_.kernel(fmt::format("gemm {} {} {}{}", text_of(s), plan::name_of(dtype), plan::name_of(pass), points_.at_once()), gemm_kernel(s, pass, dtype));
  }

  void stream(const char* what, OpClass op, std::int64_t read, std::int64_t written, double flops_per_element) {
    points_.kernel(fmt::format("{} {} + {}", what, read, written), stream_kernel(op, read, written, flops_per_element, Dtype::kFp32));
  }

  bool quick_;
  std::string suffix_;
  PointPlan points_;
};

}  // namespace

plan::Plan gpu_points(std::int32_t workers, bool quick, const std::set<std::string>& known) { return GpuPoints{workers, quick, "", known}.make(); }

plan::Plan clock_points(std::int64_t clock_mhz, const std::set<std::string>& known) {
  return GpuPoints{1, false, fmt::format(" at {} MHz", clock_mhz), known}.sustained_alone();
}

}  // namespace stepcast::app
