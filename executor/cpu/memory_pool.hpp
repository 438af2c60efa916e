// executor/cpu/memory_pool.hpp — buffers that Alloc takes and Free gives back: the blocks stay, and a later Alloc of the size takes one.
// Thread-safe. A fresh block is touched, so that its pages exist before the step that is measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::executor {

class MemoryPool {
 public:
  // Throws SystemError where more than `limit` would be in use.
  explicit MemoryPool(Bytes limit) : limit_{limit} {}

  std::byte* take(Bytes size);
  void give(std::byte* block, Bytes size);
  [[nodiscard]] Bytes peak() const;  // most in use at once

 private:
  Bytes limit_;
  Bytes used_{};
  Bytes peak_{};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::multimap<Bytes, std::byte*> free_;
};

}  // namespace stepcast::executor
