#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/file.hpp"
#include "sim/plan/names.hpp"
#include "sim/plan/plan_file.hpp"

namespace stepcast::plan {
namespace {

class Writer {
 public:
  std::string write(const Plan& plan) {
    line("stepcast-plan {}", kPlanFileVersion);
    line("name {}", quoted(plan.name));
    line("# degrees and axis order (fastest first): tp cp ep dp pp");
    line("degrees {} {} {} {} {}", plan.degrees[Axis::kTensor], plan.degrees[Axis::kContext], plan.degrees[Axis::kExpert],
         plan.degrees[Axis::kData], plan.degrees[Axis::kPipeline]);
    line("order {} {} {} {} {}", name_of(plan.order[0]), name_of(plan.order[1]), name_of(plan.order[2]),
         name_of(plan.order[3]), name_of(plan.order[4]));
    line("# work: samples tokens model-flops convention");
    line("work {} {} {} {}", plan.work.samples, plan.work.tokens, number(plan.work.model_flops.si()),
         quoted(plan.work.flops_convention));
    if (!plan.groups.empty()) line("# group: name axes stages");
    for (const Group& group : plan.groups) write(group);
    if (!plan.volumes.empty()) line("# volumes: name form values, of all-to-all with unequal parts");
    for (const VolumeTable& table : plan.volumes) write(table);
    for (const Program& program : plan.programs) write(program);
    std::string stages;
    for (const ProgramId id : plan.program_of_stage) stages += fmt::format(" {}", id.value());
    line("# stages: the program of each pipeline stage");
    line("stages{}", stages);
    return fmt::to_string(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }
  template <class... Args>
  void text(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  static std::string quoted(const std::string& s) {
    std::string result = "\"";
    for (const char c : s) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        result += '\\';
        result += c;
      } else if (byte < 0x20 || byte == 0x7f) {
        result += fmt::format("\\x{:02x}", byte);
      } else {
        result += c;
      }
    }
    return result + "\"";
  }

  static std::string number(double value) {
    char buffer[40];
    const auto [end, error] = std::to_chars(std::begin(buffer), std::end(buffer), value);
    SIM_CHECK(error == std::errc{});
    return {buffer, end};
  }

  void write(const Group& group) {
    std::string axes;
    for (const Axis axis : group.axes) axes += (axes.empty() ? "" : ",") + std::string{name_of(axis)};
    std::string stages;
    for (const std::int32_t stage : group.stages) stages += (stages.empty() ? "" : ",") + fmt::format("{}", stage);
    std::string cuts;
    if (group.split) {
      const AxisSplit& split = *group.split;
      cuts += fmt::format(" {} {} {}", split.across ? "across" : "within", name_of(split.axis), split.block);
    }
    if (group.slice) cuts += fmt::format(" slice {} {}", group.slice->stride, group.slice->size);
    line("group {} {} {}{}", quoted(group.name), axes.empty() ? "-" : axes, stages.empty() ? "all" : stages, cuts);
  }

  void write(const VolumeTable& table) {
    text("volumes {} {}", quoted(table.name), name_of(table.form));
    for (const double value : table.values) text(" {}", number(value));
    out_.push_back('\n');
  }

  void write(const Kernel& k) {
    text("kernel {} {} {} {} {} {} {}", name_of(k.op), name_of(k.pass), name_of(k.dtype), number(k.flops.si()),
         k.read.count(), k.written.count(), k.launches);
    if (k.gemm) text(" gemm {} {} {} {}", k.gemm->batch, k.gemm->m, k.gemm->n, k.gemm->k);
    if (const auto& a = k.attention) {
      text(" attention {} {} {} {} {} {} {} {} {}", a->batch, a->query_heads, a->kv_heads, a->query_length, a->kv_length,
           a->head_dim, a->value_dim, a->causal ? "causal" : "full", a->window ? fmt::format("{}", *a->window) : "-");
    }
    out_.push_back('\n');
  }

  void write(const Program& program) {
    line("program {}", quoted(program.name));
    for (const Stream& stream : program.streams) line("stream {} {}", name_of(stream.kind), quoted(stream.name));
    for (const std::string& label : program.labels) line("label {}", quoted(label));
    if (!program.kernels.empty()) line("# kernel: op pass dtype flops read written launches [shape]");
    for (const Kernel& kernel : program.kernels) write(kernel);
    if (!program.buffers.empty()) line("# buffer: memory category bytes label");
    for (const Buffer& b : program.buffers) {
      line("buffer {} {} {} {}", name_of(b.memory), name_of(b.category), b.size.count(), b.label.value());
    }
    line("events {}", program.event_count);
    line("# stream stage label layer micro-batch opcode operands");
    for (const Instruction& instruction : program.instructions) write(instruction);
    line("end");
  }

  void optional_number(const std::optional<std::uint16_t>& value) {
    if (value) {
      text(" {}", *value);
    } else {
      text(" -");
    }
  }

  void write(const Instruction& i) {
    text("{} {} {}", i.stream.value(), name_of(i.stage), i.label.value());
    optional_number(i.layer);
    optional_number(i.micro_batch);
    text(" {}", opcode_of(i.body));
    std::visit([this](const auto& body) { operands(body); }, i.body);
    out_.push_back('\n');
  }

  void operands(const Compute& c) { text(" {}", c.kernel.value()); }
  void operands(const Collective& c) {
    text(" {} {} {} {} {}", name_of(c.kind), c.group.value(), c.bytes.count(), name_of(c.dtype), name_of(c.purpose));
    if (c.volumes) text(" volumes {}", c.volumes->value());
  }
  void operands(const Send& s) { text(" {} {}", s.peer_stage, s.bytes.count()); }
  void operands(const Recv& r) { text(" {} {}", r.peer_stage, r.bytes.count()); }
  void operands(const Copy& c) {
    text(" {} {}", name_of(c.kind), c.bytes.count());
    if (c.host != Memory::kPinnedHost) text(" {}", name_of(c.host));
  }
  void operands(const HostCompute& h) { text(" {} {}", number(h.flops.si()), h.bytes.count()); }
  void operands(const LoadBatch& l) { text(" {}", l.bytes.count()); }
  void operands(const Alloc& a) { text(" {}", a.buffer.value()); }
  void operands(const Free& f) { text(" {}", f.buffer.value()); }
  void operands(const Record& r) { text(" {}", r.event.value()); }
  void operands(const Wait& w) { text(" {}", w.event.value()); }

  fmt::memory_buffer out_;
};

}  // namespace

std::string to_file_text(const Plan& plan) { return Writer{}.write(plan); }

void save_plan(const Plan& plan, const std::string& path) { write_file(path, to_file_text(plan)); }

}  // namespace stepcast::plan
