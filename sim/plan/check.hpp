// sim/plan/check.hpp — is a plan sound? Run before anything plays it.
//
// Workers of one program are alike, so one column of the pipeline (all other coordinates 0) stands
// for all: the cost is that of the programs, whatever the number of workers.
//   1. tables: degrees, groups, ids in range, sizes; buffers and events used once and in order
//   2. between stages: messages match in order, size and micro-batch; collectives of a group that
//      spans stages are issued alike by all of them
//   3. progress: the streams are played with messages and collectives as meetings (a send ends when
//      its receive has been reached, as NCCL's do); a plan that stops has a cycle, which is named
// A later part runs only when the earlier ones found nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::plan {

enum class PlanFault : std::uint8_t {
  kDegrees,             // degrees, axis order, program of each stage
  kGroup,               // a group's axes or stages
  kIdOutOfRange,        // kernel, buffer, event, group, label
  kStream,              // instruction on a stream that is not declared
  kSize,                // negative, not finite, or beyond kLargestSize
  kKernel,              // shape missing, no launch
  kPeer,                // message to a stage that does not exist or to itself
  kCopy,                // the host side of a copy is no host memory
  kVolumes,             // a table of volumes that is no description of traffic, or does not fit the group
  kNotInGroup,          // collective on a group that this stage is not part of
  kAllocTwice,
  kFreeTwice,
  kFreeUnallocated,
  kRecordTwice,
  kWaitUnrecorded,
  kWaitBeforeRecord,
  kMessageUnmatched,    // a send without a receive or the reverse
  kMessageSize,
  kMessageOrder,        // another micro-batch is expected here
  kCollectiveMismatch,  // another kind, size, dtype or number of collectives on another stage
  kDeadlock,
};

const char* name_of(PlanFault fault);

// No single buffer, message or copy is larger: it keeps sums within 64 bits.
inline constexpr Bytes kLargestSize{std::int64_t{1} << 46};

struct PlanError {
  PlanFault fault = PlanFault::kDegrees;
  std::optional<RankId> worker;             // the first that runs the instruction
  std::optional<std::int32_t> stage;
  std::optional<std::size_t> instruction;   // index in the program
  std::string source;                       // "send 'pp.forward', layer 3, micro-batch 0"
  std::string problem;                      // one sentence
  std::string hint;
  std::vector<std::string> details;         // deadlock: what each blocked stream waits for
};

// In order of stage and instruction; at most the first hundred.
std::vector<PlanError> check(const Plan& plan);

// "worker 4 (stage 1), instruction 12 (send 'pp.forward', layer 3, micro-batch 0): ...", then the
// details and the hint, indented.
std::string to_text(const PlanError& error);

// Throws UserError naming `file` (where the plan came from) unless check() accepts the plan.
void require_valid(const Plan& plan, const std::string& file);

}  // namespace stepcast::plan
