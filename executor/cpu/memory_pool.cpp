#include "executor/cpu/memory_pool.hpp"

#include <algorithm>
#include <new>

#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::executor {

std::byte* MemoryPool::take(Bytes size) {
  const std::lock_guard lock{mutex_};
  if (used_ + size > limit_) {
    throw SystemError("out of memory: " + std::to_string(size.count()) + " bytes more than the " + std::to_string(used_.count()) +
                      " in use are above the limit of " + std::to_string(limit_.count()) + " (--memory)");
  }
  used_ += size;
  peak_ = std::max(peak_, used_);
  if (const auto it = free_.find(size); it != free_.end()) {
    std::byte* block = it->second;
    free_.erase(it);
    return block;
  }
  try {
    blocks_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(std::max<std::int64_t>(1, size.count()))));  // zeroed
  } catch (const std::bad_alloc&) {
    throw SystemError("out of memory: the machine has no " + std::to_string(size.count()) + " bytes more");
  }
  return blocks_.back().get();
}

void MemoryPool::give(std::byte* block, Bytes size) {
  const std::lock_guard lock{mutex_};
  used_ -= size;
  free_.emplace(size, block);
}

Bytes MemoryPool::peak() const {
  const std::lock_guard lock{mutex_};
  return peak_;
}

}  // namespace stepcast::executor
