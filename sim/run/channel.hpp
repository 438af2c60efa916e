// sim/run/channel.hpp — messages from one worker to another: which of them may move, and when their senders and receivers
// may go on. It knows no clock: whoever moves the bytes tells when they have arrived.
//
// Model    Messages match in order and move one after another. With E the eager limit and B the buffers of the transport (6):
//            S <= E   moves when it is sent, else when it is sent and its receiver has asked for it;
//            received at  max(arrival, asked for), plus a copy if it was there first;
//            its sender goes on when it is received, or earlier, where all that was sent up to it and not yet received
//            is at most B: when the bytes have left (S <= E), or at once (they lie in the sender's buffers).
//          E = B = 0 is rendezvous: both sides wait for each other.
// Source   models/network/transport_cost.hpp, (6)
// Valid    plans that finish with rendezvous (sim/plan/check.hpp refuses others, whatever the transport): E and B only make
//          sides wait for less, so they finish with any
// Ignores  the part of a larger message that leaves with its request (Open MPI), or that is copied to the buffers while the
//          rest waits (NCCL); what buffers of early messages take of the receiver's memory
// Tests    unit/channel_test
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/network/link_network.hpp"
#include "sim/run/transport_use.hpp"

namespace stepcast::run {

class Channel {
 public:
  // A stream that may go on.
  struct End {
    std::uint32_t stream = 0;
    TimePoint at;
    TimePoint moving_since;  // before that the other side was not ready
    TimePoint shown_from;    // when both sides had reached the message, if they had
  };
  struct Outcome {
    std::vector<End> over;
    std::optional<TimePoint> moves;  // the first message that has not moved yet begins to
    Bytes bytes;                     // of it
  };

  explicit Channel(const network::Ahead& ahead) : ahead_{ahead} {}

  // Requires: the stream has no other message under way here. Times may lie ahead of each other's.
  void send(std::uint32_t stream, TimePoint time, Bytes bytes, Outcome& out);
  void receive(std::uint32_t stream, TimePoint time, Outcome& out);
  // The message that moved is there.
  void arrive(TimePoint now, Outcome& out);

 private:
  struct Message {
    Bytes bytes;
    TimePoint sent;
    std::optional<std::uint32_t> sender;  // while it waits
    std::optional<TimePoint> arrival{};
  };
  struct Asked {
    std::uint32_t stream = 0;
    TimePoint time;
  };
  [[nodiscard]] bool is_eager(const Message& m) const { return m.bytes <= ahead_.eager; }
  void settle(TimePoint now, Outcome& out);
  TimePoint deliver(Outcome& out);
  void release(TimePoint now, Outcome& out);
  void start(TimePoint now, Outcome& out);

  network::Ahead ahead_;
  std::vector<Message> messages_;  // sent, not received
  std::optional<Asked> asked_;
  bool moving_ = false;            // the first without an arrival
};

}  // namespace stepcast::run
