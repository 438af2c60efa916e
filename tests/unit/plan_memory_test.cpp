#include <doctest/doctest.h>

#include "sim/plan/builder.hpp"
#include "sim/plan/caching_allocator.hpp"
#include "sim/plan/memory_timeline.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("unit");

namespace {
const StreamId kMain{std::size_t{0}};
const StreamId kSide{std::size_t{1}};
}  // namespace

TEST_CASE("allocator: requests round up to 512 bytes, at least one block") {
  CHECK(CachingAllocator::rounded(0_B) == 512_B);
  CHECK(CachingAllocator::rounded(1_B) == 512_B);
  CHECK(CachingAllocator::rounded(512_B) == 512_B);
  CHECK(CachingAllocator::rounded(513_B) == 1024_B);
}

// 1 MiB is the last small size (2 MiB segment); then 20 MiB segments up to 10 MiB; 10 MiB and above
// get their own size rounded up to 2 MiB: 11 MiB -> 12 MiB.
TEST_CASE("allocator: segment sizes") {
  const auto reserved = [](Bytes request) {
    CachingAllocator a;
    CHECK(a.allocate(request, kMain).has_value());
    return a.reserved();
  };
  CHECK(reserved(1_B) == 2_MiB);
  CHECK(reserved(1_MiB) == 2_MiB);
  CHECK(reserved(1_MiB + 1_B) == 20_MiB);
  CHECK(reserved(10_MiB - 512_B) == 20_MiB);
  CHECK(reserved(10_MiB) == 10_MiB);
  CHECK(reserved(11_MiB) == 12_MiB);
}

// 20 MiB segment: 4 MiB taken, the 16 MiB rest serves three more of 4 MiB and then 4 MiB exactly.
TEST_CASE("allocator: a segment is split until it is used up") {
  CachingAllocator a;
  for (int i = 0; i < 5; ++i) CHECK(a.allocate(4_MiB, kMain).has_value());
  CHECK(a.reserved() == 20_MiB);
  CHECK(a.allocated() == 20_MiB);
  CHECK(a.allocate(4_MiB, kMain).has_value());
  CHECK(a.reserved() == 40_MiB);
}

// Holes of 12 and 16 MiB; a request for 11 MiB takes the 12 MiB one: the rest (1 MiB) is not more
// than 1 MiB, so it is not split off and the whole block counts as allocated.
TEST_CASE("allocator: best fit, and a rest of 1 MiB stays with its block") {
  CachingAllocator a;
  const auto large = a.allocate(16_MiB, kMain);
  const auto close = a.allocate(12_MiB, kMain);
  a.free(*large);
  a.free(*close);
  CHECK(a.allocate(11_MiB, kMain) == close);
  CHECK(a.reserved() == 28_MiB);
  CHECK(a.allocated() == 12_MiB);
}

// Blocks belong to the stream that allocated them: the side stream cannot take the main one's.
TEST_CASE("allocator: another stream does not reuse a free block") {
  CachingAllocator a;
  a.free(*a.allocate(32_MiB, kMain));
  CHECK(a.allocate(32_MiB, kSide).has_value());
  CHECK(a.reserved() == 64_MiB);
}

// The neighbours of a hole merge with it: three freed 4 MiB blocks and the 8 MiB rest hold 18 MiB.
TEST_CASE("allocator: freed neighbours merge") {
  CachingAllocator a;
  const auto x = a.allocate(4_MiB, kMain);
  const auto y = a.allocate(4_MiB, kMain);
  const auto z = a.allocate(4_MiB, kMain);
  a.free(*x);
  a.free(*z);
  a.free(*y);
  CHECK(a.allocated() == 0_B);
  CHECK(a.allocate(18_MiB, kMain).has_value());
  CHECK(a.reserved() == 20_MiB);
}

// 40 MiB of capacity: the cached 30 MiB segment is given back before 32 MiB is refused.
TEST_CASE("allocator: wholly free segments are returned under pressure") {
  CachingAllocator a{40_MiB};
  a.free(*a.allocate(30_MiB, kMain));
  CHECK(a.allocate(32_MiB, kMain).has_value());
  CHECK(a.reserved() == 32_MiB);
  CHECK(a.reserved_peak() == 32_MiB);
  CHECK_FALSE(a.allocate(10_MiB, kMain).has_value());
}

// weights 100 MiB for good; activations 30 + 30 MiB, the first freed before a 50 MiB workspace:
// live 100, 130, 160, 130, 180 (peak), 130, 100.
TEST_CASE("memory timeline: peak, categories and what is live there") {
  ProgramBuilder b{"stage 0"};
  const StreamId s = b.stream(StreamKind::kCompute, "compute");
  b.alloc(s, "weights", 100_MiB, Category::kParameters);
  const BufferId x = b.alloc(s, "act", 30_MiB, Category::kActivations);
  const BufferId y = b.alloc(s, "act", 30_MiB, Category::kActivations);
  b.free(s, x);
  const BufferId w = b.alloc(s, "logits", 50_MiB, Category::kWorkspace);
  b.alloc(s, "staging", 7_MiB, Category::kCommunication, Memory::kPinnedHost);
  b.free(s, w);
  b.free(s, y);
  const Program p = std::move(b).finish();

  const MemoryTimeline t = memory_timeline(p, {.samples = true});
  CHECK(t.peak == 180_MiB);
  CHECK(t.instruction == 4);
  CHECK(p.labels[t.label->index()] == "logits");
  CHECK(t.at_peak[static_cast<std::size_t>(Category::kActivations)] == 30_MiB);
  CHECK(t.category_peak[static_cast<std::size_t>(Category::kActivations)] == 60_MiB);
  CHECK(t.at_end == 100_MiB);
  REQUIRE(t.samples.size() == 7);
  CHECK(t.samples[2].live == 160_MiB);
  CHECK(t.samples.back().live == 100_MiB);
  REQUIRE(t.largest.size() == 3);
  CHECK(p.labels[t.largest[0].label.index()] == "weights");
  CHECK(t.largest[2].count == 1);
  // 100 + 30 + 30 segments; 50 MiB does not fit the 30 MiB hole: 210 MiB reserved for 180 live.
  CHECK(t.reserved_peak == 210_MiB);
  // Segments that grow give the hole's pages to it: as much as is live.
  CHECK(memory_timeline(p, {.expandable_segments = true}).reserved_peak == 180_MiB);

  const MemoryTimeline host = memory_timeline(p, {.memory = Memory::kPinnedHost});
  CHECK(host.peak == 7_MiB);
  CHECK(host.reserved_peak == 0_B);
}

// 30 MiB on one stream, freed, then 20 MiB on another: pages stay with their stream.
TEST_CASE("memory timeline: expandable segments are each stream's own") {
  ProgramBuilder b{"stage 0"};
  const StreamId s = b.stream(StreamKind::kCompute, "compute");
  const StreamId other = b.stream(StreamKind::kCommunication, "dp");
  b.free(s, b.alloc(s, "act", 30_MiB, Category::kActivations));
  b.alloc(other, "bucket", 20_MiB, Category::kCommunication);
  const MemoryTimeline t = memory_timeline(std::move(b).finish(), {.expandable_segments = true});
  CHECK(t.peak == 30_MiB);
  CHECK(t.reserved_peak == 50_MiB);
}

TEST_CASE("memory timeline: out of memory names the allocation") {
  ProgramBuilder b{"stage 0"};
  const StreamId s = b.stream(StreamKind::kCompute, "compute");
  b.alloc(s, "weights", 100_MiB, Category::kParameters);
  b.alloc(s, "act", 30_MiB, Category::kActivations);
  const Program p = std::move(b).finish();
  CHECK(memory_timeline(p, {.capacity = 120_MiB}).out_of_memory == 1);
  CHECK_FALSE(memory_timeline(p, {.capacity = 130_MiB}).out_of_memory.has_value());
}

TEST_CASE("memory timeline: a program without buffers is empty") {
  const MemoryTimeline t = memory_timeline(Program{});
  CHECK(t.peak == 0_B);
  CHECK_FALSE(t.instruction.has_value());
}

TEST_SUITE_END();
