#include "models/parallel/pipeline_port.hpp"

namespace stepcast::parallel {

using plan::Category;
using plan::StreamKind;

PipelinePort::PipelinePort(const StageModel& model, const MessagePlan& plan, Emitter& emitter)
    : model_{model}, plan_{plan}, mine_{plan.stages[static_cast<std::size_t>(model.stage)]}, emitter_{emitter} {
  if (model.placement.stages == 1 || !plan.blocking) return;
  emitter.builder.stream(StreamKind::kCommunication, "pp.send");
  emitter.builder.stream(StreamKind::kCommunication, "pp.recv");
}

plan::StreamId PipelinePort::stream_with(std::int32_t other, bool send) {
  std::string name = send ? "pp.send" : "pp.recv";
  if (!plan_.blocking) name += other == (model_.stage + 1) % model_.placement.stages ? ".next" : ".prev";
  return emitter_.builder.stream(StreamKind::kCommunication, name);
}

void PipelinePort::begin_step() {
  for (const std::uint32_t message : mine_.posted_first) post(message, true);
}

void PipelinePort::begin_action(std::size_t action) {
  for (const std::uint32_t message : mine_.taken_back[action]) take_back(message);
}

void PipelinePort::post(std::uint32_t id, bool first_of_step) {
  const Message& message = plan_.messages[id];
  plan::ProgramBuilder& builder = emitter_.builder;
  builder.context({message.forward ? plan::Stage::kForward : plan::Stage::kBackward, {}, message.micro_batch});
  const plan::StreamId stream = stream_with(message.from.stage, false);
  if (!first_of_step) builder.order(emitter_.compute, stream);
  const char* label = message.forward ? "pipeline.activation" : "pipeline.gradient";
  Received& received = received_[{message.forward, message.to.chunk, message.micro_batch}];
  received.buffer = emitter_.acquire(stream, label, model_.boundary, Category::kCommunication);
  builder.recv(stream, label, message.from.stage, model_.boundary);
  received.arrival = builder.record(stream);
}

bool PipelinePort::await(const Pass& pass) {
  const auto received = received_.find(key(pass));
  if (received == received_.end() || !received->second.arrival) return false;
  emitter_.builder.wait(emitter_.compute, *received->second.arrival);
  received->second.arrival.reset();
  return true;
}

void PipelinePort::free_received(const Pass& pass) {
  const auto received = received_.find(key(pass));
  if (received == received_.end()) return;
  emitter_.release(emitter_.compute, received->second.buffer);
  received_.erase(received);
}

bool PipelinePort::end_action(std::size_t action, const Action& what) {
  for (const std::uint32_t message : mine_.sent[action]) send(message);
  for (const Pass& pass : Passes{what}) hand_over(pass);
  for (const std::uint32_t message : mine_.posted[action]) post(message, false);
  return !mine_.sent[action].empty();
}

void PipelinePort::send(std::uint32_t id) {
  const Message& message = plan_.messages[id];
  plan::ProgramBuilder& builder = emitter_.builder;
  builder.context({message.forward ? plan::Stage::kForward : plan::Stage::kBackward, {}, message.micro_batch});
  if (plan_.blocking && !sent_.empty()) take_back(sent_.begin()->first);
  const char* label = message.forward ? "pipeline.activation.out" : "pipeline.gradient.out";
  const plan::StreamId stream = stream_with(message.to.stage, true);
  Sent sent;
  sent.buffer = emitter_.acquire(emitter_.compute, label, model_.boundary, Category::kCommunication);
  builder.order(emitter_.compute, stream);
  builder.send(stream, label, message.to.stage, model_.boundary);
  sent.departure = builder.record(stream);
  sent_[id] = sent;
}

// Nothing moves where the next part of the model is on this very stage.
void PipelinePort::hand_over(const Pass& pass) {
  if (pass.kind == ActionKind::kBackwardWeight) return;
  const ChunkPlace here{model_.stage, pass.chunk};
  const auto to = is_forward(pass) ? model_.placement.next(here) : model_.placement.previous(here);
  if (!to || to->stage != model_.stage) return;
  const char* label = is_forward(pass) ? "pipeline.activation" : "pipeline.gradient";
  received_[{is_forward(pass), to->chunk, pass.micro_batch}].buffer =
      emitter_.acquire(emitter_.compute, label, model_.boundary, Category::kCommunication);
}

void PipelinePort::end_step() {
  while (!sent_.empty()) take_back(sent_.begin()->first);
}

void PipelinePort::take_back(std::uint32_t message) {
  const auto sent = sent_.find(message);
  if (sent == sent_.end()) return;
  emitter_.builder.wait(emitter_.compute, sent->second.departure);
  emitter_.release(emitter_.compute, sent->second.buffer);
  sent_.erase(sent);
}

}  // namespace stepcast::parallel
