#include "models/parallel/pipeline_port.hpp"

namespace stepcast::parallel {

using plan::Category;
using plan::StreamKind;

PipelinePort::PipelinePort(const StageModel& model, Emitter& emitter) : model_{model}, emitter_{emitter} {
  if (model.stages == 1) return;
  send_stream_ = emitter.builder.stream(StreamKind::kCommunication, "pp.send");
  recv_stream_ = emitter.builder.stream(StreamKind::kCommunication, "pp.recv");
}

bool PipelinePort::receives(const Action& action) const {
  return action.direction == Direction::kForward ? !model_.first() : !model_.last();
}

bool PipelinePort::sends(const Action& action) const {
  return action.direction == Direction::kForward ? !model_.last() : !model_.first();
}

void PipelinePort::post_receive(const Action& action, bool first_of_step) {
  if (!receives(action)) return;
  const bool forward = action.direction == Direction::kForward;
  plan::ProgramBuilder& builder = emitter_.builder;
  builder.context({forward ? plan::Stage::kForward : plan::Stage::kBackward, {}, action.micro_batch});
  if (!first_of_step) builder.order(emitter_.compute, *recv_stream_);
  const char* label = forward ? "pipeline.activation" : "pipeline.gradient";
  received_ = emitter_.acquire(*recv_stream_, label, model_.boundary, Category::kCommunication);
  builder.recv(*recv_stream_, label, model_.stage + (forward ? -1 : 1), model_.boundary);
  arrival_ = builder.record(*recv_stream_);
}

void PipelinePort::await_receive() {
  if (!arrival_) return;
  emitter_.builder.wait(emitter_.compute, *arrival_);
  arrival_.reset();
}

void PipelinePort::free_received() {
  emitter_.release(emitter_.compute, received_);
  received_.reset();
}

void PipelinePort::send(const Action& action) {
  if (!sends(action)) return;
  const bool forward = action.direction == Direction::kForward;
  plan::ProgramBuilder& builder = emitter_.builder;
  builder.context({forward ? plan::Stage::kForward : plan::Stage::kBackward, {}, action.micro_batch});
  free_sent();
  const char* label = forward ? "pipeline.activation.out" : "pipeline.gradient.out";
  sent_ = emitter_.acquire(emitter_.compute, label, model_.boundary, Category::kCommunication);
  builder.order(emitter_.compute, *send_stream_);
  builder.send(*send_stream_, label, model_.stage + (forward ? 1 : -1), model_.boundary);
  departure_ = builder.record(*send_stream_);
}

void PipelinePort::end_step() { free_sent(); }

void PipelinePort::free_sent() {
  if (!sent_) return;
  emitter_.builder.wait(emitter_.compute, *departure_);
  emitter_.release(emitter_.compute, sent_);
  sent_.reset();
}

}  // namespace stepcast::parallel
