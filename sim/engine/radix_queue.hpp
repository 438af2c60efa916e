// sim/engine/radix_queue.hpp — a monotone priority queue of (time, phase, insertion).
//
// An event's place depends on the highest base-64 digit in which its time differs from the *floor*,
// the time of the last event taken out: level = index of that digit, bucket = its value. Nothing
// is ever earlier than the floor, so the lowest non-empty bucket of the lowest non-empty level holds
// the minimum. Taking it out raises the floor to the bucket's earliest time and deals the bucket's
// other events to lower levels; events of exactly that time go to one FIFO per phase.
// Buckets are only appended to and dealt in order, and equal times are always in the same bucket, so
// insertion order needs no sequence number and no comparison: 16 bytes an event.
//
// Cost    push O(1); pop O(1) amortised, at most 11 moves an event over its life (3 in practice)
// Memory  chunks of 15 nodes from one pool, reused; no allocation at constant population
// Why     docs/adr/0010-event-queue.md (measured against d-ary heaps)
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/check.hpp"

namespace stepcast::engine {

// What a queue stores: when, and which slot of the engine's event pool.
struct QueueNode {
  std::int64_t time_ps = 0;
  std::uint32_t slot = 0;
  std::uint32_t phase = 0;  // < 256
};

class RadixQueue {
 public:
  RadixQueue() { fifo_.fill({}); }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  // Requires: node.time_ps >= the time of the last node popped.
  void push(QueueNode node) {
    SIM_DCHECK(node.time_ps >= floor_, node.time_ps, floor_);
    ++size_;
    place(node);
  }

  // Time of the next node. Requires: !empty().
  [[nodiscard]] std::int64_t next_time() const {
    if (instant_size_ != 0) return floor_;
    return bucket_[lowest_bucket()].min_time_ps;
  }

  // Removes the first node in (time, phase, insertion). Requires: !empty().
  // Calls soon(slot) on nodes that will be popped shortly, so that the caller can fetch their data.
  template <class Soon>
  QueueNode pop(Soon&& soon) {
    --size_;
    if (instant_size_ == 0) {
      const std::size_t index = lowest_bucket();
      Bucket& bucket = bucket_[index];
      clear_bit(index);
      floor_ = bucket.min_time_ps;
      if (bucket.count == 1) {  // alone: nothing to deal
        const QueueNode node = chunks_[bucket.head].nodes[0];
        release(bucket.head);
        bucket = {};
        return node;
      }
      deal(bucket, soon);
    }
    return pop_instant(soon);
  }
  QueueNode pop() {
    return pop([](std::uint32_t) {});
  }

  // Forgets the floor. Requires: empty().
  void restart_at(std::int64_t floor_ps) {
    SIM_CHECK(empty(), size_);
    floor_ = floor_ps;
  }

  // Drops every node for which dead(slot) is true. O(size).
  template <class Dead>
  void remove_if(Dead&& dead) {
    for (std::size_t i = 0; i < bucket_.size(); ++i) {
      if (bucket_[i].head == kNone) continue;
      filter(bucket_[i], 0, dead);
      if (bucket_[i].head == kNone) clear_bit(i);
    }
    for (std::size_t phase = 0; phase < fifo_.size(); ++phase) {
      if (fifo_[phase].head == kNone) continue;
      const std::size_t before = size_;
      filter(fifo_[phase], read_[phase], dead);
      read_[phase] = 0;
      instant_size_ -= before - size_;
      if (fifo_[phase].head == kNone) phases_[phase / 64] &= ~(1ULL << (phase % 64));
    }
  }

  // Calls visit(node) on all nodes; those of equal time and phase in insertion order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t phase = 0; phase < fifo_.size(); ++phase) walk(fifo_[phase], read_[phase], visit);
    for (const Bucket& bucket : bucket_) walk(bucket, 0, visit);
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr unsigned kDigitBits = 6;
  static constexpr unsigned kDigits = 1U << kDigitBits;
  static constexpr unsigned kLevels = (63 + kDigitBits - 1) / kDigitBits;  // times have 63 bits
  static constexpr std::uint32_t kChunkNodes = 15;
  // A bucket of at most this many nodes is popped soon after it is dealt. Their data, a cache line each,
  // fit the second-level cache; and dealing divides a bucket by up to 64, so 8 or more are announced at
  // once and their fetches overlap.
  static constexpr std::uint32_t kSoon = 512;
  static constexpr std::uint32_t kAhead = 8;  // nodes of a FIFO announced ahead; <= kChunkNodes

  struct alignas(64) Chunk {  // 256 bytes, four cache lines
    std::uint32_t next = kNone;
    std::array<QueueNode, kChunkNodes> nodes;
  };
  struct alignas(32) Bucket {  // within one cache line
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
    std::uint32_t fill = 0;   // nodes in the tail chunk
    std::uint32_t count = 0;  // nodes ever appended since it was empty
    std::int64_t min_time_ps = std::numeric_limits<std::int64_t>::max();
  };

  [[nodiscard]] std::size_t lowest_bucket() const {
    const auto level = static_cast<unsigned>(std::countr_zero(levels_));
    return level * kDigits + static_cast<unsigned>(std::countr_zero(occupied_[level]));
  }
  void clear_bit(std::size_t index) {
    const std::size_t level = index / kDigits;
    occupied_[level] &= ~(1ULL << (index % kDigits));
    if (occupied_[level] == 0) levels_ &= ~(1U << level);
  }

  void place(QueueNode node) {
    const auto difference = static_cast<std::uint64_t>(node.time_ps ^ floor_);
    if (difference == 0) {
      ++instant_size_;
      phases_[node.phase / 64] |= 1ULL << (node.phase % 64);
      append(fifo_[node.phase], node);
      return;
    }
    const unsigned level = static_cast<unsigned>(63 - std::countl_zero(difference)) / kDigitBits;
    const unsigned digit =
        static_cast<unsigned>(node.time_ps >> (level * kDigitBits)) & (kDigits - 1);
    levels_ |= 1U << level;
    occupied_[level] |= 1ULL << digit;
    append(bucket_[level * kDigits + digit], node);
  }

  void append(Bucket& bucket, QueueNode node) {
    if (bucket.head == kNone) {
      bucket.head = bucket.tail = acquire();
      bucket.fill = 0;
    } else if (bucket.fill == kChunkNodes) {
      const std::uint32_t chunk = acquire();
      chunks_[bucket.tail].next = chunk;
      bucket.tail = chunk;
      bucket.fill = 0;
    }
    chunks_[bucket.tail].nodes[bucket.fill++] = node;
    ++bucket.count;
    if (node.time_ps < bucket.min_time_ps) bucket.min_time_ps = node.time_ps;
  }

  // Moves all nodes of `bucket` to where they belong under the new floor, in order.
  template <class Soon>
  void deal(Bucket& bucket, Soon& soon) {
    const Bucket from = bucket;
    bucket = {};
    const bool is_near = from.count <= kSoon;
    walk_and_release(from, 0, [&](QueueNode node) {
      if (is_near) soon(node.slot);
      place(node);
    });
  }

  template <class Soon>
  QueueNode pop_instant(Soon& soon) {
    std::size_t word = 0;
    while (phases_[word] == 0) ++word;
    const std::size_t phase = word * 64 + static_cast<std::size_t>(std::countr_zero(phases_[word]));
    Bucket& fifo = fifo_[phase];
    std::uint32_t& read = read_[phase];
    const Chunk& chunk = chunks_[fifo.head];
    const std::uint32_t ahead = read + kAhead;  // past the end a stale slot is announced: harmless
    if (ahead < kChunkNodes) {
      soon(chunk.nodes[ahead].slot);
    } else if (fifo.head != fifo.tail) {
      soon(chunks_[chunk.next].nodes[ahead - kChunkNodes].slot);
    }
    const QueueNode node = chunk.nodes[read++];
    --instant_size_;
    if (fifo.head == fifo.tail && read == fifo.fill) {
      release(fifo.head);
      fifo = {};
      read = 0;
      phases_[word] &= ~(1ULL << (phase % 64));
    } else if (read == kChunkNodes) {
      const std::uint32_t next = chunks_[fifo.head].next;
      release(fifo.head);
      fifo.head = next;
      read = 0;
    }
    return node;
  }

  template <class Dead>
  void filter(Bucket& bucket, std::uint32_t first, Dead& dead) {
    const Bucket from = bucket;
    bucket = {};
    walk_and_release(from, first, [&](QueueNode node) {
      if (dead(node.slot)) {
        --size_;
      } else {
        append(bucket, node);
      }
    });
  }

  template <class Visit>
  void walk(const Bucket& bucket, std::uint32_t first, Visit& visit) const {
    for (std::uint32_t chunk = bucket.head; chunk != kNone; chunk = chunks_[chunk].next, first = 0) {
      const std::uint32_t end = chunk == bucket.tail ? bucket.fill : kChunkNodes;
      for (std::uint32_t i = first; i < end; ++i) visit(chunks_[chunk].nodes[i]);
    }
  }
  template <class Visit>
  void walk_and_release(const Bucket& bucket, std::uint32_t first, Visit&& visit) {
    std::uint32_t chunk = bucket.head;
    while (chunk != kNone) {
      const std::uint32_t end = chunk == bucket.tail ? bucket.fill : kChunkNodes;
      const std::uint32_t next = chunk == bucket.tail ? kNone : chunks_[chunk].next;
      if (next != kNone) fetch(next);
      for (std::uint32_t i = first; i < end; ++i) visit(chunks_[chunk].nodes[i]);  // may grow chunks_
      release(chunk);
      chunk = next;
      first = 0;
    }
  }

  void fetch(std::uint32_t chunk) const {
    const char* const line = reinterpret_cast<const char*>(chunks_.data() + chunk);
    for (std::size_t offset = 0; offset < sizeof(Chunk); offset += 64) __builtin_prefetch(line + offset, 1);
  }
  std::uint32_t acquire() {
    if (free_ == kNone) {
      chunks_.emplace_back();
      return static_cast<std::uint32_t>(chunks_.size() - 1);
    }
    const std::uint32_t chunk = free_;
    free_ = chunks_[chunk].next;
    chunks_[chunk].next = kNone;
    return chunk;
  }
  void release(std::uint32_t chunk) {
    chunks_[chunk].next = free_;
    free_ = chunk;
  }

  std::int64_t floor_ = 0;
  std::size_t size_ = 0;
  std::size_t instant_size_ = 0;               // nodes whose time is the floor
  std::uint32_t levels_ = 0;                   // bit l: level l has an occupied bucket
  std::array<std::uint64_t, kLevels> occupied_{};
  std::array<std::uint64_t, 4> phases_{};      // bit p: fifo_[p] is not empty
  std::array<Bucket, kLevels * kDigits> bucket_{};
  std::array<Bucket, 256> fifo_{};
  std::array<std::uint32_t, 256> read_{};      // next node to read in the FIFO's head chunk
  std::vector<Chunk> chunks_;
  std::uint32_t free_ = kNone;
};

}  // namespace stepcast::engine
