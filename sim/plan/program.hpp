// sim/plan/program.hpp — the instruction list shared by all workers of one kind.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/instruction.hpp"

namespace stepcast::plan {

enum class StreamKind : std::uint8_t { kCompute, kCommunication, kHostToDevice, kDeviceToHost, kHost, kIo,
  kIssue,  // the host thread that issues all the others' instructions: what is listed after its wait is issued after that
};

struct Stream {
  StreamKind kind = StreamKind::kCompute;
  std::string name;  // "compute", "dp", "pp.send", ...
  friend auto operator<=>(const Stream&, const Stream&) = default;
};


enum class Category : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kWorkspace,      // transient within an operator or layer (logits, cuBLAS)
  kCommunication,  // buckets, gather buffers, pipeline receive buffers
};
inline constexpr int kCategoryCount = 6;

struct Buffer {
  LabelId label;
  Bytes size;  // requested, before the allocator rounds
  Memory memory = Memory::kDevice;
  Category category = Category::kActivations;
  friend auto operator<=>(const Buffer&, const Buffer&) = default;
};

struct Program {
  std::string name;                 // "stage 3 of 16"
  std::vector<Stream> streams;
  std::vector<std::string> labels;  // interned operator names
  std::vector<Kernel> kernels;      // distinct kernels; many instructions share one
  std::vector<Buffer> buffers;
  std::uint32_t event_count = 0;
  std::vector<Instruction> instructions;
  friend bool operator==(const Program&, const Program&) = default;
};

const char* name_of(StreamKind kind);
const char* name_of(Memory memory);
const char* name_of(Category category);

}  // namespace stepcast::plan
