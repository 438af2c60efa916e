#include "executor/cpu/collectives.hpp"

#include <algorithm>

#include "executor/cpu/reduction.hpp"
#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

using Pieces = std::vector<std::unique_ptr<Transfer>>;

template <class Byte>
std::span<Byte> sub(std::span<Byte> bytes, Part part) {
  return bytes.subspan(part.begin, part.end - part.begin);
}

// In pieces; all are on their way when it returns.
Pieces send_pieces(const Ring& ring, RankId to, std::span<const std::byte> bytes) {
  Pieces pieces;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    pieces.push_back(ring.messenger.send(to, ring.channel, bytes.subspan(at, std::min(kPiece, bytes.size() - at))));
  }
  return pieces;
}

void wait_all(const Pieces& pieces) {
  for (const auto& piece : pieces) piece->wait();
}

RankId next(const Ring& ring) { return ring.members[(ring.slot + 1) % ring.size()]; }
RankId before(const Ring& ring) { return ring.members[(ring.slot + ring.size() - 1) % ring.size()]; }

// All pieces that come, each where it belongs. Posted before anything is sent: a sender is told that it may begin by a message that would
// otherwise wait behind what its receiver sends.
Pieces receive_pieces(const Ring& ring, RankId from, std::span<std::byte> bytes) {
  Pieces pieces;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    pieces.push_back(ring.messenger.receive(from, ring.channel, bytes.subspan(at, std::min(kPiece, bytes.size() - at))));
  }
  return pieces;
}

// Sends one part on and adds what comes to another, piece by piece.
void pass_and_add(const Ring& ring, plan::Dtype dtype, std::span<const std::byte> outgoing, std::span<std::byte> sum) {
  if (ring.scratch.size() < sum.size()) ring.scratch.resize(sum.size());
  const std::span<std::byte> scratch = std::span{ring.scratch}.first(sum.size());
  const Pieces coming = receive_pieces(ring, before(ring), scratch);
  const Pieces sent = send_pieces(ring, next(ring), outgoing);
  for (std::size_t i = 0; i < coming.size(); ++i) {
    const Part piece{i * kPiece, std::min((i + 1) * kPiece, sum.size())};
    coming[i]->wait();
    reduce_into(ring.reduction, dtype, sub(sum, piece), sub(scratch, piece));
  }
  wait_all(sent);
}

void exchange(const Ring& ring, RankId to, std::span<const std::byte> outgoing, RankId from, std::span<std::byte> incoming) {
  const Pieces coming = receive_pieces(ring, from, incoming);
  const Pieces sent = send_pieces(ring, to, outgoing);
  wait_all(coming);
  wait_all(sent);
}

std::size_t element_size(plan::Dtype dtype) { return static_cast<std::size_t>(plan::element_bytes(dtype)); }

}  // namespace

void reduce_scatter(const Ring& ring, plan::Dtype dtype, std::span<std::byte> buffer) {
  const std::size_t n = ring.size();
  const auto part = [&](std::size_t slot) { return sub(buffer, part_of(buffer.size(), slot % n, n, element_size(dtype))); };
  // A part starts behind its owner and arrives there summed after n - 1 steps.
  for (std::size_t step = 1; step < n; ++step) pass_and_add(ring, dtype, part(ring.slot + n - step), part(ring.slot + 2 * n - step - 1));
}

void all_gather(const Ring& ring, plan::Dtype dtype, std::span<std::byte> buffer) {
  const std::size_t n = ring.size();
  const auto part = [&](std::size_t slot) { return sub(buffer, part_of(buffer.size(), slot % n, n, element_size(dtype))); };
  for (std::size_t step = 0; step + 1 < n; ++step) {
    exchange(ring, next(ring), part(ring.slot + n - step), before(ring), part(ring.slot + 2 * n - step - 1));
  }
}

void all_reduce(const Ring& ring, plan::Dtype dtype, std::span<std::byte> buffer) {
  reduce_scatter(ring, dtype, buffer);
  all_gather(ring, dtype, buffer);
}

void broadcast(const Ring& ring, std::span<std::byte> buffer) {
  Pieces sent;
  for (std::size_t at = 0; at < buffer.size() && ring.size() > 1; at += kPiece) {
    const std::span<std::byte> piece = buffer.subspan(at, std::min(kPiece, buffer.size() - at));
    if (ring.slot > 0) ring.messenger.receive(before(ring), ring.channel, piece)->wait();
    if (ring.slot + 1 < ring.size()) sent.push_back(ring.messenger.send(next(ring), ring.channel, piece));
  }
  wait_all(sent);
}

void all_to_all(const Ring& ring, std::span<const std::span<const std::byte>> outgoing, std::span<const std::span<std::byte>> incoming) {
  const std::size_t n = ring.size();
  SIM_CHECK(outgoing.size() == n && incoming.size() == n, outgoing.size(), incoming.size(), n);
  SIM_CHECK(outgoing[ring.slot].size() == incoming[ring.slot].size(), ring.slot);
  std::copy(outgoing[ring.slot].begin(), outgoing[ring.slot].end(), incoming[ring.slot].begin());
  for (std::size_t step = 1; step < n; ++step) {
    const std::size_t to = (ring.slot + step) % n;
    const std::size_t from = (ring.slot + n - step) % n;
    exchange(ring, ring.members[to], outgoing[to], ring.members[from], incoming[from]);
  }
}

void send_receive(const Ring& ring, std::span<const std::byte> outgoing, std::span<std::byte> incoming) {
  exchange(ring, next(ring), outgoing, before(ring), incoming);
}

}  // namespace stepcast::executor
