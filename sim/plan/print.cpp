#include "sim/plan/print.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "sim/plan/names.hpp"
#include "sim/plan/print_text.hpp"

namespace stepcast::plan {
namespace {

// 1234567 as "1,234,567".
std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3) {
    digits.insert(static_cast<std::size_t>(i), ",");
  }
  return digits;
}

std::string counted(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", grouped(static_cast<std::int64_t>(count)), noun, count == 1 ? "" : "s");
}

struct Total {
  std::size_t count = 0;
  double flops = 0.0;
  double bytes = 0.0;
};

// A row of the summary: the opcode and what tells its traffic apart.
std::string row_of(const Program& program, const Instruction& i) {
  const std::string opcode = opcode_of(i.body);
  if (const auto* compute = std::get_if<Compute>(&i.body)) {
    return fmt::format("{} {}", opcode, name_of(program.kernels[compute->kernel.index()].op));
  }
  if (const auto* c = std::get_if<Collective>(&i.body)) {
    return fmt::format("{} {} {}", opcode, name_of(c->purpose), name_of(c->kind));
  }
  if (const auto* copy = std::get_if<Copy>(&i.body)) return fmt::format("{} {}", opcode, name_of(copy->kind));
  return opcode;
}

struct AddTo {
  const Program& program;
  Total& total;
  void operator()(const Compute& c) const {
    const Kernel& k = program.kernels[c.kernel.index()];
    total.flops += k.flops.si();
    total.bytes += k.read.si() + k.written.si();
  }
  void operator()(const HostCompute& h) const {
    total.flops += h.flops.si();
    total.bytes += h.bytes.si();
  }
  void operator()(const Alloc& a) const { total.bytes += program.buffers[a.buffer.index()].size.si(); }
  void operator()(const Free& f) const { total.bytes += program.buffers[f.buffer.index()].size.si(); }
  void operator()(const Record&) const {}
  void operator()(const Wait&) const {}
  template <class Moves>
  void operator()(const Moves& moves) const { total.bytes += moves.bytes.si(); }
};

class Printer {
 public:
  Printer(const Plan& plan, const PrintOptions& options) : plan_{plan}, options_{options} {}

  std::string print() {
    header();
    for (std::size_t p = 0; p < plan_.programs.size(); ++p) {
      if (options_.program && options_.program->index() != p) continue;
      program(p);
    }
    return fmt::to_string(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    const std::size_t begin = out_.size();
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    while (out_.size() > begin && out_[out_.size() - 1] == ' ') out_.resize(out_.size() - 1);
    out_.push_back('\n');
  }

  std::string degrees_text() const {
    std::string text;
    for (const Axis axis : plan_.order) {
      if (plan_.degrees[axis] != 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name_of(axis), plan_.degrees[axis]);
    }
    return text.empty() ? "no parallelism" : text;
  }

  std::string group_text(const Group& group) const {
    std::int64_t size = 1;
    std::string axes;
    for (const Axis axis : group.axes) {
      axes += (axes.empty() ? "" : " x ") + std::string{name_of(axis)};
      size *= axis == Axis::kPipeline && !group.stages.empty() ? static_cast<std::int64_t>(group.stages.size())
                                                               : plan_.degrees[axis];
    }
    if (group.split) {
      const std::int64_t block = group.split->block;
      const std::int64_t degree = plan_.degrees[group.split->axis];
      size = size / degree * (group.split->across ? degree / block : block);
    }
    if (group.slice) size = group.slice->size;
    std::string text = fmt::format("group {}: {}, {}", group.name, axes.empty() ? "no axis" : axes,
                                   counted(static_cast<std::size_t>(size), "worker"));
    if (group.slice && group.slice->stride > 1) text += fmt::format(" {} apart", group.slice->stride);
    if (!group.stages.empty()) text += fmt::format(", stages {}", fmt::join(group.stages, " "));
    return text;
  }

  void header() {
    line("plan {}: {} = {}, {}", plan_.name.empty() ? "(no name)" : plan_.name,
         counted(static_cast<std::size_t>(workers()), "worker"), degrees_text(), counted(plan_.programs.size(), "program"));
    if (plan_.work.samples > 0) {
      line("work: {}, {}, {} of model ({})", counted(static_cast<std::size_t>(plan_.work.samples), "sequence"),
           counted(static_cast<std::size_t>(plan_.work.tokens), "token"), flops_text(plan_.work.model_flops.si()),
           plan_.work.flops_convention);
    }
    for (const Group& group : plan_.groups) line("{}", group_text(group));
  }

  // Of a file that check() has not seen, the product may leave 64 bits.
  double product() const {
    double size = 1;
    for (const Axis axis : plan_.order) size *= plan_.degrees[axis];
    return size;
  }
  std::int64_t workers() const { return product() < 9e18 ? static_cast<std::int64_t>(product()) : INT64_MAX; }

  void program(std::size_t index) {
    const Program& p = plan_.programs[index];
    std::vector<std::size_t> stages;
    for (std::size_t s = 0; s < plan_.program_of_stage.size(); ++s) {
      if (plan_.program_of_stage[s].index() == index) stages.push_back(s);
    }
    const double per_stage = product() / plan_.degrees[Axis::kPipeline];
    line("");
    line("program {} \"{}\": pipeline stage{} {}, {}", index, p.name, stages.size() == 1 ? "" : "s",
         stages.empty() ? "none" : fmt::format("{}", fmt::join(stages, " ")),
         counted(static_cast<std::size_t>(std::min(per_stage * static_cast<double>(stages.size()), 9e18)), "worker"));
    line("  {}, {}, {}, {}", counted(p.instructions.size(), "instruction"), counted(p.kernels.size(), "kernel"),
         counted(p.buffers.size(), "buffer"), counted(p.event_count, "event"));
    for (std::size_t s = 0; s < p.streams.size(); ++s) {
      line("  stream {} ({})", p.streams[s].name, name_of(p.streams[s].kind));
    }
    summary(p);
    if (options_.instructions) instructions(p);
  }

  void summary(const Program& p) {
    std::map<std::pair<std::size_t, std::string>, Total> rows;  // in order of opcodes
    for (const Instruction& i : p.instructions) {
      Total& total = rows[{i.body.index(), row_of(p, i)}];
      ++total.count;
      std::visit(AddTo{p, total}, i.body);
    }
    if (rows.empty()) return;
    line("");
    line("  {:>9}  {:<40}  {:>12}  {:>10}", "count", "what", "operations", "bytes");
    for (const auto& [key, total] : rows) {
      line("  {:>9}  {:<40}  {:>12}  {:>10}", grouped(static_cast<std::int64_t>(total.count)), key.second,
           total.flops > 0 ? flops_text(total.flops) : "", total.bytes > 0 ? bytes_text(total.bytes) : "");
    }
  }

  void instructions(const Program& p) {
    const std::size_t first = std::min(options_.first, p.instructions.size());
    const std::size_t last = first + std::min(options_.count, p.instructions.size() - first);
    if (first == last) return;
    std::size_t stream_width = 6;
    std::size_t label_width = 8;
    for (const Stream& s : p.streams) stream_width = std::max(stream_width, s.name.size());
    for (const std::string& l : p.labels) label_width = std::max(label_width, l.size());
    line("");
    line("  {:>7}  {:<{}}  {:<12}  {:<{}}  {:>5}  {}", "#", "stream", stream_width, "op", "operator", label_width, "layer", "what");
    const Instruction* previous = nullptr;
    for (std::size_t i = first; i < last; ++i) {
      const Instruction& now = p.instructions[i];
      if (previous == nullptr || previous->stage != now.stage || previous->micro_batch != now.micro_batch) {
        line("  {}{}", name_of(now.stage), now.micro_batch ? fmt::format(", micro-batch {}", *now.micro_batch) : "");
      }
      previous = &now;
      line("  {:>7}  {:<{}}  {:<12}  {:<{}}  {:>5}  {}", i, p.streams[now.stream.index()].name, stream_width,
           opcode_of(now.body), p.labels[now.label.index()], label_width, now.layer ? fmt::format("{}", *now.layer) : "-",
           describe_work(plan_, p, now));
    }
    if (last < p.instructions.size()) line("  ... {} more", grouped(static_cast<std::int64_t>(p.instructions.size() - last)));
  }

  const Plan& plan_;
  const PrintOptions& options_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string print_plan(const Plan& plan, const PrintOptions& options) { return Printer{plan, options}.print(); }

}  // namespace stepcast::plan
