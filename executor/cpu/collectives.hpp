// executor/cpu/collectives.hpp — collectives as rings of messages: one algorithm each, the one that the simulator's ring is.
//
//   all-reduce       n-1 steps that sum parts on their way around the ring, then n-1 that pass the sums on; part = bytes / n
//   reduce-scatter   the first half; all-gather: the second half
//   broadcast        the buffer passed on from slot 0, piece by piece, to the next slot
//   all-to-all       n-1 exchanges: with the slots 1, 2, ... further and before
//   send-receive     to the next slot, from the one before
// Parts travel in pieces of kPiece bytes, so that a sum runs while the next piece is under way.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "executor/cpu/messenger.hpp"
#include "executor/common/part.hpp"
#include "executor/common/payload.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::executor {

inline constexpr std::size_t kPiece = std::size_t{256} << 10U;

// One worker's view of a collective.
struct Ring {
  Messenger& messenger;
  Channel channel;
  std::vector<RankId> members;  // in coordinate order
  std::size_t slot = 0;         // this worker among them
  std::vector<std::byte>& scratch;  // grown as needed
  Reduction reduction = Reduction::kSum;

  [[nodiscard]] std::size_t size() const { return members.size(); }
};

// `buffer` holds all of it on every worker, as nccl-tests counts; in place.
void all_reduce(const Ring& ring, plan::Dtype dtype, std::span<std::byte> buffer);
void reduce_scatter(const Ring& ring, plan::Dtype dtype, std::span<std::byte> buffer);  // leaves one's own part summed
void all_gather(const Ring& ring, plan::Dtype dtype, std::span<std::byte> buffer);      // starts from one's own part
void broadcast(const Ring& ring, std::span<std::byte> buffer);                          // from slot 0
// outgoing[j] goes to slot j, incoming[j] comes from there; one's own is copied.
void all_to_all(const Ring& ring, std::span<const std::span<const std::byte>> outgoing, std::span<const std::span<std::byte>> incoming);
void send_receive(const Ring& ring, std::span<const std::byte> outgoing, std::span<std::byte> incoming);

}  // namespace stepcast::executor
