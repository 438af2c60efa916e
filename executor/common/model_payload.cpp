#include "executor/common/model_payload.hpp"

#include <algorithm>
#include <cmath>

#include "executor/common/part.hpp"
#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {

ModelPayload::ModelPayload(const plan::Plan& plan, RankId rank, const std::string& file, Math& math, std::uint64_t seed, const TrainingSettings& settings)
    : program_{plan.program(rank)}, file_{file}, settings_{settings}, math_{math}, facts_{read_transformer(plan, rank, file)}, model_{facts_, program_, math_, seed}, square_sum_{math.floats(1)} {
  for (const plan::Instruction& i : program_.instructions) {
    if (i.stage == plan::Stage::kRecompute && i.layer && std::holds_alternative<plan::Compute>(i.body)) recomputed_[place_of(i).layer].insert(label(i));
  }
  lay_buckets(plan, rank);
  std::size_t gradients = 0;
  std::size_t parameters = 0;
  for (const plan::Instruction& i : program_.instructions) {
    Action action = action_of(i);
    if (action.kind == Kind::kGradientBucket) action.bucket = gradients++;
    if (action.kind == Kind::kParameterBucket) action.bucket = parameters++;
    actions_.push_back(action);
  }
  if (gradients > buckets_.size() || parameters > buckets_.size()) {
    throw UserError(Diagnostic{.where = {file_, 0, 0}, .problem = "gradients or parameters are exchanged more than once a step, which is not trained for real",
                               .expected = "parallel.zero: 0 or 1", .hint = "without --train the plan runs on random data"});
  }
  // Parameters are gathered in the order of the forward pass, gradients reduced in that of the backward pass.
  for (Action& action : actions_) {
    if (action.kind == Kind::kParameterBucket) action.bucket = parameters - 1 - action.bucket;
  }
}

Place ModelPayload::place_of(const plan::Instruction& instruction) const {
  Place place{.layer = 0, .micro = instruction.micro_batch.value_or(0), .again = instruction.stage == plan::Stage::kRecompute};
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

ModelPayload::Action ModelPayload::action_of(const plan::Instruction& i) const {
  Action action{.at = place_of(i)};
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
    if (name == "gradient.bucket") action.kind = Kind::kGradientBucket;
    if (name == "parameter.bucket") action.kind = Kind::kParameterBucket;
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

// Buckets hold whole tensors; padding to shards is smaller than any of them.
void ModelPayload::lay_buckets(const plan::Plan& plan, RankId rank) {
  std::size_t next = 0;
  for (const plan::Instruction& i : program_.instructions) {
    const auto* c = std::get_if<plan::Collective>(&i.body);
    if (c == nullptr || label(i) != "gradient.bucket") continue;
    const auto room = static_cast<std::size_t>(c->bytes.count()) / sizeof(float);
    Bucket bucket;
    const std::vector<Parameter>& all = model_.parameters().all();
    if (next < all.size()) bucket.begin = bucket.end = all[next].offset;
    while (next < all.size() && all[next].offset + all[next].size() - bucket.begin <= room) {
      bucket.end = all[next].offset + all[next].size();
      ++next;
    }
    bucket.own_begin = bucket.begin;
    bucket.own_end = bucket.end;
    if (c->kind == plan::CollectiveKind::kReduceScatter) {
      const std::vector<RankId> members = plan.members(c->group, rank);
      const auto slot = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
      const Part part = part_of(room * sizeof(float), slot, members.size(), sizeof(float));
      bucket.own_begin = std::min(bucket.end, bucket.begin + part.begin / sizeof(float));
      bucket.own_end = std::min(bucket.end, bucket.begin + part.end / sizeof(float));
      bucket.padded = math_.floats(room);
      bucket.padded_size = room;
    }
    buckets_.push_back(std::move(bucket));
  }
  if (buckets_.empty()) buckets_.push_back({.begin = 0, .end = model_.parameters().size(), .own_begin = 0, .own_end = model_.parameters().size()});
  if (buckets_.back().end != model_.parameters().size()) {
    throw UserError(Diagnostic{.where = {file_, 0, 0}, .problem = "gradient buckets do not add up to the parameters of program \"" + program_.name + "\"",
                               .expected = std::to_string(model_.parameters().size()) + " elements", .got = std::to_string(buckets_.back().end)});
  }
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
      for (const Bucket& bucket : buckets_) model_.add_squares(bucket.own_begin, bucket.own_end, square_sum_);
      return;
    }
    case Kind::kUpdate: {
      float squares = 0.0F;
      math_.download(square_sum_, {&squares, 1});
      const float norm = std::sqrt(squares);
      const kernels::AdamStep step = kernels::adam_step(settings_.adam, ++updates_, norm > settings_.clip ? settings_.clip / norm : 1.0F);
      for (const Bucket& bucket : buckets_) model_.update(step, bucket.own_begin, bucket.own_end);
      return;
    }
    default: SIM_CHECK(false, i);
  }
}

// A bucket without padding is exchanged where it lies.
std::span<std::byte> ModelPayload::bucket_buffer(const Bucket& bucket, float* row) {
  if (bucket.padded == nullptr) return std::as_writable_bytes(std::span{row + bucket.begin, bucket.end - bucket.begin});
  math_.copy(row + bucket.begin, bucket.padded, bucket.end - bucket.begin);
  math_.fill(bucket.padded + (bucket.end - bucket.begin), bucket.padded_size - (bucket.end - bucket.begin), 0.0F);
  return std::as_writable_bytes(std::span{bucket.padded, bucket.padded_size});
}

void ModelPayload::bucket_back(const Bucket& bucket, float* row) {
  if (bucket.padded != nullptr) math_.copy(bucket.padded, row + bucket.begin, bucket.end - bucket.begin);
}

std::span<std::byte> ModelPayload::collective(std::size_t i) {
  use_stream(i);
  const Action& action = actions_[i];
  switch (action.kind) {
    case Kind::kNormSum: return std::as_writable_bytes(std::span{square_sum_, 1});
    case Kind::kGradientBucket: return bucket_buffer(buckets_[action.bucket], model_.gradients());
    case Kind::kParameterBucket: return bucket_buffer(buckets_[action.bucket], model_.values());
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
  if (action.kind == Kind::kGradientBucket) bucket_back(buckets_[action.bucket], model_.gradients());
  if (action.kind == Kind::kParameterBucket) bucket_back(buckets_[action.bucket], model_.values());
}

Reduction ModelPayload::reduction(std::size_t i) const { return actions_[i].kind == Kind::kMost ? Reduction::kMost : Reduction::kSum; }

std::span<const std::byte> ModelPayload::outgoing(std::size_t i) { return incoming(i); }

std::span<std::byte> ModelPayload::incoming(std::size_t i) {
  const Action& action = actions_[i];
  return std::as_writable_bytes(std::span{(model_.*action.tensor)(action.at), static_cast<std::size_t>(facts_.rows * facts_.hidden)});
}

void ModelPayload::copy(std::size_t i) { refuse(program_.instructions[i]); }
void ModelPayload::host_compute(std::size_t i) { refuse(program_.instructions[i]); }
void ModelPayload::load_batch(std::size_t) {}  // tokens are drawn at the begin of a step

std::vector<std::pair<std::string, double>> ModelPayload::values() const {
  if (!facts_.last || facts_.tp_rank > 0) return {};
  return {{"loss", model_.loss()}};
}

}  // namespace stepcast::executor
