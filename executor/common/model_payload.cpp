#include "executor/common/model_payload.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {

ModelPayload::ModelPayload(const plan::Plan& plan, RankId rank, const std::string& file, Math& math, std::uint64_t seed, const TrainingSettings& settings)
    : program_{plan.program(rank)}, file_{file}, settings_{settings}, math_{math}, facts_{read_transformer(plan, rank, file)}, model_{facts_, program_, math_, seed},
      exchange_{plan, rank, file, model_.parameters(), math_, model_.values()}, square_sum_{math.floats(1)} {
  model_.attach(exchange_);
  for (const Parameter& p : model_.parameters().all()) partial_size_ += facts_.sequence_parallel && p.replicated ? p.size() : 0;
  if (partial_size_ > 0) partial_ = math_.floats(partial_size_);
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    const plan::Instruction& instruction = program_.instructions[i];
    if (instruction.stage == plan::Stage::kRecompute && instruction.layer && std::holds_alternative<plan::Compute>(instruction.body)) recomputed_[place_of(i).layer].insert(label(instruction));
    actions_.push_back(action_of(i));
  }
}

Place ModelPayload::place_of(std::size_t i) const {
  const plan::Instruction& instruction = program_.instructions[i];
  Place place{.layer = 0, .micro = instruction.micro_batch.value_or(0), .again = instruction.stage == plan::Stage::kRecompute, .instruction = i};
  if (instruction.layer) {
    const auto it = std::find(facts_.layers.begin(), facts_.layers.end(), *instruction.layer);
    if (it != facts_.layers.end()) place.layer = static_cast<std::size_t>(it - facts_.layers.begin());
  }
  return place;
}

void ModelPayload::refuse(const plan::Instruction& instruction) const {
  throw UserError(Diagnostic{.where = {file_, 0, 0}, .problem = std::string{plan::opcode_of(instruction.body)} + " '" + label(instruction) + "' is not trained for real",
                             .hint = "without --train the plan runs on random data"});
}

ModelPayload::Action ModelPayload::action_of(std::size_t index) const {
  const plan::Instruction& i = program_.instructions[index];
  Action action{.at = place_of(index)};
  const std::string& name = label(i);
  if (std::holds_alternative<plan::Compute>(i.body)) {
    if (name == "optimizer.norm") {
      action.kind = Kind::kGradientNorm;
    } else if (name == "optimizer.update") {
      action.kind = Kind::kUpdate;
    } else if (const auto run = Transformer::operator_of(name)) {
      action.kind = Kind::kOperator;
      action.run = *run;
    } else {
      refuse(i);
    }
    return action;
  }
  if (std::holds_alternative<plan::Collective>(i.body)) {
    if (name == "optimizer.norm") {
      action.kind = Kind::kNormSum;
      return action;
    }
    if (exchange_.handles(index)) action.kind = Kind::kReplicas;
    if (name == "gradient.partial" && partial_size_ > 0) action.kind = Kind::kPartialGradients;
    // Shards of the two copies of a table do not lie in the same places.
    if (name == "gradient.tied_embedding" && exchange_.sums_are_whole()) action.kind = Kind::kTiedGradient;
    if (action.kind != Kind::kNothing) return action;
  }
  if (std::holds_alternative<plan::Collective>(i.body) || std::holds_alternative<plan::Send>(i.body) || std::holds_alternative<plan::Recv>(i.body)) {
    const auto tensor = Transformer::tensor_of(name);
    if (!tensor) refuse(i);
    action.kind = name == "head.loss.max" ? Kind::kMost : Kind::kTensor;
    action.tensor = *tensor;
    return action;
  }
  if (std::holds_alternative<plan::Copy>(i.body) || std::holds_alternative<plan::HostCompute>(i.body)) refuse(i);
  return action;
}

void ModelPayload::begin_step() { model_.begin_step(); }

void ModelPayload::compute(std::size_t i) {
  use_stream(i);
  const Action& action = actions_[i];
  switch (action.kind) {
    case Kind::kOperator: {
      (model_.*action.run)(action.at);
      if (action.at.again || label(program_.instructions[i]) != "layer.residual2") return;
      if (const auto it = recomputed_.find(action.at.layer); it != recomputed_.end()) {
        for (const std::string& name : it->second) model_.forget(name, action.at);
      }
      return;
    }
    case Kind::kGradientNorm: {
      math_.fill(square_sum_, 1, 0.0F);
      model_.add_squares(square_sum_);
      return;
    }
    case Kind::kUpdate: {
      float squares = 0.0F;
      math_.download(square_sum_, {&squares, 1});
      const float norm = std::sqrt(squares);
      const kernels::AdamStep step = kernels::adam_step(settings_.adam, ++updates_, norm > settings_.clip ? settings_.clip / norm : 1.0F);
      model_.update(step);
      return;
    }
    default: SIM_CHECK(false, i);
  }
}

// Into one buffer, and back.
void ModelPayload::exchange_partial_gradients(bool out) {
  float* at = partial_;
  for (const Parameter& p : model_.parameters().all()) {
    if (!p.replicated) continue;
    float* const gradient = exchange_.sums() + p.offset;
    out ? math_.copy(gradient, at, p.size()) : math_.copy(at, gradient, p.size());
    at += p.size();
  }
}

std::span<std::byte> ModelPayload::collective(std::size_t i) {
  use_stream(i);
  const Action& action = actions_[i];
  switch (action.kind) {
    case Kind::kNormSum: return std::as_writable_bytes(std::span{square_sum_, 1});
    case Kind::kReplicas: return exchange_.buffer(i);
    case Kind::kPartialGradients:
      exchange_partial_gradients(true);
      return std::as_writable_bytes(std::span{partial_, partial_size_});
    case Kind::kTiedGradient: {
      const Parameter& table = model_.parameters().get(facts_.first ? "embedding" : "logits", std::nullopt);
      return std::as_writable_bytes(std::span{exchange_.sums() + table.offset, table.size()});
    }
    default: {
      const auto bytes = static_cast<std::size_t>(std::get<plan::Collective>(program_.instructions[i].body).bytes.count());
      return std::as_writable_bytes(std::span{(model_.*action.tensor)(action.at), bytes / sizeof(float)});
    }
  }
}

std::span<std::byte> ModelPayload::landing(std::size_t i) { refuse(program_.instructions[i]); }

void ModelPayload::collected(std::size_t i) {
  use_stream(i);
  const Action& action = actions_[i];
  if (action.kind == Kind::kMost) model_.most_reduced(action.at);
  if (action.kind == Kind::kReplicas) exchange_.collected(i);
  if (action.kind == Kind::kPartialGradients) exchange_partial_gradients(false);
}

void ModelPayload::freed(std::size_t i) {
  if (!exchange_.handles(i)) return;
  use_stream(i);
  exchange_.freed(i);
}

Reduction ModelPayload::reduction(std::size_t i) const { return actions_[i].kind == Kind::kMost ? Reduction::kMost : Reduction::kSum; }

std::span<const std::byte> ModelPayload::outgoing(std::size_t i) { return message(i); }
std::span<std::byte> ModelPayload::incoming(std::size_t i) { return message(i); }

// One's own rows of a hidden state.
std::span<std::byte> ModelPayload::message(std::size_t i) {
  const Action& action = actions_[i];
  float* const tensor = (model_.*action.tensor)(action.at);
  return std::as_writable_bytes(std::span{tensor + facts_.first_own_row() * facts_.hidden, static_cast<std::size_t>(facts_.own_rows() * facts_.hidden)});
}

void ModelPayload::copy(std::size_t i) { refuse(program_.instructions[i]); }
void ModelPayload::host_compute(std::size_t i) { refuse(program_.instructions[i]); }
void ModelPayload::load_batch(std::size_t) {}  // tokens are drawn at the begin of a step

std::vector<std::pair<std::string, double>> ModelPayload::values() const {
  if (!facts_.last || facts_.tp_rank > 0) return {};
  return {{"loss", model_.loss()}};
}

}  // namespace stepcast::executor
