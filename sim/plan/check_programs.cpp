// Part 1 of check(): what one program must satisfy on its own.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/plan/check_parts.hpp"

namespace stepcast::plan::check_parts {
namespace {

bool bad_size(Bytes bytes) { return bytes.count() < 0 || bytes > kLargestSize; }
bool bad_count(double value) { return !std::isfinite(value) || value < 0.0; }

const char* const kSizeHint = "sizes are 0 or more and at most 64 TiB, counts of operations finite";

std::string range_hint(const char* what, std::size_t count) {
  if (count == 0) return fmt::format("this program has no {}", what);
  return fmt::format("{} run from 0 to {}", what, count - 1);
}

// Empty: the kernel is sound.
std::string kernel_problem(const Kernel& k) {
  if (bad_count(k.flops.si())) return "has a negative or infinite number of operations";
  if (bad_size(k.read) || bad_size(k.written)) return "reads or writes an impossible number of bytes";
  if (k.gemm && (k.gemm->batch < 1 || k.gemm->m < 1 || k.gemm->n < 1 || k.gemm->k < 1)) return "has a matrix dimension below 1";
  if (const auto& a = k.attention;
      a && (a->batch < 1 || a->query_heads < 1 || a->kv_heads < 1 || a->query_length < 1 || a->kv_length < 1 ||
            a->head_dim < 1 || a->value_dim < 1 || (a->window && *a->window < 1))) {
    return "has an attention dimension below 1";
  }
  if (k.op == OpClass::kGemm && !k.gemm) return "is a matrix product without a shape";
  if (k.op == OpClass::kAttention && !k.attention) return "is an attention without a shape";
  if (k.launches < 1) return "launches nothing";
  if (k.gemm && k.gemm->batch % k.launches != 0) return "has launches that do not divide its batch";
  return {};
}

class ProgramCheck {
 public:
  ProgramCheck(Findings& findings, std::int32_t stage)
      : f_{findings},
        plan_{findings.plan()},
        stage_{stage},
        program_{program_of(plan_, stage)},
        buffers_(program_.buffers.size(), State::kNever),
        recorded_(program_.event_count, false) {}

  void run() {
    check_tables();
    for (index_ = 0; index_ < program_.instructions.size() && !f_.full(); ++index_) {
      const Instruction& instruction = program_.instructions[index_];
      if (instruction.stream.index() >= program_.streams.size()) {
        report(PlanFault::kStream, fmt::format("stream {} is not declared", instruction.stream.value()),
               range_hint("streams", program_.streams.size()));
      }
      in_range("label", instruction.label.index(), program_.labels.size());
      std::visit([this](const auto& body) { visit(body); }, instruction.body);
    }
  }

 private:
  enum class State : std::uint8_t { kNever, kLive, kFreed };

  void report(PlanFault fault, std::string problem, std::string hint) {
    f_.at(fault, stage_, index_, std::move(problem), std::move(hint));
  }

  bool in_range(const char* what, std::size_t id, std::size_t count) {
    if (id < count) return true;
    report(PlanFault::kIdOutOfRange, fmt::format("{} {} does not exist", what, id),
           range_hint(fmt::format("{}s", what).c_str(), count));
    return false;
  }

  void size(Bytes bytes) {
    if (bad_size(bytes)) report(PlanFault::kSize, fmt::format("a size of {} bytes is impossible", bytes.count()), kSizeHint);
  }

  void check_tables() {
    if (program_.streams.size() > 255) {
      f_.add(PlanFault::kStream, stage_, "more than 255 streams are declared", "share streams");
    }
    for (std::size_t i = 0; i < program_.kernels.size() && !f_.full(); ++i) {
      if (const std::string problem = kernel_problem(program_.kernels[i]); !problem.empty()) {
        const bool size_problem = problem.starts_with("has a negative") || problem.starts_with("reads");
        f_.add(size_problem ? PlanFault::kSize : PlanFault::kKernel, stage_,
               fmt::format("kernel {} ({}{}) {}", i, name_of(program_.kernels[i].op), first_use(i), problem),
               size_problem ? kSizeHint : "set shape and launches of the kernel");
      }
    }
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      const bool named = buffer.label.index() < program_.labels.size();
      if (!named) {
        f_.add(PlanFault::kIdOutOfRange, stage_,
               fmt::format("label {} of buffer {} does not exist", buffer.label.value(), i),
               range_hint("labels", program_.labels.size()));
      }
      if (bad_size(buffer.size)) {
        f_.add(PlanFault::kSize, stage_,
               fmt::format("buffer {}{} has an impossible size of {} bytes", i,
                           named ? " '" + program_.labels[buffer.label.index()] + "'" : "", buffer.size.count()),
               kSizeHint);
      }
    }
  }

  // ", first used by instruction 3: compute 'qkv'"
  std::string first_use(std::size_t kernel) const {
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const auto* compute = std::get_if<Compute>(&program_.instructions[i].body);
      if (compute && compute->kernel.index() == kernel) {
        return fmt::format(", first used by instruction {}: {}", i, describe(program_, program_.instructions[i]));
      }
    }
    return {};
  }

  void visit(const Compute& compute) { in_range("kernel", compute.kernel.index(), program_.kernels.size()); }

  void visit(const Collective& collective) {
    size(collective.bytes);
    if (!in_range("group", collective.group.index(), plan_.groups.size())) return;
    const Group& group = plan_.groups[collective.group.index()];
    if (group.stages.empty() || std::find(group.stages.begin(), group.stages.end(), stage_) != group.stages.end()) {
      volumes(collective);
      return;
    }
    report(PlanFault::kNotInGroup, fmt::format("stage {} is not part of group '{}'", stage_, group.name),
           "add the stage to the group or drop the collective");
  }

  void volumes(const Collective& collective) {
    if (!collective.volumes || !in_range("volume table", collective.volumes->index(), plan_.volumes.size())) return;
    const VolumeTable& table = plan_.volumes[collective.volumes->index()];
    if (collective.kind != CollectiveKind::kAllToAll) {
      report(PlanFault::kVolumes, fmt::format("volumes '{}' on a collective that is no all_to_all", table.name), "drop them");
      return;
    }
    PerAxis column{0};
    column[Axis::kPipeline] = stage_;
    const std::size_t slots = plan_.members(collective.group, plan_.rank(column)).size();
    if (!fits(table, slots)) {
      report(PlanFault::kVolumes,
             fmt::format("volumes '{}' have {} values by {}, group '{}' has {} ranks", table.name, table.values.size(),
                         name_of(table.form), plan_.groups[collective.group.index()].name, slots),
             "one value a rank; by pairs, ranks times ranks");
    }
  }

  void peer(std::int32_t other, Bytes bytes) {
    size(bytes);
    if (other < 0 || other >= plan_.degrees[Axis::kPipeline]) {
      report(PlanFault::kPeer, fmt::format("stage {} does not exist", other),
             fmt::format("the pipeline has stages 0 to {}", plan_.degrees[Axis::kPipeline] - 1));
    } else if (other == stage_) {
      report(PlanFault::kPeer, "a message to the own stage never leaves", "name another stage or drop the message");
    }
  }
  void visit(const Send& send) { peer(send.peer_stage, send.bytes); }
  void visit(const Recv& recv) { peer(recv.peer_stage, recv.bytes); }
  void visit(const Copy& copy) {
    size(copy.bytes);
    if (copy.host == Memory::kDevice || copy.host == Memory::kNvme) {
      report(PlanFault::kCopy, fmt::format("the host side of a copy is in memory of kind {}", name_of(copy.host)), "pinned_host, pageable_host or managed");
    }
  }
  void visit(const LoadBatch& load) { size(load.bytes); }
  void visit(const HostCompute& work) {
    size(work.bytes);
    if (bad_count(work.flops.si())) {
      report(PlanFault::kSize, fmt::format("{} operations are impossible", work.flops.si()), kSizeHint);
    }
  }

  void visit(const Alloc& alloc) {
    if (!in_range("buffer", alloc.buffer.index(), buffers_.size())) return;
    State& state = buffers_[alloc.buffer.index()];
    if (state == State::kLive) {
      report(PlanFault::kAllocTwice, fmt::format("buffer {} is allocated while it is live", alloc.buffer.value()),
             "free it first, or use a buffer of its own");
    }
    state = State::kLive;
  }

  void visit(const Free& release) {
    if (!in_range("buffer", release.buffer.index(), buffers_.size())) return;
    State& state = buffers_[release.buffer.index()];
    if (state == State::kFreed) {
      report(PlanFault::kFreeTwice, fmt::format("buffer {} is freed a second time", release.buffer.value()),
             "drop one of the two");
    } else if (state == State::kNever) {
      report(PlanFault::kFreeUnallocated,
             fmt::format("buffer {} is freed but was not allocated before", release.buffer.value()), "allocate it first");
    }
    state = State::kFreed;
  }

  void visit(const Record& record) {
    if (!in_range("event", record.event.index(), recorded_.size())) return;
    if (recorded_[record.event.index()]) {
      report(PlanFault::kRecordTwice, fmt::format("event {} is recorded a second time", record.event.value()),
             "give each record an event of its own");
    }
    recorded_[record.event.index()] = true;
  }

  void visit(const Wait& wait) {
    if (!in_range("event", wait.event.index(), recorded_.size())) return;
    if (recorded_[wait.event.index()]) return;
    for (std::size_t i = index_ + 1; i < program_.instructions.size(); ++i) {
      const auto* record = std::get_if<Record>(&program_.instructions[i].body);
      if (record && record->event == wait.event) {
        report(PlanFault::kWaitBeforeRecord,
               fmt::format("event {} is recorded only later, by instruction {}", wait.event.value(), i),
               "issue the record before the wait: CUDA would not wait at all");
        return;
      }
    }
    report(PlanFault::kWaitUnrecorded, fmt::format("nothing records event {}", wait.event.value()),
           "record it on the stream to wait for, or drop the wait");
  }

  Findings& f_;
  const Plan& plan_;
  std::int32_t stage_;
  const Program& program_;
  std::size_t index_ = 0;
  std::vector<State> buffers_;
  std::vector<bool> recorded_;
};

}  // namespace

void check_programs(Findings& findings) {
  const Plan& plan = findings.plan();
  // Once a stage, not once a program: peers and group membership depend on the stage.
  for (std::int32_t stage = 0; stage < plan.degrees[Axis::kPipeline] && !findings.full(); ++stage) {
    ProgramCheck{findings, stage}.run();
  }
}

}  // namespace stepcast::plan::check_parts
