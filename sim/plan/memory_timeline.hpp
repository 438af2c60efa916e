// sim/plan/memory_timeline.hpp — what one kind of memory holds while a program runs.
// Alloc and Free take effect in list order, as a stream-ordered caching allocator sees them, so the
// timeline is over instructions, not time. Device buffers count at the size the allocator rounds
// them to; the other memories at the requested size.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "sim/plan/program.hpp"

namespace stepcast::plan {

using BytesByCategory = std::array<Bytes, kCategoryCount>;

// Holds from `instruction` (having run) to the next sample.
struct MemorySample {
  std::size_t instruction = 0;
  Bytes live;
  BytesByCategory by_category{};
};

// Live buffers of one label, size and category.
struct LiveBuffers {
  LabelId label;
  Category category = Category::kActivations;
  Bytes size;             // of each
  std::size_t count = 0;
  [[nodiscard]] Bytes total() const { return size * static_cast<std::int64_t>(count); }
};

struct MemoryTimeline {
  std::vector<MemorySample> samples;     // one per Alloc or Free; empty unless asked for
  Bytes peak;
  BytesByCategory at_peak{};             // adds up to `peak`
  BytesByCategory category_peak{};       // each category's own highest
  std::optional<std::size_t> instruction;  // the Alloc that reaches the peak first; empty: no buffers
  std::optional<LabelId> label;          // of that Alloc
  std::vector<LiveBuffers> largest;      // live at the peak, by falling total
  Bytes at_end;                          // never freed
  // Device memory only: what the caching allocator takes from the device.
  Bytes reserved_peak;
  // Requested by the Alloc that did not fit in `capacity` even after the cache was given back.
  std::optional<std::size_t> out_of_memory;
};

struct MemoryOptions {
  Memory memory = Memory::kDevice;
  bool samples = false;
  std::size_t largest = 10;
  std::optional<Bytes> capacity;  // of the allocator's segments; empty: unlimited
  // Segments grow page by page and nothing is lost between blocks: what a stream holds at most is what it reserves
  // (PyTorch's expandable_segments). `capacity` has no effect.
  bool expandable_segments = false;
};

// Requires: a program that check() accepts. Cost O(instructions log buffers).
MemoryTimeline memory_timeline(const Program& program, const MemoryOptions& options = {});

}  // namespace stepcast::plan
