#include "sim/plan/caching_allocator.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::plan {

CachingAllocator::Key CachingAllocator::key(Index index) const {
  const Block& b = blocks_[index];
  return {b.stream, b.size, b.address, index};
}

CachingAllocator::Index CachingAllocator::new_block(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<Index>(blocks_.size() - 1);
  }
  const Index index = unused_.back();
  unused_.pop_back();
  blocks_[index] = block;
  return index;
}

std::optional<CachingAllocator::Index> CachingAllocator::take_free(std::int64_t size, StreamId stream, bool small) {
  Pool& candidates = pool(small);
  const auto found = candidates.lower_bound(Key{stream, size, 0, 0});
  if (found == candidates.end() || std::get<0>(*found) != stream) return std::nullopt;
  const Index index = std::get<3>(*found);
  candidates.erase(found);
  return index;
}

std::optional<CachingAllocator::Index> CachingAllocator::new_segment(std::int64_t size, StreamId stream, bool small) {
  std::int64_t segment = (size + kOwnRounding - 1) / kOwnRounding * kOwnRounding;
  if (small) {
    segment = kSmallSegment;
  } else if (size < kOwnSegment) {
    segment = kLargeSegment;
  }
  if (capacity_ && reserved_ + Bytes{segment} > *capacity_) {
    release_free_segments();
    if (reserved_ + Bytes{segment} > *capacity_) return std::nullopt;
  }
  reserved_ += Bytes{segment};
  reserved_peak_ = std::max(reserved_peak_, reserved_);
  const Index index = new_block(
      {.address = next_address_, .size = segment, .previous = {}, .next = {}, .stream = stream, .small = small});
  next_address_ += segment;
  return index;
}

void CachingAllocator::release_free_segments() {
  for (Pool* candidates : {&small_, &large_}) {
    for (auto it = candidates->begin(); it != candidates->end();) {
      const Index index = std::get<3>(*it);
      if (blocks_[index].previous || blocks_[index].next) {
        ++it;
        continue;
      }
      reserved_ -= Bytes{blocks_[index].size};
      unused_.push_back(index);
      it = candidates->erase(it);
    }
  }
}

std::optional<BlockId> CachingAllocator::allocate(Bytes request, StreamId stream) {
  SIM_CHECK(request.count() >= 0, request.count());
  const std::int64_t size = rounded(request).count();
  const bool small = size <= kSmallLimit;
  std::optional<Index> found = take_free(size, stream, small);
  if (!found) found = new_segment(size, stream, small);
  if (!found) return std::nullopt;
  const Index index = *found;
  const std::int64_t rest = blocks_[index].size - size;
  if (small ? rest >= kMinBlock : rest > kSmallLimit) {
    const Block whole = blocks_[index];
    const Index tail = new_block({.address = whole.address + size,
                                  .size = rest,
                                  .previous = index,
                                  .next = whole.next,
                                  .stream = stream,
                                  .small = small,
                                  .free = true});
    if (whole.next) blocks_[*whole.next].previous = tail;
    blocks_[index].next = tail;
    blocks_[index].size = size;
    pool(small).insert(key(tail));
  }
  blocks_[index].free = false;
  // As PyTorch counts: the whole block, also what was too small to split off.
  allocated_ += Bytes{blocks_[index].size};
  allocated_peak_ = std::max(allocated_peak_, allocated_);
  return BlockId{index};
}

void CachingAllocator::absorb(Index into, Index next) {
  blocks_[into].size += blocks_[next].size;
  blocks_[into].next = blocks_[next].next;
  if (blocks_[into].next) blocks_[*blocks_[into].next].previous = into;
  unused_.push_back(next);
}

void CachingAllocator::free(BlockId block) {
  Index index = block.value();
  SIM_CHECK(index < blocks_.size() && !blocks_[index].free, index);
  Pool& home = pool(blocks_[index].small);
  blocks_[index].free = true;
  allocated_ -= Bytes{blocks_[index].size};
  if (const auto next = blocks_[index].next; next && blocks_[*next].free) {
    home.erase(key(*next));
    absorb(index, *next);
  }
  if (const auto previous = blocks_[index].previous; previous && blocks_[*previous].free) {
    home.erase(key(*previous));
    absorb(*previous, index);
    index = *previous;
  }
  home.insert(key(index));
}

}  // namespace stepcast::plan
