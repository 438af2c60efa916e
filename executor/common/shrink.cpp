#include "executor/common/shrink.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

struct Shrink {
  std::int64_t factor;

  void side(std::int64_t& length) const { length = std::max<std::int64_t>(1, length / factor); }
  // Whole elements of 4 bytes where there were some.
  void size(Bytes& bytes) const {
    const std::int64_t least = std::min<std::int64_t>(4, bytes.count());
    bytes = Bytes{std::max(least, bytes.count() / (factor * factor) / 4 * 4)};
  }
  void work(Flops& flops) const { flops = Flops::from_si(flops.si() / static_cast<double>(factor * factor * factor)); }

  void kernel(plan::Kernel& k) const {
    if (k.gemm) {
      side(k.gemm->m);
      side(k.gemm->n);
      side(k.gemm->k);
    }
    if (k.attention) {
      for (std::int64_t* length : {&k.attention->query_length, &k.attention->kv_length, &k.attention->head_dim, &k.attention->value_dim}) side(*length);
      if (k.attention->window) side(*k.attention->window);
    }
    work(k.flops);
    size(k.read);
    size(k.written);
  }

  void operator()(plan::Collective& c) const { size(c.bytes); }
  void operator()(plan::Send& s) const { size(s.bytes); }
  void operator()(plan::Recv& r) const { size(r.bytes); }
  void operator()(plan::Copy& c) const { size(c.bytes); }
  void operator()(plan::LoadBatch& b) const { size(b.bytes); }
  void operator()(plan::HostCompute& h) const {
    work(h.flops);
    size(h.bytes);
  }
  template <class Other>
  void operator()(Other&) const {}
};

}  // namespace

plan::Plan shrink(plan::Plan plan, std::int64_t factor) {
  SIM_CHECK(factor >= 1 && factor <= kMostShrink, factor);
  const Shrink by{factor};
  for (plan::Program& program : plan.programs) {
    for (plan::Kernel& kernel : program.kernels) by.kernel(kernel);
    for (plan::Buffer& buffer : program.buffers) by.size(buffer.size);
    for (plan::Instruction& instruction : program.instructions) std::visit(by, instruction.body);
  }
  return plan;
}

}  // namespace stepcast::executor
