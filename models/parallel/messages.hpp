// models/parallel/messages.hpp — which messages a schedule sends between its stages, and where each
// stage's program posts a receive, sends, and takes a sent tensor's memory back.
//
// Model    Two stages exchange messages on one channel a direction; like NCCL's, its messages match in
//          order. The receiver posts in the sender's order: the receive that an action needs goes out
//          `ahead` actions early, those before it on the channel no later.
//          Blocking (GPipe, 1F1B): ahead = 0, and a tensor is taken back before the next send, as
//          Megatron-LM's send-forward-receive-backward pairs wait for what they started.
//          Asynchronous (all others): ahead = 1, a transfer has one pass to hide behind; a tensor is
//          taken back one action after its message has passed on the timeline of unit costs.
// Deadlock All these waits point forward on that timeline and every action takes time, so they can form
//          no circle, whatever the real costs are, as long as each channel has a stream of its own.
//          Blocking schedules have two neighbours and one message on the way to each: checked by
//          property/schedule_property_test.
// Source   Megatron-LM schedules.py, p2p_communication.py; zero-bubble-pipeline-parallelism (sends are
//          waited for after the step, receives are posted by simulated time)
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/timeline.hpp"

namespace stepcast::parallel {

struct Message {
  bool forward = true;  // activation; else gradient
  ChunkPlace from;
  ChunkPlace to;
  std::uint16_t micro_batch = 0;
};

// Of one stage; messages by index into MessagePlan::messages.
struct StageMessages {
  std::vector<std::uint32_t> posted_first;              // before the first action
  std::vector<std::vector<std::uint32_t>> awaited;      // [action]
  std::vector<std::vector<std::uint32_t>> sent;         // [action] after it
  std::vector<std::vector<std::uint32_t>> posted;       // [action] after it and what it sends
  std::vector<std::vector<std::uint32_t>> taken_back;   // [action] before it; the rest at the end of the step
};

struct MessagePlan {
  bool blocking = false;
  std::vector<Message> messages;
  std::vector<StageMessages> stages;
};

// Requires: `timeline` is that of the lists and has no deadlock.
MessagePlan plan_messages(const std::vector<ActionList>& lists, const Placement& placement, const Timeline& timeline,
                          bool blocking);

}  // namespace stepcast::parallel
