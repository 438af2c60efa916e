// sim/engine/naive_queue.hpp — the obviously right queue: a vector kept sorted by (time, phase,
// insertion), latest first so that pop is pop_back. O(size) per push. It is the oracle of the tests
// and, selectable in Engine, the tool to bisect a wrong order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "sim/engine/radix_queue.hpp"

namespace stepcast::engine {

class NaiveQueue {
 public:
  [[nodiscard]] bool empty() const { return sorted_.empty(); }
  [[nodiscard]] std::size_t size() const { return sorted_.size(); }

  void push(QueueNode node) {
    const Entry entry{node, pushed_++};
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), entry, later), entry);
  }

  [[nodiscard]] std::int64_t next_time() const { return sorted_.back().node.time_ps; }

  template <class Soon>
  QueueNode pop(Soon&& /*soon*/) {
    const QueueNode node = sorted_.back().node;
    sorted_.pop_back();
    return node;
  }

  void restart_at(std::int64_t /*floor_ps*/) {}

  template <class Dead>
  void remove_if(Dead&& dead) {
    std::erase_if(sorted_, [&](const Entry& entry) { return dead(entry.node.slot); });
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (auto entry = sorted_.rbegin(); entry != sorted_.rend(); ++entry) visit(entry->node);
  }

 private:
  struct Entry {
    QueueNode node;
    std::uint64_t insertion;
  };
  static bool later(const Entry& a, const Entry& b) {
    return std::tuple(a.node.time_ps, a.node.phase, a.insertion) >
           std::tuple(b.node.time_ps, b.node.phase, b.insertion);
  }

  std::vector<Entry> sorted_;
  std::uint64_t pushed_ = 0;
};

}  // namespace stepcast::engine
