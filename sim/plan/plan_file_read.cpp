#include <array>

#include "sim/base/file.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/plan/token_line.hpp"

namespace stepcast::plan {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kMost32 = std::numeric_limits<std::int32_t>::max();

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : rest_{text}, file_{file} {}

  Plan read() {
    read_version();
    while (next_line()) {
      if (line_.peek() == "program") {
        read_program();
      } else {
        read_plan_line();
      }
    }
    for (std::size_t i = 0; i < kOnce.size(); ++i) {
      if (!seen_[i]) refuse_whole(std::string{"the file has no '"} + kOnce[i] + "' line", "");
    }
    return std::move(plan_);
  }

 private:
  static constexpr std::array<const char*, 5> kOnce{"name", "degrees", "order", "work", "stages"};

  // The next line that is neither blank nor a comment.
  bool next_line() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      const std::string_view line = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
      line_.assign(line, file_, ++number_);
      if (!line_.empty()) return true;
    }
    return false;
  }

  [[noreturn]] void refuse_whole(const std::string& problem, const std::string& hint) const {
    throw UserError(Diagnostic{.where = {file_, number_ > 0 ? number_ : 1, 1}, .problem = problem, .hint = hint});
  }

  void read_version() {
    if (!next_line() || line_.word("a keyword") != "stepcast-plan") {
      refuse_whole("this is not a plan file", "a plan file starts with the line 'stepcast-plan " + std::to_string(kPlanFileVersion) + "'");
    }
    const int version = line_.integer<int>("version", 0, kMost32);
    if (version != kPlanFileVersion) {
      line_.refuse("version " + std::to_string(version) + " of the plan file form is not known here",
                   "version " + std::to_string(kPlanFileVersion),
                   version > kPlanFileVersion ? "a newer stepcast wrote this file; update this program" : "write the plan again");
    }
    line_.finish();
  }

  void read_plan_line() {
    const std::string_view keyword = line_.word("a keyword");
    for (std::size_t i = 0; i < kOnce.size(); ++i) {
      if (keyword != kOnce[i]) continue;
      if (seen_[i]) line_.refuse("a second '" + std::string{keyword} + "' line");
      seen_[i] = true;
    }
    if (keyword == "name") {
      plan_.name = line_.quoted("name");
    } else if (keyword == "degrees") {
      for (int axis = 0; axis < kAxisCount; ++axis) {
        plan_.degrees[static_cast<Axis>(axis)] = line_.integer<std::int32_t>("degree", 1, kMost32);
      }
    } else if (keyword == "order") {
      for (Axis& axis : plan_.order) axis = line_.name<Axis>("axis");
    } else if (keyword == "work") {
      plan_.work.samples = line_.integer<std::int64_t>("number of samples", 0, kMost);
      plan_.work.tokens = line_.integer<std::int64_t>("number of tokens", 0, kMost);
      plan_.work.model_flops = Flops::from_si(line_.number("number of operations"));
      plan_.work.flops_convention = line_.quoted("convention");
    } else if (keyword == "group") {
      read_group();
    } else if (keyword == "volumes") {
      VolumeTable& table = plan_.volumes.emplace_back();
      table.name = line_.quoted("name");
      table.form = line_.name<VolumeForm>("form");
      while (!line_.at_end()) table.values.push_back(line_.number("value"));
    } else if (keyword == "stages") {
      while (!line_.at_end()) plan_.program_of_stage.push_back(line_.id<ProgramId>("program", plan_.programs.size()));
    } else {
      line_.refuse_word("keyword", {"name", "degrees", "order", "work", "group", "volumes", "program", "stages"});
    }
    line_.finish();
  }

  void read_group() {
    Group group;
    group.name = line_.quoted("name");
    if (const std::string_view axes = line_.word("axes"); axes != "-") {
      for (const std::string& word : split(axes, ',')) {
        const auto axis = from_name<Axis>(word);
        if (!axis) line_.refuse_token("axes", "some of tp,cp,ep,dp,pp with commas between, or -");
        group.axes.push_back(*axis);
      }
    }
    if (const std::string_view stages = line_.word("stages"); stages != "all") {
      for (const std::string& word : split(stages, ',')) {
        std::int32_t stage = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), stage);
        if (error != std::errc{} || end != word.data() + word.size() || stage < 0) {
          line_.refuse_token("stages", "stage numbers with commas between, or all");
        }
        group.stages.push_back(stage);
      }
    }
    while (!line_.at_end()) read_cut(group);
    plan_.groups.push_back(std::move(group));
  }

  void read_cut(Group& group) {
    constexpr std::int32_t kMostRanks = std::numeric_limits<std::int32_t>::max();
    const std::string_view word = line_.word("cut");
    if (word == "within" || word == "across") {
      AxisSplit split{.across = word == "across"};
      split.axis = line_.name<Axis>("axis");
      split.block = line_.integer<std::int32_t>("block", 1, kMostRanks);
      group.split = split;
    } else if (word == "slice") {
      RankSlice slice;
      slice.stride = line_.integer<std::int32_t>("stride", 1, kMostRanks);
      slice.size = line_.integer<std::int32_t>("size", 1, kMostRanks);
      group.slice = slice;
    } else {
      line_.refuse_word("cut", {"within", "across", "slice"});
    }
  }

  void read_program() {
    const int begins = number_;
    line_.word("a keyword");
    Program p;
    p.name = line_.quoted("name");
    line_.finish();
    while (true) {
      if (!next_line()) refuse_whole("the program that begins on line " + std::to_string(begins) + " has no 'end'", "the file may be cut off");
      const char first = line_.peek().front();
      if (first >= '0' && first <= '9') {
        read_instruction(p);
      } else if (!read_table_line(p)) {
        break;
      }
      line_.finish();
    }
    // Each event is recorded by one instruction; a larger count is a slip (and would cost memory).
    if (p.event_count > p.instructions.size()) {
      line_.refuse("the program declares " + std::to_string(p.event_count) + " events but has " + std::to_string(p.instructions.size()) + " instructions");
    }
    plan_.programs.push_back(std::move(p));
  }

  // False at the end of the program.
  bool read_table_line(Program& p) {
    const std::string_view keyword = line_.word("a keyword");
    if (keyword == "stream") {
      if (p.streams.size() == 255) line_.refuse("more than 255 streams");
      const auto kind = line_.name<StreamKind>("kind of stream");
      p.streams.push_back({kind, line_.quoted("name")});
    } else if (keyword == "label") {
      p.labels.push_back(line_.quoted("label"));
    } else if (keyword == "kernel") {
      p.kernels.push_back(read_kernel());
    } else if (keyword == "buffer") {
      Buffer b;
      b.memory = line_.name<Memory>("memory");
      b.category = line_.name<Category>("category");
      b.size = line_.bytes("size");
      b.label = line_.id<LabelId>("label", p.labels.size());
      p.buffers.push_back(b);
    } else if (keyword == "events") {
      p.event_count = line_.integer<std::uint32_t>("number of events", 0, std::numeric_limits<std::uint32_t>::max());
    } else if (keyword == "end") {
      line_.finish();
      return false;
    } else {
      line_.refuse_word("keyword", {"stream", "label", "kernel", "buffer", "events", "end"});
    }
    return true;
  }

  Kernel read_kernel() {
    const auto dimension = [this] { return line_.integer<std::int64_t>("dimension", 1, kMost); };
    Kernel k;
    k.op = line_.name<OpClass>("class of operator");
    k.pass = line_.name<Pass>("pass");
    k.dtype = line_.name<Dtype>("number format");
    k.flops = Flops::from_si(line_.number("number of operations"));
    k.read = line_.bytes("number of bytes");
    k.written = line_.bytes("number of bytes");
    k.launches = line_.integer<int>("number of launches", 0, kMost32);
    if (line_.peek() == "gemm") {
      line_.word("gemm");
      const std::array<std::int64_t, 4> d{dimension(), dimension(), dimension(), dimension()};
      k.gemm = GemmShape{d[0], d[1], d[2], d[3]};
    }
    if (line_.peek() == "attention") {
      line_.word("attention");
      AttentionShape a;
      for (std::int64_t* value : {&a.batch, &a.query_heads, &a.kv_heads, &a.query_length, &a.kv_length, &a.head_dim, &a.value_dim}) {
        *value = dimension();
      }
      const std::string_view mask = line_.word("mask");
      if (mask != "causal" && mask != "full") line_.refuse_word("mask", {"causal", "full"});
      a.causal = mask == "causal";
      if (line_.peek() == "-") {
        line_.word("window");
      } else {
        a.window = dimension();
      }
      k.attention = a;
    }
    return k;
  }

  void read_instruction(Program& p) {
    Instruction i;
    i.stream = line_.id<StreamId>("stream", p.streams.size());
    i.stage = line_.name<Stage>("stage");
    i.label = line_.id<LabelId>("label", p.labels.size());
    i.layer = line_.optional_index("layer");
    i.micro_batch = line_.optional_index("micro-batch");
    i.body = read_body(p);
    p.instructions.push_back(i);
  }

  Body read_body(const Program& p) {
    const std::string_view opcode = line_.word("opcode");
    if (opcode == "compute") return Compute{line_.id<KernelId>("kernel", p.kernels.size())};
    if (opcode == "alloc") return Alloc{line_.id<BufferId>("buffer", p.buffers.size())};
    if (opcode == "free") return Free{line_.id<BufferId>("buffer", p.buffers.size())};
    if (opcode == "record") return Record{line_.id<EventId>("event", p.event_count)};
    if (opcode == "wait") return Wait{line_.id<EventId>("event", p.event_count)};
    if (opcode == "collective") {
      Collective c;
      c.kind = line_.name<CollectiveKind>("kind of collective");
      c.group = line_.id<GroupId>("group", plan_.groups.size());
      c.bytes = line_.bytes("size");
      c.dtype = line_.name<Dtype>("number format");
      c.purpose = line_.name<Purpose>("purpose");
      if (line_.peek() == "volumes") {
        line_.word("volumes");
        c.volumes = line_.id<VolumesId>("table of volumes", plan_.volumes.size());
      }
      return c;
    }
    if (opcode == "send" || opcode == "recv") {
      const auto stage = line_.integer<std::int32_t>("stage", 0, kMost32);
      const Bytes size = line_.bytes("size");
      if (opcode == "send") return Send{stage, size};
      return Recv{stage, size};
    }
    if (opcode == "copy") {
      Copy copy{line_.name<CopyKind>("kind of copy"), line_.bytes("size")};
      if (!line_.peek().empty()) copy.host = line_.name<Memory>("kind of host memory");
      return copy;
    }
    if (opcode == "host_compute") {
      const Flops flops = Flops::from_si(line_.number("number of operations"));
      return HostCompute{flops, line_.bytes("size")};
    }
    if (opcode == "load_batch") return LoadBatch{line_.bytes("size")};
    const auto words = opcodes();
    line_.refuse_word("opcode", {words.begin(), words.end()});
  }

  std::string_view rest_;
  const std::string& file_;
  int number_ = 0;
  TokenLine line_;
  Plan plan_;
  std::array<bool, kOnce.size()> seen_{};
};

}  // namespace

Plan from_file_text(std::string_view text, const std::string& file) { return Reader{text, file}.read(); }

Plan load_plan(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{4} << 30U;  // plans of deep models and many micro-batches are long
  return from_file_text(read_file(path, kMost), path);
}

}  // namespace stepcast::plan
