#include "executor/common/replica_exchange.hpp"

#include <algorithm>
#include <limits>

#include "executor/common/part.hpp"
#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {
namespace {

std::size_t elements_of(const plan::Collective& c) { return static_cast<std::size_t>(c.bytes.count()) / sizeof(float); }

// Pieces laid one behind the other: those of [begin, end) of the whole.
std::vector<Piece> cut(const std::vector<Piece>& pieces, std::size_t begin, std::size_t end) {
  std::vector<Piece> part;
  std::size_t at = 0;
  for (const Piece& piece : pieces) {
    const std::size_t from = std::clamp(begin, at, at + piece.size());
    const std::size_t to = std::clamp(end, at, at + piece.size());
    if (from < to) part.push_back({piece.begin + (from - at), piece.begin + (to - at)});
    at += piece.size();
  }
  return part;
}

// Neighbours become one.
void append(std::vector<Piece>& pieces, const Parameter& p) {
  if (!pieces.empty() && pieces.back().end == p.offset) pieces.back().end = p.offset + p.size();
  else pieces.push_back({p.offset, p.offset + p.size()});
}

}  // namespace

ReplicaExchange::ReplicaExchange(const plan::Plan& plan, RankId rank, const std::string& file, const Parameters& parameters, Math& math, float* values)
    : plan_{plan}, rank_{rank}, program_{plan.program(rank)}, file_{file}, parameters_{parameters}, math_{math}, values_{values}, owned_{values}, bucket_of_parameter_(parameters.all().size()) {
  bool by_unit = false;
  bool sums_whole = false;
  for (const plan::Instruction& i : program_.instructions) {
    const auto* c = std::get_if<plan::Collective>(&i.body);
    if (c == nullptr) continue;
    by_unit = by_unit || label(i) == "gradient.unit" || label(i) == "parameter.unit";
    if (label(i) != "gradient.bucket" && label(i) != "gradient.unit") continue;
    (c->kind == plan::CollectiveKind::kReduceScatter ? scatters_ : sums_whole) = true;
  }
  if (scatters_ && sums_whole) refuse("gradients are summed within shard groups and then between them, which is not trained for real", "one shard group (no parallel.shard_group)", "");
  by_unit ? lay_units() : lay_buckets();

  std::size_t reductions = 0;
  for (const Bucket& bucket : buckets_) reductions = std::max(reductions, bucket.reductions.size());
  // Two scattered sums may be on their way while a third begins (models/parallel/scatter_queue.hpp); whole ones wait for each other at the end alone.
  for (std::size_t r = 0; r < std::clamp<std::size_t>(reductions, 1, scatters_ ? 3 : reductions + 1); ++r) rows_.push_back(math_.floats(parameters_.size()));
  const bool in_place = !scatters_ && reductions < 2;
  sums_ = in_place ? rows_.front() : math_.floats(parameters_.size());
  for (Bucket& bucket : buckets_) {
    if (!in_place && bucket.reductions.empty()) refuse("some gradients of program \"" + program_.name + "\" are never summed, others are", "all of them", "");
    if (!in_place) bucket.outgoing = math_.floats(bucket.room);
    own_.insert(own_.end(), bucket.own.begin(), bucket.own.end());
  }
  if (!by_unit) return;
  owned_ = math_.floats(parameters_.size());
  math_.copy(values_, owned_, parameters_.size());
  for (const Bucket& bucket : buckets_) {
    if (bucket.incoming != nullptr) fill(bucket.pieces, values_, std::numeric_limits<float>::quiet_NaN());
  }
}

void ReplicaExchange::refuse(const std::string& problem, const std::string& expected, const std::string& got) const {
  throw UserError(Diagnostic{.where = {file_, 0, 0}, .problem = problem, .expected = expected, .got = got,
                             .hint = "without --train the plan runs on random data"});
}

void ReplicaExchange::find_owned(Bucket& bucket, const plan::Collective* reduction) {
  bucket.own = bucket.pieces;
  if (reduction == nullptr || reduction->kind != plan::CollectiveKind::kReduceScatter) return;
  const std::vector<RankId> members = plan_.members(reduction->group, rank_);
  const auto slot = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const Part part = part_of(bucket.room * sizeof(float), slot, members.size(), sizeof(float));
  bucket.own_at = part.begin / sizeof(float);
  bucket.own = cut(bucket.pieces, bucket.own_at, part.end / sizeof(float));
}

void ReplicaExchange::add_reduction(std::size_t instruction, std::size_t bucket, const plan::Collective& c) {
  Bucket& b = buckets_[bucket];
  if (b.reductions.empty()) {
    b.room = elements_of(c);
    find_owned(b, &c);
  }
  if (elements_of(c) != b.room || b.size > b.room) {
    refuse("gradients of program \"" + program_.name + "\" that are summed are not those of its parameters", std::to_string(b.size) + " elements, padded to shards", std::to_string(elements_of(c)));
  }
  moves_[instruction] = {Kind::kReduce, bucket, b.reductions.size()};
  b.reductions.push_back(instruction);
}

// Buckets hold whole tensors in the order in which their gradients become ready; padding to shards is smaller than any of them. They come round
// again with every micro-batch that is summed.
void ReplicaExchange::lay_buckets() {
  const std::vector<Parameter>& all = parameters_.all();
  std::size_t next = 0;
  std::size_t turn = 0;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    const auto* c = std::get_if<plan::Collective>(&program_.instructions[i].body);
    if (c == nullptr || label(program_.instructions[i]) != "gradient.bucket") continue;
    if (next < all.size()) {
      Bucket bucket;
      while (next < all.size() && bucket.size + all[next].size() <= elements_of(*c)) {
        append(bucket.pieces, all[next]);
        bucket.size += all[next].size();
        bucket_of_parameter_[next++] = buckets_.size();
      }
      buckets_.push_back(std::move(bucket));
      add_reduction(i, buckets_.size() - 1, *c);
    } else {
      add_reduction(i, turn++ % buckets_.size(), *c);
    }
  }
  if (buckets_.empty()) {
    const Piece whole{0, parameters_.size()};
    Bucket& bucket = buckets_.emplace_back();
    bucket.pieces = bucket.own = {whole};
    bucket.size = bucket.room = whole.size();
    next = all.size();
  }
  if (next != all.size()) refuse("gradient buckets do not add up to the parameters of program \"" + program_.name + "\"", std::to_string(parameters_.size()) + " elements", std::to_string(all[next].offset));

  // Gathered in the order of the forward pass.
  std::size_t gathers = 0;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (!std::holds_alternative<plan::Collective>(program_.instructions[i].body) || label(program_.instructions[i]) != "parameter.bucket") continue;
    Bucket& bucket = buckets_[buckets_.size() - 1 - gathers % buckets_.size()];
    moves_[i] = {Kind::kGather, buckets_.size() - 1 - gathers++ % buckets_.size(), 0};
    if (bucket.incoming == nullptr) bucket.incoming = math_.floats(bucket.room);
  }
}

// The layer of what waits for each event.
std::map<std::uint32_t, std::optional<std::uint16_t>> ReplicaExchange::layers_of_waits() const {
  std::map<std::uint32_t, std::optional<std::uint16_t>> layers;
  for (const plan::Instruction& i : program_.instructions) {
    const auto* wait = std::get_if<plan::Wait>(&i.body);
    if (wait != nullptr && label(i) == "parameter.unit" && program_.streams[i.stream.index()].kind == plan::StreamKind::kCompute) layers[wait->event.value()] = i.layer;
  }
  return layers;
}

// A unit is a layer, or what is outside of layers. Gradients are reduced where their unit's backward pass ends; a gather is for the layer that waits
// for it, since it may be issued ahead.
void ReplicaExchange::lay_units() {
  std::map<int, std::size_t> units;  // by layer; -1: the ends
  const auto key = [](std::optional<std::uint16_t> layer) { return layer ? int{*layer} : -1; };
  for (std::size_t p = 0; p < parameters_.all().size(); ++p) {
    const Parameter& parameter = parameters_.all()[p];
    const auto [at, is_new] = units.try_emplace(key(parameter.layer), buckets_.size());
    if (is_new) buckets_.emplace_back();
    append(buckets_[at->second].pieces, parameter);
    buckets_[at->second].size += parameter.size();
    bucket_of_parameter_[p] = at->second;
  }
  const auto unit_of = [&](std::optional<std::uint16_t> layer) {
    const auto at = units.find(key(layer));
    if (at == units.end()) refuse("parameters of program \"" + program_.name + "\" are exchanged that it does not have", "layers that it computes", layer ? "layer " + std::to_string(*layer) : "ends");
    return at->second;
  };
  const auto waits = layers_of_waits();
  std::map<std::uint32_t, std::size_t> unit_of_event;  // gathered before it is recorded
  std::map<std::uint32_t, std::size_t> unit_in_buffer;
  std::optional<plan::BufferId> taken;
  std::optional<std::size_t> gather;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    const plan::Instruction& instruction = program_.instructions[i];
    if (const auto* c = std::get_if<plan::Collective>(&instruction.body); c != nullptr && label(instruction) == "gradient.unit") add_reduction(i, unit_of(instruction.layer), *c);
    if (label(instruction) != "parameter.unit") continue;
    if (const auto* alloc = std::get_if<plan::Alloc>(&instruction.body)) taken = alloc->buffer;
    if (std::holds_alternative<plan::Collective>(instruction.body)) gather = i;
    if (const auto* record = std::get_if<plan::Record>(&instruction.body); record != nullptr && gather) {
      const auto wait = waits.find(record->event.value());
      if (wait == waits.end() || !taken) refuse("gathered parameters that nothing waits for", "", "");
      const std::size_t unit = unit_of(wait->second);
      moves_[*gather] = {Kind::kGather, unit, 0};
      Bucket& bucket = buckets_[unit];
      bucket.room = std::max(bucket.room, elements_of(std::get<plan::Collective>(program_.instructions[*gather].body)));
      if (bucket.incoming == nullptr) bucket.incoming = math_.floats(bucket.room);
      unit_in_buffer[taken->value()] = unit;
      gather.reset();
    }
    if (const auto* free = std::get_if<plan::Free>(&instruction.body)) {
      if (const auto at = unit_in_buffer.find(free->buffer.value()); at != unit_in_buffer.end()) moves_[i] = {Kind::kFree, at->second, 0};
    }
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.reductions.empty()) find_owned(bucket, nullptr);
  }
}

void ReplicaExchange::pack(const std::vector<Piece>& pieces, const float* row, float* buffer) {
  for (const Piece& piece : pieces) {
    math_.copy(row + piece.begin, buffer, piece.size());
    buffer += piece.size();
  }
}

void ReplicaExchange::fill(const std::vector<Piece>& pieces, float* row, float value) {
  for (const Piece& piece : pieces) math_.fill(row + piece.begin, piece.size(), value);
}

std::span<std::byte> ReplicaExchange::buffer(std::size_t instruction) {
  const Move& move = moves_.at(instruction);
  Bucket& bucket = buckets_[move.bucket];
  if (move.kind == Kind::kGather) {
    pack(bucket.own, owned_, bucket.incoming + bucket.own_at);
    return std::as_writable_bytes(std::span{bucket.incoming, bucket.room});
  }
  float* const row = row_of(move);
  if (bucket.outgoing == nullptr) return std::as_writable_bytes(std::span{row + bucket.pieces.front().begin, bucket.size});
  pack(bucket.pieces, row, bucket.outgoing);
  math_.fill(bucket.outgoing + bucket.size, bucket.room - bucket.size, 0.0F);
  return std::as_writable_bytes(std::span{bucket.outgoing, bucket.room});
}

void ReplicaExchange::collected(std::size_t instruction) {
  const Move& move = moves_.at(instruction);
  Bucket& bucket = buckets_[move.bucket];
  if (move.kind == Kind::kGather) {
    const float* from = bucket.incoming;
    for (const Piece& piece : bucket.pieces) {
      math_.copy(from, values_ + piece.begin, piece.size());
      from += piece.size();
    }
    return;
  }
  if (bucket.outgoing == nullptr) return;
  const float* from = bucket.outgoing + bucket.own_at;
  for (const Piece& piece : bucket.own) {
    math_.add(sums_ + piece.begin, from, sums_ + piece.begin, piece.size());
    from += piece.size();
  }
  fill(bucket.pieces, row_of(move), 0.0F);
}

void ReplicaExchange::freed(std::size_t instruction) {
  const auto move = moves_.find(instruction);
  if (move != moves_.end() && move->second.kind == Kind::kFree) fill(buckets_[move->second.bucket].pieces, values_, std::numeric_limits<float>::quiet_NaN());
}

void ReplicaExchange::zero_gradients() {
  for (float* row : rows_) math_.fill(row, parameters_.size(), 0.0F);
  math_.fill(sums_, parameters_.size(), 0.0F);
}

float* ReplicaExchange::gradients(std::size_t instruction, std::size_t parameter) const {
  if (rows_.size() == 1) return rows_.front();
  const std::vector<std::size_t>& reductions = buckets_[bucket_of_parameter_[parameter]].reductions;
  const auto next = std::upper_bound(reductions.begin(), reductions.end(), instruction);
  return rows_[static_cast<std::size_t>(next - reductions.begin()) % rows_.size()];
}

}  // namespace stepcast::executor
