// executor/common/replica_exchange.hpp — how the replicas of a model share their gradients and parameters: buckets (ZeRO 0 to 2) and units (ZeRO 3)
// as pieces of the row of parameters, which instruction moves which, and what of them this worker updates.
//
// Gradients   a backward pass adds to one of several rows, the one that the next reduction of its bucket takes: others may still be on their way. What
//             this worker owns of a sum is added to the sums of the step, and its row is zero again.
// Parameters  ZeRO 3 keeps what this worker owns; the rest is gathered before it is used, and is no number once its buffer is freed, so that a plan
//             that gathers too little fails visibly.
// Refused     gradients summed within shard groups and then between them
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/common/math.hpp"
#include "executor/common/parameters.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::executor {

// A part of the row of parameters.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};

class ReplicaExchange {
 public:
  // Throws UserError naming `file`. `values` is the row of parameters, with their first values.
  ReplicaExchange(const plan::Plan& plan, RankId rank, const std::string& file, const Parameters& parameters, Math& math, float* values);

  [[nodiscard]] bool handles(std::size_t instruction) const { return moves_.contains(instruction); }
  // Of a collective: its data, worked on in place.
  std::span<std::byte> buffer(std::size_t instruction);
  void collected(std::size_t instruction);
  void freed(std::size_t instruction);

  void zero_gradients();
  // Where parameter p's gradient is added to at an instruction, from its row's begin.
  [[nodiscard]] float* gradients(std::size_t instruction, std::size_t parameter) const;
  // Of the step, where this worker owns them.
  [[nodiscard]] float* sums() const { return sums_; }
  // Whether each worker has the whole of them.
  [[nodiscard]] bool sums_are_whole() const { return !scatters_; }
  // What this worker updates, and the parameters that it does.
  [[nodiscard]] const std::vector<Piece>& own() const { return own_; }
  [[nodiscard]] float* owned_values() const { return owned_; }

 private:
  struct Bucket {
    std::vector<Piece> pieces;
    std::size_t size = 0;
    std::size_t room = 0;             // of the collectives' buffers, padded to shards
    std::vector<Piece> own;
    std::size_t own_at = 0;           // in the buffer
    float* outgoing = nullptr;        // gradients on their way; none: where they lie
    float* incoming = nullptr;        // parameters
    std::vector<std::size_t> reductions;  // instructions
  };
  enum class Kind : std::uint8_t { kReduce, kGather, kFree };
  struct Move {
    Kind kind = Kind::kReduce;
    std::size_t bucket = 0;
    std::size_t turn = 0;  // of the bucket's reductions
  };

  void lay_buckets();
  void lay_units();
  void add_reduction(std::size_t instruction, std::size_t bucket, const plan::Collective& c);
  void find_owned(Bucket& bucket, const plan::Collective* reduction);
  [[nodiscard]] std::map<std::uint32_t, std::optional<std::uint16_t>> layers_of_waits() const;
  [[noreturn]] void refuse(const std::string& problem, const std::string& expected, const std::string& got) const;
  [[nodiscard]] const std::string& label(const plan::Instruction& i) const { return program_.labels[i.label.index()]; }
  [[nodiscard]] float* row_of(const Move& move) const { return rows_[move.turn % rows_.size()]; }
  void pack(const std::vector<Piece>& pieces, const float* row, float* buffer);
  void fill(const std::vector<Piece>& pieces, float* row, float value);

  const plan::Plan& plan_;
  RankId rank_;
  const plan::Program& program_;
  std::string file_;
  const Parameters& parameters_;
  Math& math_;
  float* values_;
  float* owned_;
  std::vector<float*> rows_;
  float* sums_ = nullptr;
  bool scatters_ = false;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_parameter_;
  std::vector<Piece> own_;
  std::map<std::size_t, Move> moves_;  // by instruction
};

}  // namespace stepcast::executor
