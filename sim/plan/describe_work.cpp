#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "sim/plan/print.hpp"
#include "sim/plan/print_text.hpp"

namespace stepcast::plan {

std::string flops_text(double flops) {
  static constexpr std::array<std::pair<double, const char*>, 6> kScales{
      {{1e18, "EFLOP"}, {1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}}};
  for (const auto& [factor, unit] : kScales) {
    if (flops >= factor * 0.9995) {
      const double value = flops / factor;
      return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
    }
  }
  return fmt::format("{:.0f} FLOP", flops);
}

std::string bytes_text(double bytes) {
  return human_bytes(Bytes{bytes < 9.2e18 ? static_cast<std::int64_t>(bytes) : INT64_MAX});
}

namespace {

std::string shape_text(const Kernel& k) {
  std::string text;
  if (k.gemm) {
    text += fmt::format(" {}x{}x{}", k.gemm->m, k.gemm->n, k.gemm->k);
    if (k.gemm->batch != 1) text += fmt::format(" batch {}", k.gemm->batch);
  }
  if (const auto& a = k.attention) {
    text += fmt::format(" batch {} heads {}/{} length {}x{} dim {}", a->batch, a->query_heads, a->kv_heads, a->query_length,
                        a->kv_length, a->head_dim);
    if (a->value_dim != a->head_dim) text += fmt::format("/{}", a->value_dim);
    text += a->causal ? " causal" : " full";
    if (a->window) text += fmt::format(" window {}", *a->window);
  }
  return text;
}

std::string kernel_text(const Kernel& k) {
  std::string text = fmt::format("{}{} {} {}, {}, {} read, {} written", name_of(k.op), shape_text(k), name_of(k.dtype),
                                 name_of(k.pass), flops_text(k.flops.si()), human_bytes(k.read), human_bytes(k.written));
  if (k.launches != 1) text += fmt::format(", {} launches", k.launches);
  return text;
}

struct Describe {
  const Plan& plan;
  const Program& program;

  std::string operator()(const Compute& c) const { return kernel_text(program.kernels[c.kernel.index()]); }
  std::string operator()(const Collective& c) const {
    return fmt::format("{} of {} {} in group {} ({}){}", name_of(c.kind), human_bytes(c.bytes), name_of(c.dtype),
                       plan.groups[c.group.index()].name, name_of(c.purpose),
                       c.volumes ? ", volumes " + plan.volumes[c.volumes->index()].name : "");
  }
  std::string operator()(const Send& s) const { return fmt::format("{} to stage {}", human_bytes(s.bytes), s.peer_stage); }
  std::string operator()(const Recv& r) const { return fmt::format("{} from stage {}", human_bytes(r.bytes), r.peer_stage); }
  std::string operator()(const Copy& c) const { return fmt::format("{} {}{}", human_bytes(c.bytes), name_of(c.kind), c.host == Memory::kPinnedHost ? "" : std::string{", "} + name_of(c.host)); }
  std::string operator()(const HostCompute& h) const {
    return fmt::format("{}, {} of host memory", flops_text(h.flops.si()), human_bytes(h.bytes));
  }
  std::string operator()(const LoadBatch& l) const { return human_bytes(l.bytes); }
  std::string operator()(const Alloc& a) const { return buffer_text(a.buffer); }
  std::string operator()(const Free& f) const { return buffer_text(f.buffer); }
  std::string operator()(const Record& r) const { return fmt::format("event {}", r.event.value()); }
  std::string operator()(const Wait& w) const { return fmt::format("event {}", w.event.value()); }

  [[nodiscard]] std::string buffer_text(BufferId id) const {
    const Buffer& b = program.buffers[id.index()];
    return fmt::format("buffer {}: {} of {} in {} memory", id.value(), human_bytes(b.size), name_of(b.category), name_of(b.memory));
  }
};

}  // namespace

std::string describe_work(const Plan& plan, const Program& program, const Instruction& instruction) {
  return std::visit(Describe{plan, program}, instruction.body);
}

}  // namespace stepcast::plan
