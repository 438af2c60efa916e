// sim/plan/instruction.hpp — one step of a worker's program. Plain data: it prints, saves, compares.
//
// Every instruction names the stream it is queued on. Streams run in order, as on CUDA; Record and
// Wait order them across. The list order is the order in which the host issues the work, so Alloc
// and Free take effect in list order (as a stream-ordered caching allocator sees them).
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::plan {

using ProgramId = Id<struct ProgramTag>;
using StreamId = Id<struct StreamTag, std::uint8_t>;  // index into Program::streams
using KernelId = Id<struct KernelTag>;                // index into Program::kernels
using BufferId = Id<struct BufferTag>;                // index into Program::buffers
using EventId = Id<struct PlanEventTag>;              // Record/Wait pair within a program
using LabelId = Id<struct LabelTag>;                  // index into Program::labels
using GroupId = Id<struct GroupTag>;                  // index into Plan::groups
using VolumesId = Id<struct VolumesTag>;              // index into Plan::volumes

// The part of the step that an instruction belongs to; the time breakdown groups by it.
enum class Stage : std::uint8_t { kInput, kForward, kRecompute, kBackward, kGradientSync, kOptimizer, kWeightGradient };

// Which resource's traffic this is: exposed time is reported per purpose.
enum class Purpose : std::uint8_t { kTensor, kPipeline, kData, kExpert, kContext, kOffload };

enum class CollectiveKind : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll, kSendReceive };

struct Compute {
  KernelId kernel;
  friend auto operator<=>(const Compute&, const Compute&) = default;
};

// `bytes` follows nccl-tests: all-reduce and broadcast: the buffer; all-gather: the gathered output;
// reduce-scatter: the input before scattering; all-to-all: what each rank holds; send-receive: what each rank
// sends to the next one of the group and receives from the one before. `volumes`, of an all-to-all only: parts
// are unequal, and `bytes` is what a rank holds on average.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  GroupId group;
  Bytes bytes;
  Dtype dtype = Dtype::kBf16;
  Purpose purpose = Purpose::kTensor;
  std::optional<VolumesId> volumes{};
  friend auto operator<=>(const Collective&, const Collective&) = default;
};

// The peer has the same coordinates but for `pp`. Messages between two workers match in order.
struct Send {
  std::int32_t peer_stage = 0;
  Bytes bytes;
  friend auto operator<=>(const Send&, const Send&) = default;
};
struct Recv {
  std::int32_t peer_stage = 0;
  Bytes bytes;
  friend auto operator<=>(const Recv&, const Recv&) = default;
};

enum class CopyKind : std::uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kNvmeToHost, kHostToNvme };
enum class Memory : std::uint8_t { kDevice, kPinnedHost, kPageableHost, kManaged, kNvme };

// `host`: what the host's side is. Copy engines read locked pages; the driver stages others; managed pages move when they are touched.
struct Copy {
  CopyKind kind = CopyKind::kHostToDevice;
  Bytes bytes;
  Memory host = Memory::kPinnedHost;
  friend auto operator<=>(const Copy&, const Copy&) = default;
};

// Work on the host's cores, e.g. an offloaded optimizer.
struct HostCompute {
  Flops flops;
  Bytes bytes;  // DRAM traffic
  friend auto operator<=>(const HostCompute&, const HostCompute&) = default;
};

struct LoadBatch {
  Bytes bytes;
  friend auto operator<=>(const LoadBatch&, const LoadBatch&) = default;
};

struct Alloc {
  BufferId buffer;
  friend auto operator<=>(const Alloc&, const Alloc&) = default;
};
struct Free {
  BufferId buffer;
  friend auto operator<=>(const Free&, const Free&) = default;
};
struct Record {
  EventId event;
  friend auto operator<=>(const Record&, const Record&) = default;
};
struct Wait {
  EventId event;
  friend auto operator<=>(const Wait&, const Wait&) = default;
};

using Body = std::variant<Compute, Collective, Send, Recv, Copy, HostCompute, LoadBatch, Alloc, Free, Record, Wait>;

struct Instruction {
  StreamId stream;
  Stage stage = Stage::kForward;
  LabelId label;                              // the source operator, e.g. "attention.qkv"
  std::optional<std::uint16_t> layer;         // global layer index
  std::optional<std::uint16_t> micro_batch;
  Body body;
  friend auto operator<=>(const Instruction&, const Instruction&) = default;
};

const char* name_of(Stage stage);
const char* name_of(Purpose purpose);
const char* name_of(CollectiveKind kind);
const char* name_of(CopyKind kind);
// "compute", "collective", ... the word of the file form.
const char* opcode_of(const Body& body);

}  // namespace stepcast::plan
