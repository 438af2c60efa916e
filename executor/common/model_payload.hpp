// executor/common/model_payload.hpp — a plan's instructions on a model that learns (common/transformer.hpp): operators by label, collectives on
// the tensors that they sum, gradient buckets as ranges of the row of parameters, Adam on what this worker owns.
//
// What a plan recomputes is destroyed after its forward pass, so that a plan that recomputes too little fails visibly.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "executor/common/payload.hpp"
#include "executor/common/transformer.hpp"

namespace stepcast::executor {

struct TrainingSettings {
  AdamSettings adam{.rate = 1e-2F};
  float clip = 1.0F;  // norm of all gradients that larger ones are scaled to
};

class ModelPayload : public Payload {
 public:
  // Throws UserError naming `file` where the plan is not understood (transformer_facts.hpp).
  ModelPayload(const plan::Plan& plan, RankId rank, const std::string& file, Math& math, std::uint64_t seed, const TrainingSettings& settings = {});

  void begin_step() override;
  void compute(std::size_t i) override;
  std::span<std::byte> collective(std::size_t i) override;
  std::span<std::byte> landing(std::size_t i) override;
  void collected(std::size_t i) override;
  [[nodiscard]] Reduction reduction(std::size_t i) const override;
  std::span<const std::byte> outgoing(std::size_t i) override;
  std::span<std::byte> incoming(std::size_t i) override;
  void received(std::size_t) override {}
  void copy(std::size_t i) override;
  void host_compute(std::size_t i) override;
  void load_batch(std::size_t i) override;
  [[nodiscard]] std::vector<std::pair<std::string, double>> values() const override;

  [[nodiscard]] const Parameters& layout() const { return model_.parameters(); }

 private:
  enum class Kind : std::uint8_t { kOperator, kGradientNorm, kUpdate, kTensor, kMost, kNormSum, kGradientBucket, kParameterBucket, kNothing };
  struct Action {
    Kind kind = Kind::kNothing;
    Transformer::Operator run = nullptr;
    Transformer::Tensor tensor = nullptr;
    Place at;
    std::size_t bucket = 0;
  };
  struct Bucket {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t own_begin = 0;  // what this worker updates
    std::size_t own_end = 0;
    float* padded = nullptr;    // where shards want whole parts
    std::size_t padded_size = 0;
  };

  Action action_of(const plan::Instruction& instruction) const;
  void lay_buckets(const plan::Plan& plan, RankId rank);
  [[nodiscard]] Place place_of(const plan::Instruction& instruction) const;
  [[noreturn]] void refuse(const plan::Instruction& instruction) const;
  [[nodiscard]] const std::string& label(const plan::Instruction& i) const { return program_.labels[i.label.index()]; }
  std::span<std::byte> bucket_buffer(const Bucket& bucket, float* row);
  void bucket_back(const Bucket& bucket, float* row);
  void use_stream(std::size_t i) { math_.on(program_.instructions[i].stream.index()); }

  const plan::Program& program_;
  std::string file_;
  TrainingSettings settings_;
  Math& math_;
  TransformerFacts facts_;
  Transformer model_;
  std::vector<Action> actions_;
  std::vector<Bucket> buckets_;
  std::map<std::size_t, std::set<std::string>> recomputed_;  // layer -> labels
  float* square_sum_;  // in the device's memory
  std::int64_t updates_ = 0;
};

}  // namespace stepcast::executor
