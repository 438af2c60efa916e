// sim/flow/block_pool.hpp — many small arrays in one vector. A block holds a power of two of entries;
// freed blocks are reused by size, so a steady state allocates nothing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/check.hpp"

namespace stepcast::flow {

// Names a block; default: none, of room 0.
struct Block {
  static constexpr std::uint8_t kNone = 0xff;
  std::uint32_t begin = 0;
  std::uint8_t size_class = kNone;  // room is 2^size_class
  [[nodiscard]] std::uint32_t room() const { return size_class == kNone ? 0 : 1U << size_class; }
};

template <class T>
class BlockPool {
 public:
  // A block with room for `count` entries (>= 1). Invalidates pointers into the pool.
  Block acquire(std::uint32_t count) {
    const auto size_class = static_cast<std::uint8_t>(std::bit_width(count - 1));
    std::vector<std::uint32_t>& free = free_[size_class];
    if (!free.empty()) {
      const std::uint32_t begin = free.back();
      free.pop_back();
      return {begin, size_class};
    }
    const std::size_t begin = entries_.size();
    SIM_CHECK(begin + (1ULL << size_class) < std::numeric_limits<std::uint32_t>::max(), begin);
    entries_.resize(begin + (1ULL << size_class));
    return {static_cast<std::uint32_t>(begin), size_class};
  }

  void release(Block block) {
    if (block.size_class == Block::kNone) return;
    free_[block.size_class].push_back(block.begin);
  }

  // Doubles the room of `block`, keeping its first `used` entries.
  void grow(Block& block, std::uint32_t used) {
    const Block larger = acquire(block.room() == 0 ? 2 : block.room() * 2);
    for (std::uint32_t i = 0; i < used; ++i) entries_[larger.begin + i] = entries_[block.begin + i];
    release(block);
    block = larger;
  }

  [[nodiscard]] T* data(Block block) { return entries_.data() + block.begin; }
  [[nodiscard]] const T* data(Block block) const { return entries_.data() + block.begin; }

 private:
  std::vector<T> entries_;
  std::array<std::vector<std::uint32_t>, 33> free_;  // first entries, by size class
};

}  // namespace stepcast::flow
