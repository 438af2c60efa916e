// Collectives of the CPU backend against their definitions, on workers that are threads.
#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "executor/cpu/collectives.hpp"
#include "executor/cpu/reduction.hpp"
#include "tests/support/local_workers.hpp"

using namespace stepcast;
using namespace stepcast::executor;

TEST_SUITE_BEGIN("unit");

namespace {

using Floats = std::vector<float>;

std::span<std::byte> bytes_of(Floats& values) { return std::as_writable_bytes(std::span{values}); }

// Worker r holds r * 1000 + i at element i.
Floats values_of(std::size_t worker, std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(worker * 1000 + i);
  return values;
}

// Runs `call` on n workers and hands over each one's buffer.
std::vector<Floats> run(std::size_t n, std::size_t count, const std::function<void(const Ring&, Floats&)>& call) {
  std::vector<Floats> buffers(n);
  test::for_workers(static_cast<std::int32_t>(n), [&](RankId rank, Messenger& messenger) {
    std::vector<RankId> members;
    for (std::uint32_t m = 0; m < n; ++m) members.emplace_back(m);
    std::vector<std::byte> scratch;
    Floats& buffer = buffers[rank.index()];
    buffer = values_of(rank.index(), count);
    call(Ring{messenger, {1, 0}, members, rank.index(), scratch}, buffer);
  });
  return buffers;
}

// Sum over workers of element i: n i + 1000 n (n-1) / 2.
float sum_at(std::size_t n, std::size_t i) { return static_cast<float>(n * i + 500 * n * (n - 1)); }

}  // namespace

// Counts that workers do not divide, fewer elements than workers, and more than a piece (65,536 elements).
TEST_CASE("executor: all-reduce sums on every worker") {
  for (const std::size_t n : {2U, 3U, 5U}) {
    for (const std::size_t count : {1U, 3U, 1000U, 200'001U}) {
      CAPTURE(n);
      CAPTURE(count);
      for (const Floats& buffer : run(n, count, [](const Ring& ring, Floats& b) { all_reduce(ring, plan::Dtype::kFp32, bytes_of(b)); })) {
        bool equal = true;
        for (std::size_t i = 0; i < count; ++i) equal = equal && buffer[i] == doctest::Approx(sum_at(n, i)).epsilon(1e-6);
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("executor: reduce-scatter leaves a worker its part of the sum, all-gather starts from it") {
  constexpr std::size_t kWorkers = 4;
  constexpr std::size_t kCount = 1003;
  const auto buffers = run(kWorkers, kCount, [](const Ring& ring, Floats& b) { reduce_scatter(ring, plan::Dtype::kFp32, bytes_of(b)); });
  for (std::size_t r = 0; r < kWorkers; ++r) {
    const Part part = part_of(kCount * 4, r, kWorkers, 4);
    for (std::size_t i = part.begin / 4; i < part.end / 4; ++i) CHECK(buffers[r][i] == sum_at(kWorkers, i));
  }
  for (const Floats& buffer : run(kWorkers, kCount, [](const Ring& ring, Floats& b) { all_gather(ring, plan::Dtype::kFp32, bytes_of(b)); })) {
    for (std::size_t r = 0; r < kWorkers; ++r) {
      const Part part = part_of(kCount * 4, r, kWorkers, 4);
      for (std::size_t i = part.begin / 4; i < part.end / 4; ++i) CHECK(buffer[i] == static_cast<float>(r * 1000 + i));
    }
  }
}

TEST_CASE("executor: broadcast, all-to-all and send-receive put bytes where they belong") {
  constexpr std::size_t kWorkers = 3;
  for (const Floats& buffer : run(kWorkers, 150'000, [](const Ring& ring, Floats& b) { broadcast(ring, bytes_of(b)); })) {
    CHECK(buffer == values_of(0, 150'000));
  }
  const auto exchanged = run(kWorkers, 6, [](const Ring& ring, Floats& b) {
    Floats in(b.size());
    std::vector<std::span<const std::byte>> outgoing;
    std::vector<std::span<std::byte>> incoming;
    for (std::size_t j = 0; j < kWorkers; ++j) {
      outgoing.emplace_back(bytes_of(b).subspan(8 * j, 8));
      incoming.push_back(bytes_of(in).subspan(8 * j, 8));
    }
    all_to_all(ring, outgoing, incoming);
    b = in;
  });
  for (std::size_t r = 0; r < kWorkers; ++r) {
    for (std::size_t j = 0; j < kWorkers; ++j) CHECK(exchanged[r][2 * j] == static_cast<float>(j * 1000 + 2 * r));
  }
  const auto passed = run(kWorkers, 10, [](const Ring& ring, Floats& b) {
    Floats in(b.size());
    send_receive(ring, bytes_of(b), bytes_of(in));
    b = in;
  });
  for (std::size_t r = 0; r < kWorkers; ++r) CHECK(passed[r] == values_of((r + kWorkers - 1) % kWorkers, 10));
}

// bf16 has 8 bits: 256 + 1 stays 256; fp16 has 11.
TEST_CASE("executor: 16-bit sums are rounded as the format is") {
  const auto add = [](plan::Dtype dtype, std::uint16_t a, std::uint16_t b) {
    std::array<std::byte, 2> into{};
    std::array<std::byte, 2> from{};
    std::memcpy(into.data(), &a, 2);
    std::memcpy(from.data(), &b, 2);
    reduce_into(Reduction::kSum, dtype, into, from);
    std::uint16_t sum = 0;
    std::memcpy(&sum, into.data(), 2);
    return sum;
  };
  CHECK(add(plan::Dtype::kBf16, 0x4380, 0x3F80) == 0x4380);  // 256 + 1
  CHECK(add(plan::Dtype::kBf16, 0x3F80, 0x3F80) == 0x4000);  // 1 + 1
  CHECK(add(plan::Dtype::kFp16, 0x5C00, 0x3C00) == 0x5C04);  // 256 + 1
}
