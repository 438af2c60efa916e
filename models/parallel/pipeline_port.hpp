// models/parallel/pipeline_port.hpp — activations in from the previous part of the model and out to the
// next, and gradients the other way, as the message plan (messages.hpp) says.
//
// Blocking: receives go on pp.recv, sends on pp.send. The receive for the next action is posted when
//   this action's work has been issued, together with this action's send, and starts when that work is
//   done. Only the next send's tensor waits until the one before is gone. So a stage runs at most one
//   message ahead of its receiver, and since sends and receives have a stream each, a send never stands
//   behind a receive: the steady state of 1F1B (both neighbours send at once) passes with rendezvous
//   sends as well as with buffered ones.
// Asynchronous: a stream for each neighbour and direction, pp.send.next to pp.recv.prev.
// A received activation becomes the first block's saved input: its buffer is handed over, not added.
// A stage that hands over to itself (the turn of a V) keeps the tensor until its next chunk takes it.
#pragma once

#include <map>
#include <optional>

#include "models/parallel/emitter.hpp"
#include "models/parallel/messages.hpp"
#include "models/parallel/stage_model.hpp"

namespace stepcast::parallel {

class PipelinePort {
 public:
  PipelinePort(const StageModel& model, const MessagePlan& plan, Emitter& emitter);

  void begin_step();
  void begin_action(std::size_t action);
  // Compute waits for what the pass needs.
  // True if there was a message to wait for.
  bool await(const Pass& pass);
  void free_received(const Pass& pass);
  // True if it sent something.
  bool end_action(std::size_t action, const Action& what);
  void end_step();

 private:
  using Key = std::tuple<bool, std::uint8_t, std::uint16_t>;  // forward, chunk, micro-batch
  struct Received {
    std::optional<plan::BufferId> buffer;
    std::optional<plan::EventId> arrival;
  };
  struct Sent {
    std::optional<plan::BufferId> buffer;
    plan::EventId departure;
  };
  static Key key(const Pass& pass) { return {is_forward(pass), pass.chunk, pass.micro_batch}; }
  plan::StreamId stream_with(std::int32_t other, bool send);
  void post(std::uint32_t message, bool first_of_step);
  void send(std::uint32_t message);
  void hand_over(const Pass& pass);
  void take_back(std::uint32_t message);

  const StageModel& model_;
  const MessagePlan& plan_;
  const StageMessages& mine_;
  Emitter& emitter_;
  std::map<Key, Received> received_;
  std::map<std::uint32_t, Sent> sent_;  // by message
};

}  // namespace stepcast::parallel
