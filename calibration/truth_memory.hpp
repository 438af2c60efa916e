// calibration/truth_memory.hpp — what a published memory figure counts, so that a forecast is held against the like.
//
// Model    allocated  live tensors of the framework's caching allocator (torch max_memory_allocated)
//          reserved   what that allocator has taken from the device (torch max_memory_reserved)
//          device     all of the device in use: reserved, the CUDA context, NCCL's buffers (nvidia-smi)
//          Words are looked for in the column mem_kind: "reserved"; "allocated" or "peak_memory_usage" (NeMo logs torch's
//          maximum under that name); else the device's. A figure is of the fullest worker, or, "last", of the last rank.
// Unit     GiB, as the column mem_gib says, unless mem_kind says GB (1e9 bytes)
// Ignores  when in the run the maximum was reset
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/units.hpp"

namespace stepcast::calibration {

enum class MemoryMeasure : std::uint8_t { kAllocated, kReserved, kDevice };
const char* name_of(MemoryMeasure measure);

struct MemoryFigure {
  std::optional<Bytes> peak;
  MemoryMeasure measure = MemoryMeasure::kDevice;
  bool last_rank = false;       // else the fullest
  bool out_of_memory = false;   // the run did not fit

  [[nodiscard]] bool stated() const { return peak.has_value() || out_of_memory; }
};

// `number` as printed, `kind` the column mem_kind.
MemoryFigure memory_figure(std::optional<double> number, std::string_view kind);

}  // namespace stepcast::calibration
