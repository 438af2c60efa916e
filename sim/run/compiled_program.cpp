#include "sim/run/compiled_program.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/run/host_work.hpp"
#include "sim/run/shard_lists.hpp"

namespace stepcast::run {
namespace {

class Compiler {
 public:
  Compiler(const plan::Plan& plan, const Machine& machine, std::vector<CollectiveSite>& sites)
      : plan_{plan}, machine_{machine}, sites_{sites} {}

  CompiledProgram run(const plan::Program& program, std::int32_t stage, const gpu::GpuModel& gpu) {
    CompiledProgram out;
    out.event_count = program.event_count;
    for (const plan::Stream& stream : program.streams) {
      out.streams.push_back({.steps = {}, .instructions = {}, .is_compute = stream.kind == plan::StreamKind::kCompute,
                             .is_issue = stream.kind == plan::StreamKind::kIssue});
    }
    kernel_times_.clear();
    for (const plan::Kernel& kernel : program.kernels) {
      kernel_times_.push_back({gpu.time(kernel) + gpu.kernel_gap() * kernel.launches, gpu.launch_cost(kernel)});
    }
    ordinal_.assign(plan_.groups.size(), 0);
    rank_ = first_rank(stage);
    host_ = machine_.host_step;
    before_ = {};
    epoch_ = 0;
    recomputed_ = {};
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
      const plan::Instruction& instruction = program.instructions[i];
      add(out.streams[instruction.stream.index()], instruction, i);
    }
    out.host_total = before_ + host_;
    return out;
  }

 private:
  struct KernelTime {
    Duration device;
    Duration host;
  };

  RankId first_rank(std::int32_t stage) const {
    plan::PerAxis coordinates{0};
    coordinates[plan::Axis::kPipeline] = stage;
    return plan_.rank(coordinates);
  }

  void add(CompiledStream& stream, const plan::Instruction& instruction, std::uint32_t index) {
    using namespace plan;
    begin_recompute(instruction);
    if (const auto* compute = std::get_if<Compute>(&instruction.body)) {
      add_kernel(stream, instruction.stage, kernel_times_[compute->kernel.index()], index);
    } else if (const auto* collective = std::get_if<Collective>(&instruction.body)) {
      add_collective(stream, *collective, index);
    } else if (std::holds_alternative<Send>(instruction.body)) {
      add_step(stream, StepKind::kSend, index, machine_.communication_launch, 0);
    } else if (std::holds_alternative<Recv>(instruction.body)) {
      add_step(stream, StepKind::kRecv, index, machine_.communication_launch, 0);
    } else if (const auto* record = std::get_if<Record>(&instruction.body)) {
      add_step(stream, StepKind::kRecord, index, {}, record->event.value());
    } else if (const auto* wait = std::get_if<Wait>(&instruction.body)) {
      add_step(stream, StepKind::kWait, index, {}, wait->event.value());
      if (stream.is_issue) begin_epoch();
    } else if (host_work(instruction.body)) {
      add_step(stream, StepKind::kHostWork, index, machine_.copy_launch, 0);
    } else {
      // Alloc and Free take no device time. Input, files and copies within the device are not in the plans of
      // this version; a plan that has them must not be timed as if they were free.
      SIM_CHECK(std::holds_alternative<Alloc>(instruction.body) || std::holds_alternative<Free>(instruction.body),
                opcode_of(instruction.body));
    }
  }

  // The host goes on from when the wait is over.
  void begin_epoch() {
    before_ += host_;
    host_ = {};
    ++epoch_;
  }

  // Random-number states are saved and set, a backward pass within the backward pass is started: once a block that is
  // computed again.
  void begin_recompute(const plan::Instruction& instruction) {
    if (instruction.stage != plan::Stage::kRecompute) return;
    const Again again{instruction.layer, instruction.micro_batch};
    if (again == recomputed_) return;
    recomputed_ = again;
    host_ += machine_.host_recompute;
  }

  void add_kernel(CompiledStream& stream, plan::Stage stage, KernelTime time, std::uint32_t index) {
    host_ += time.host;
    const KernelPart part = stage == plan::Stage::kOptimizer ? KernelPart::kOptimizer : KernelPart::kCompute;
    const auto position = static_cast<std::uint32_t>(stream.instructions.size());
    stream.instructions.push_back({index, host_, time.device});
    if (!stream.steps.empty() && stream.steps.back().kind == StepKind::kKernels && stream.steps.back().part == part &&
        stream.steps.back().epoch == epoch_) {
      CompiledStep& chain = stream.steps.back();
      chain.earliest = std::max(chain.earliest, host_) + time.device;
      chain.busy += time.device;
      ++chain.count;
      return;
    }
    stream.steps.push_back({.kind = StepKind::kKernels, .part = part, .first = position, .epoch = epoch_, .busy = time.device,
                            .earliest = host_ + time.device});
  }

  void add_collective(CompiledStream& stream, const plan::Collective& collective, std::uint32_t index) {
    const std::size_t ranks = plan_.members(collective.group, rank_).size();
    if (ranks < 2) return;
    const CollectiveSite site{collective.group, collective.kind, collective.bytes, collective.purpose, collective.volumes};
    const auto [it, is_new] = site_index_.try_emplace(site, static_cast<std::uint32_t>(sites_.size()));
    if (is_new) sites_.push_back(site);
    add_step(stream, StepKind::kCollective, index, machine_.communication_launch + list_shards(site, ranks, machine_).host,
             ordinal_[collective.group.index()]++);
    stream.steps.back().site = it->second;
  }

  void add_step(CompiledStream& stream, StepKind kind, std::uint32_t index, Duration host_cost, std::uint32_t operand) {
    host_ += host_cost;
    const auto position = static_cast<std::uint32_t>(stream.instructions.size());
    stream.instructions.push_back({index, host_, {}});
    stream.steps.push_back({.kind = kind, .first = position, .operand = operand, .epoch = epoch_, .earliest = host_});
  }

  const plan::Plan& plan_;
  const Machine& machine_;
  std::vector<CollectiveSite>& sites_;
  std::map<CollectiveSite, std::uint32_t> site_index_;
  std::vector<KernelTime> kernel_times_;    // of the current program
  std::vector<std::uint32_t> ordinal_;      // next collective of each group, current program
  RankId rank_;                             // a worker of the current program
  using Again = std::pair<std::optional<std::uint16_t>, std::optional<std::uint16_t>>;  // layer, micro-batch
  std::optional<Again> recomputed_;
  Duration host_;                           // since the epoch began
  Duration before_;                         // of earlier epochs, waits apart
  std::uint32_t epoch_ = 0;
};

}  // namespace

CompiledPlan compile(const plan::Plan& plan, const Machine& machine) {
  CompiledPlan out;
  out.per_kind = plan.programs.size();
  out.programs.resize(out.per_kind * machine.gpu_kinds());
  std::vector<bool> done(out.per_kind, false);
  Compiler compiler{plan, machine, out.sites};
  for (std::size_t stage = 0; stage < plan.program_of_stage.size(); ++stage) {
    const std::size_t id = plan.program_of_stage[stage].index();
    if (done[id]) continue;
    for (std::size_t kind = 0; kind < machine.gpu_kinds(); ++kind)
      out.programs[kind * out.per_kind + id] = compiler.run(plan.programs[id], static_cast<std::int32_t>(stage), machine.gpu_of_kind(kind));
    done[id] = true;
  }
  return out;
}

}  // namespace stepcast::run
