// The allocator against a naive one that searches a list of segments; the timeline against a recount.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/plan/caching_allocator.hpp"
#include "sim/plan/memory_timeline.hpp"
#include "tests/support/random_plan.hpp"

using namespace stepcast;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("property");

namespace {

// Segments in order of creation, each a list of pieces. Everything by linear search.
class NaiveAllocator {
 public:
  explicit NaiveAllocator(std::int64_t capacity) : capacity_{capacity} {}

  bool allocate(int name, std::int64_t request, StreamId stream) {
    const std::int64_t size = std::max<std::int64_t>(1, (request + 511) / 512) * 512;
    const bool small = size <= (1 << 20);
    Piece* piece = best(size, stream, small);
    if (piece == nullptr) {
      const std::int64_t mega = 1 << 20;
      const std::int64_t bytes = small ? 2 * mega : size < 10 * mega ? 20 * mega : (size + 2 * mega - 1) / (2 * mega) * 2 * mega;
      if (reserved() + bytes > capacity_) {
        std::erase_if(segments_, [](const Segment& s) { return s.pieces.size() == 1 && s.pieces[0].name < 0; });
      }
      if (reserved() + bytes > capacity_) return false;
      segments_.push_back({stream, small, {{bytes, -1}}});
      piece = &segments_.back().pieces[0];
    }
    for (Segment& segment : segments_) {
      for (std::size_t i = 0; i < segment.pieces.size(); ++i) {
        if (&segment.pieces[i] != piece) continue;
        const std::int64_t rest = piece->size - size;
        if (small ? rest >= 512 : rest > (1 << 20)) {
          segment.pieces[i].size = size;
          segment.pieces[i].name = name;
          segment.pieces.insert(segment.pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, {rest, -1});
        } else {
          segment.pieces[i].name = name;
        }
        return true;
      }
    }
    return false;
  }

  void free(int name) {
    for (Segment& segment : segments_) {
      std::vector<Piece> merged;
      for (Piece piece : segment.pieces) {
        if (piece.name == name) piece.name = -1;
        if (piece.name < 0 && !merged.empty() && merged.back().name < 0) {
          merged.back().size += piece.size;
        } else {
          merged.push_back(piece);
        }
      }
      segment.pieces = merged;
    }
  }

  [[nodiscard]] std::int64_t reserved() const { return sum([](const Piece&) { return true; }); }
  [[nodiscard]] std::int64_t allocated() const { return sum([](const Piece& p) { return p.name >= 0; }); }

 private:
  struct Piece {
    std::int64_t size;
    int name;  // -1: free
  };
  struct Segment {
    StreamId stream;
    bool small;
    std::vector<Piece> pieces;
  };

  // The smallest that is large enough; the first in address order among equals.
  Piece* best(std::int64_t size, StreamId stream, bool small) {
    Piece* found = nullptr;
    for (Segment& segment : segments_) {
      if (segment.stream != stream || segment.small != small) continue;
      for (Piece& piece : segment.pieces) {
        if (piece.name < 0 && piece.size >= size && (found == nullptr || piece.size < found->size)) found = &piece;
      }
    }
    return found;
  }

  template <class Accept>
  [[nodiscard]] std::int64_t sum(Accept accept) const {
    std::int64_t total = 0;
    for (const Segment& segment : segments_) {
      for (const Piece& piece : segment.pieces) total += accept(piece) ? piece.size : 0;
    }
    return total;
  }

  std::int64_t capacity_;
  std::vector<Segment> segments_;
};

std::int64_t random_size(Rng& rng) {
  switch (rng.below(4)) {
    case 0: return static_cast<std::int64_t>(rng.below(2000));
    case 1: return static_cast<std::int64_t>(rng.below(2 << 20));
    case 2: return static_cast<std::int64_t>(rng.below(12 << 20));
    default: return static_cast<std::int64_t>(rng.below(64 << 20));
  }
}

}  // namespace

TEST_CASE("allocator: agrees with the naive one on random sequences") {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Rng rng{seed, "allocator"};
    const std::int64_t capacity = seed % 2 == 0 ? std::int64_t{1} << 40 : std::int64_t{300} << 20;
    CachingAllocator fast{Bytes{capacity}};
    NaiveAllocator naive{capacity};
    std::map<int, BlockId> live;
    for (int step = 0; step < 400; ++step) {
      CAPTURE(step);
      if (live.empty() || rng.below(5) < 3) {
        const std::int64_t size = random_size(rng);
        const StreamId stream{static_cast<std::size_t>(rng.below(2))};
        const auto block = fast.allocate(Bytes{size}, stream);
        REQUIRE(naive.allocate(step, size, stream) == block.has_value());
        if (block) live.emplace(step, *block);
        refused += block ? 0 : 1;
      } else {
        const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(rng.below(live.size())));
        fast.free(victim->second);
        naive.free(victim->first);
        live.erase(victim);
      }
      REQUIRE(fast.allocated().count() == naive.allocated());
      REQUIRE(fast.reserved().count() == naive.reserved());
      REQUIRE(fast.reserved() <= fast.reserved_peak());
    }
    for (const auto& [name, block] : live) fast.free(block);
    CHECK(fast.allocated() == Bytes{0});
  }
  CHECK(refused > 100);
}

TEST_CASE("memory timeline: every sample and the peak agree with a recount") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    const Plan plan = test::random_plan(seed);
    for (const Program& program : plan.programs) {
      const MemoryTimeline timeline = memory_timeline(program, {.samples = true, .largest = 1000});
      Bytes peak;
      for (const MemorySample& sample : timeline.samples) {
        std::vector<bool> live(program.buffers.size());
        for (std::size_t i = 0; i <= sample.instruction; ++i) {
          if (const auto* a = std::get_if<Alloc>(&program.instructions[i].body)) live[a->buffer.index()] = true;
          if (const auto* f = std::get_if<Free>(&program.instructions[i].body)) live[f->buffer.index()] = false;
        }
        Bytes total;
        Bytes sum;
        for (std::size_t b = 0; b < live.size(); ++b) {
          if (live[b] && program.buffers[b].memory == Memory::kDevice) total += CachingAllocator::rounded(program.buffers[b].size);
        }
        for (const Bytes bytes : sample.by_category) sum += bytes;
        REQUIRE(sample.live == total);
        REQUIRE(sum == total);
        peak = std::max(peak, total);
      }
      REQUIRE(timeline.peak == peak);
      Bytes named;
      for (const LiveBuffers& entry : timeline.largest) named += entry.total();
      CHECK(named == peak);
      CHECK(timeline.reserved_peak >= peak);
    }
  }
}

TEST_SUITE_END();
