// sim/run/compiled_program.hpp — a program made ready to run on one kind of worker: instructions
// sorted by stream, durations filled in, and runs of kernels that nothing interrupts folded into one
// step. This is what lets 16,384 workers share the work of one.
//
// Model    A kernel starts when its stream is free and the host has issued it: t' = max(t, h) + d,
//          where h is when the host is done issuing it, counted from the start of the step. A chain
//          of kernels is again of that form, t' = max(t + D, H), with D = sum d and
//          H = max_j (h_j + sum_{k>=j} d_k).                                                     (1)
//          The host issues in list order without ever waiting for the device, so h is a prefix sum.
// Source   (1) is max-plus algebra; asynchronous launch as the CUDA programming guide describes it
// Ignores  a host that waits for the device within the step, a bounded launch queue; D is of
//          kernels alone (beside collectives: slow_chains.hpp)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::run {

enum class StepKind : std::uint8_t { kKernels, kCollective, kSend, kRecv, kRecord, kWait, kHostWork };
enum class KernelPart : std::uint8_t { kCompute, kOptimizer };

struct CompiledStep {
  StepKind kind = StepKind::kKernels;
  KernelPart part = KernelPart::kCompute;
  std::uint32_t first = 0;    // index into CompiledStream::instructions
  std::uint32_t count = 1;    // kernels in the chain
  std::uint32_t operand = 0;  // event, ordinal of the collective in its group
  std::uint32_t site = 0;     // collective: index into CompiledPlan::sites
  std::uint32_t epoch = 0;    // waits of the host before it
  Duration busy;              // D
  Duration earliest;          // H for kernels, h for everything else; both from the start of the epoch
};

// One instruction of a stream with its own times, for traces.
struct TimedInstruction {
  std::uint32_t index = 0;    // in Program::instructions
  Duration issued;            // h, from the start of the epoch
  Duration duration;          // kernels only
};

struct CompiledStream {
  std::vector<CompiledStep> steps;
  std::vector<TimedInstruction> instructions;
  bool is_compute = false;
  bool is_issue = false;      // its waits are the host's
};

struct CompiledProgram {
  std::vector<CompiledStream> streams;  // as Program::streams
  std::uint32_t event_count = 0;
  Duration host_total;                  // when the host has issued everything
};

// A distinct collective call: workers that meet in one always agree on these.
struct CollectiveSite {
  plan::GroupId group;
  plan::CollectiveKind kind = plan::CollectiveKind::kAllReduce;
  Bytes bytes;
  plan::Purpose purpose = plan::Purpose::kTensor;
  std::optional<plan::VolumesId> volumes{};
  friend auto operator<=>(const CollectiveSite&, const CollectiveSite&) = default;
};

struct CompiledPlan {
  std::vector<CompiledProgram> programs;  // all for the first kind of GPU, then all for the next
  std::size_t per_kind = 0;               // programs of the plan
  [[nodiscard]] const CompiledProgram& on(std::size_t program, std::size_t gpu_kind) const { return programs[gpu_kind * per_kind + program]; }
  std::vector<CollectiveSite> sites;
};

// Collectives over groups of one rank vanish. Cost O(instructions).
CompiledPlan compile(const plan::Plan& plan, const Machine& machine);

}  // namespace stepcast::run
