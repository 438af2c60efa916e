// sim/plan/caching_allocator.hpp — device memory as the PyTorch caching allocator hands it out.
// Model    requests round up to 512 B. Up to 1 MiB they come from 2 MiB segments; below 10 MiB from
//          20 MiB segments; larger ones get a segment of their own size rounded up to 2 MiB. A free
//          block is reused best-fit (smallest that is large enough, lowest address) within its pool
//          and stream; what is left of it is split off when >= 512 B (small pool) or > 1 MiB (large
//          pool). Freed neighbours merge. When a segment would exceed `capacity`, all wholly free
//          segments are returned to the device first.
// Symbols  allocated [B] rounded sizes of live blocks; reserved [B] sum of segments
// Source   c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.x): kMinBlockSize, kSmallSize, kSmallBuffer,
//          kLargeBuffer, kMinLargeAlloc, kRoundLarge; get_free_block, should_split
// Valid    default settings (no max_split_size, roundup divisions or expandable segments)
// Ignores  blocks held back for streams that still use them (record_stream), garbage collection,
//          the driver's own granularity for segments
// Tests    unit/plan_memory_test (worked by hand), property/plan_memory_test (naive model)
// Cost     O(log blocks) per call
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "sim/plan/instruction.hpp"

namespace stepcast::plan {

using BlockId = Id<struct BlockTag>;

class CachingAllocator {
 public:
  static constexpr std::int64_t kMinBlock = 512;
  static constexpr std::int64_t kSmallLimit = 1 << 20;
  static constexpr std::int64_t kSmallSegment = 2 << 20;
  static constexpr std::int64_t kLargeSegment = 20 << 20;
  static constexpr std::int64_t kOwnSegment = 10 << 20;
  static constexpr std::int64_t kOwnRounding = 2 << 20;

  static constexpr Bytes rounded(Bytes request) {
    const std::int64_t blocks = (request.count() + kMinBlock - 1) / kMinBlock;
    return Bytes{(blocks < 1 ? 1 : blocks) * kMinBlock};
  }

  CachingAllocator() = default;
  explicit CachingAllocator(Bytes capacity) : capacity_{capacity} {}

  // Empty when the capacity does not suffice. Requires: request >= 0.
  std::optional<BlockId> allocate(Bytes request, StreamId stream);
  void free(BlockId block);

  [[nodiscard]] Bytes allocated() const { return allocated_; }
  [[nodiscard]] Bytes reserved() const { return reserved_; }
  [[nodiscard]] Bytes allocated_peak() const { return allocated_peak_; }
  [[nodiscard]] Bytes reserved_peak() const { return reserved_peak_; }

 private:
  using Index = std::uint32_t;
  struct Block {
    std::int64_t address = 0;
    std::int64_t size = 0;
    std::optional<Index> previous;  // neighbours in the same segment
    std::optional<Index> next;
    StreamId stream;
    bool small = false;
    bool free = false;
  };
  // (stream, size, address, index): the order in which the allocator searches a pool.
  using Key = std::tuple<StreamId, std::int64_t, std::int64_t, Index>;
  using Pool = std::set<Key>;

  [[nodiscard]] Key key(Index index) const;
  Pool& pool(bool small) { return small ? small_ : large_; }
  std::optional<Index> take_free(std::int64_t size, StreamId stream, bool small);
  std::optional<Index> new_segment(std::int64_t size, StreamId stream, bool small);
  void release_free_segments();
  void absorb(Index into, Index next);
  Index new_block(const Block& block);

  std::optional<Bytes> capacity_;
  std::vector<Block> blocks_;
  std::vector<Index> unused_;  // slots of merged blocks
  Pool small_;
  Pool large_;
  std::int64_t next_address_ = 0;
  Bytes allocated_, reserved_, allocated_peak_, reserved_peak_;
};

}  // namespace stepcast::plan
