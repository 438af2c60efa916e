// bench/heap_queue.hpp — the d-ary heap that the radix queue was measured against (docs/adr). Same
// interface and order as engine::RadixQueue: (time, phase, insertion), phase and insertion packed in
// one word, so a node is 24 bytes and a comparison at most two words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/radix_queue.hpp"

namespace stepcast::bench {

template <std::size_t Arity>
class HeapQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  void push(engine::QueueNode node) {
    const Entry entry{node.time_ps, (static_cast<std::uint64_t>(node.phase) << 56) | pushed_++, node.slot};
    std::size_t hole = heap_.size();
    heap_.push_back(entry);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / Arity;
      if (!before(entry, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  engine::QueueNode pop() {
    const Entry top = heap_.front();
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) {
      std::size_t hole = 0;
      for (;;) {
        const std::size_t first = hole * Arity + 1;
        if (first >= heap_.size()) break;
        const std::size_t end = first + Arity < heap_.size() ? first + Arity : heap_.size();
        std::size_t best = first;
        for (std::size_t child = first + 1; child < end; ++child) {
          if (before(heap_[child], heap_[best])) best = child;
        }
        if (!before(heap_[best], last)) break;
        heap_[hole] = heap_[best];
        hole = best;
      }
      heap_[hole] = last;
    }
    return {top.time_ps, top.slot, static_cast<std::uint32_t>(top.order >> 56)};
  }

 private:
  struct Entry {
    std::int64_t time_ps;
    std::uint64_t order;
    std::uint32_t slot;
  };
  static bool before(const Entry& a, const Entry& b) {
    return a.time_ps < b.time_ps || (a.time_ps == b.time_ps && a.order < b.order);
  }
  std::vector<Entry> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace stepcast::bench
