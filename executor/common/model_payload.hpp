// executor/common/model_payload.hpp — a plan's instructions on a model that learns (common/transformer.hpp): operators by label, collectives on
// the tensors that they sum, gradients and parameters between replicas (common/replica_exchange.hpp), Adam on what this worker owns.
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
  void freed(std::size_t i) override;
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
  enum class Kind : std::uint8_t { kOperator, kGradientNorm, kUpdate, kTensor, kMost, kNormSum, kReplicas, kPartialGradients, kTiedGradient, kNothing };
  struct Action {
    Kind kind = Kind::kNothing;
    Transformer::Operator run = nullptr;
    Transformer::Tensor tensor = nullptr;
    Place at;
  };

  Action action_of(std::size_t i) const;
  [[nodiscard]] Place place_of(std::size_t i) const;
  [[nodiscard]] std::span<std::byte> message(std::size_t i);
  void exchange_partial_gradients(bool out);
  [[noreturn]] void refuse(const plan::Instruction& instruction) const;
  [[nodiscard]] const std::string& label(const plan::Instruction& i) const { return program_.labels[i.label.index()]; }
  void use_stream(std::size_t i) { math_.on(program_.instructions[i].stream.index()); }

  const plan::Program& program_;
  std::string file_;
  TrainingSettings settings_;
  Math& math_;
  TransformerFacts facts_;
  Transformer model_;
  ReplicaExchange exchange_;
  std::vector<Action> actions_;
  std::map<std::size_t, std::set<std::string>> recomputed_;  // layer -> labels
  float* square_sum_;          // in the device's memory
  float* partial_ = nullptr;   // gradients of norms over one's own rows, one behind the other
  std::size_t partial_size_ = 0;
  std::int64_t updates_ = 0;
};

}  // namespace stepcast::executor
