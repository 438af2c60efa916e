// models/parallel/pipeline_port.hpp — activations in from the previous stage and out to the next, and
// gradients the other way.
//
// Receives go on pp.recv and are posted as Megatron-LM posts them: the one for the next action when
// this action's work has been issued, together with this action's send, and it starts when that work
// is done. Compute waits for the receive. Sends go on pp.send behind the work that makes the tensor,
// and compute runs on; only the next send's tensor waits until the one before is gone (Megatron-LM
// waits at once). So a stage runs at most one message ahead of its receiver, and since sends and
// receives have a stream each, a send never stands behind a receive: the steady state of 1F1B (both
// neighbours send at once) passes with rendezvous sends as well as with buffered ones.
// A received activation becomes the first block's saved input: its buffer is handed over, not added.
#pragma once

#include <optional>

#include "models/parallel/emitter.hpp"
#include "models/parallel/schedule.hpp"
#include "models/parallel/stage_model.hpp"

namespace stepcast::parallel {

class PipelinePort {
 public:
  PipelinePort(const StageModel& model, Emitter& emitter);

  // Posts what `action` needs from a neighbour, after all that compute has been given so far.
  void post_receive(const Action& action, bool first_of_step);
  // Compute waits for it.
  void await_receive();
  void free_received();
  void send(const Action& action);
  void end_step();

 private:
  [[nodiscard]] bool receives(const Action& action) const;
  [[nodiscard]] bool sends(const Action& action) const;
  void free_sent();

  const StageModel& model_;
  Emitter& emitter_;
  std::optional<plan::StreamId> send_stream_;
  std::optional<plan::StreamId> recv_stream_;
  std::optional<plan::EventId> arrival_;
  std::optional<plan::BufferId> received_;
  std::optional<plan::BufferId> sent_;
  std::optional<plan::EventId> departure_;
};

}  // namespace stepcast::parallel
