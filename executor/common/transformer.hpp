// executor/common/transformer.hpp — a transformer that learns, operator by operator as a plan names them. Each operator of a layer reads
// and writes the tensors of its layer and micro-batch; who calls them in which order is the plan's business.
//
// Data     sequences that follow x' = (5 x + 7) mod vocabulary from a random start: what a model of any size learns in a few steps.
// Loss     mean cross-entropy over the tokens of the step; gradients are those of the mean, so replicas only sum.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/common/math.hpp"
#include "executor/common/parameters.hpp"
#include "executor/common/replica_exchange.hpp"

namespace stepcast::executor {

// What an operator works on.
struct Place {
  std::size_t layer = 0;  // index in TransformerFacts::layers; 0 outside layers
  std::size_t micro = 0;
  bool again = false;     // recomputed
  std::size_t instruction = 0;
};

class Transformer {
 public:
  using Operator = void (Transformer::*)(const Place&);
  using Tensor = float* (Transformer::*)(const Place&);

  Transformer(const TransformerFacts& facts, const plan::Program& program, Math& math, std::uint64_t seed);

  // By label of a Compute, a collective that sums a tensor, a message. Empty where nothing of that name is known.
  static std::optional<Operator> operator_of(const std::string& label);
  static std::optional<Tensor> tensor_of(const std::string& label);

  // Who knows where gradients are added to. Called before the first operator.
  void attach(ReplicaExchange& exchange) { exchange_ = &exchange; }
  void begin_step();
  [[nodiscard]] float* values() { return values_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  // What this operator wrote is gone: the backward pass has to compute it again.
  void forget(const std::string& label, const Place& at);
  // Adds the squares of the gradients that this worker owns to *sum, each parameter of the model counted by one worker.
  void add_squares(float* sum) const;
  // Adam on what this worker owns.
  void update(const kernels::AdamStep& step);
  // The three reductions of the vocabulary-parallel loss: `rows` floats each.
  void most_reduced(const Place& at);
  // Of this step so far, this worker's share of the mean; only the last stage has one.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] const TransformerFacts& facts() const { return facts_; }

 private:
  struct LayerTensors {
    float *x, *n1, *r1, *qkv, *o, *lse, *y1, *x1, *n2, *r2, *u, *a, *y2;                 // forward
    float *da, *du, *dn2, *dx1, *g1, *d_o, *dqkv, *dn1, *dx;                               // backward
    float *g;                                                                              // gradient of the layer's output
  };
  struct MicroTensors {
    std::vector<LayerTensors> layers;
    float* h;      // the hidden state that travels forward
    float* g;      // its gradient, backward
    float *nf, *rf, *z, *dnf;
    kernels::LossRows rows;
    float* most;   // of all ranks
    std::int32_t *tokens, *labels;
  };

  LayerTensors& at(const Place& s) { return micros_[s.micro].layers[s.layer]; }
  [[nodiscard]] const float* weight(const char* name, const Place& s) const;
  float* slope(const char* name, const Place& s);
  // Tied ends of one stage have one table.
  [[nodiscard]] const Parameter& end(const std::string& name) const { return parameters_.get(name == "logits" && facts_.tied && facts_.first ? "embedding" : name, std::nullopt); }
  [[nodiscard]] const float* weight_of_end(const char* name) const { return values_ + end(name).offset; }
  float* slope_of_end(const char* name, const Place& s) { return slope_of(end(name), s); }
  float* slope_of(const Parameter& p, const Place& s) const;
  // One's own rows of a hidden state, of all where sequences are not cut.
  float* own(float* hidden) const { return hidden + facts_.first_own_row() * facts_.hidden; }
  [[nodiscard]] std::size_t own_size() const { return static_cast<std::size_t>(facts_.own_rows() * facts_.hidden); }
  [[nodiscard]] kernels::Norm norm_of(float* x, const float* gain) const { return {facts_.own_rows(), facts_.hidden, own(x), gain}; }
  [[nodiscard]] std::size_t hidden_size() const { return static_cast<std::size_t>(facts_.rows * facts_.hidden); }
  [[nodiscard]] kernels::Band band() const { return {facts_.tp_rank * facts_.vocab, facts_.vocab}; }
  [[nodiscard]] float scale() const { return 1.0F / static_cast<float>(facts_.tokens_in_step); }
  void forward(const float* x, const float* w, float* y, std::int64_t n, std::int64_t k);
  void input_gradient(const float* dy, const float* w, float* dx, std::int64_t n, std::int64_t k);
  void weight_gradient(const float* dy, const float* x, float* dw, std::int64_t n, std::int64_t k);
  void draw_tokens();

  void zero(const Place&);
  void nothing(const Place&) {}
  void embedding(const Place& s);
  void embedding_gradient(const Place& s);
  void norm1(const Place& s);
  void qkv(const Place& s);
  void rotary(const Place& s);
  void core(const Place& s);
  void out(const Place& s);
  void residual1(const Place& s);
  void norm2(const Place& s);
  void up(const Place& s);
  void activation(const Place& s);
  void down(const Place& s);
  void residual2(const Place& s);
  void down_dgrad(const Place& s);
  void down_wgrad(const Place& s);
  void activation_gradient(const Place& s);
  void up_dgrad(const Place& s);
  void up_wgrad(const Place& s);
  void norm2_gradient(const Place& s);
  void residual2_gradient(const Place& s);
  void out_dgrad(const Place& s);
  void out_wgrad(const Place& s);
  void core_gradient(const Place& s);
  void rotary_gradient(const Place& s);
  void qkv_dgrad(const Place& s);
  void qkv_wgrad(const Place& s);
  void norm1_gradient(const Place& s);
  void residual1_gradient(const Place& s);
  void final_norm(const Place& s);
  void logits(const Place& s);
  void loss_forward(const Place& s);
  void loss_gradient(const Place& s);
  void logits_dgrad(const Place& s);
  void logits_wgrad(const Place& s);
  void final_norm_gradient(const Place& s);

  float* norm1_out(const Place& s) { return at(s).n1; }
  float* norm2_out(const Place& s) { return at(s).n2; }
  float* final_norm_out(const Place& s) { return micros_[s.micro].nf; }
  float* attention_gradient_in(const Place& s) { return at(s).g1; }
  float* hidden(const Place& s) { return micros_[s.micro].h; }
  float* hidden_gradient(const Place& s) { return micros_[s.micro].g; }
  float* attention_sum(const Place& s) { return at(s).y1; }
  float* mlp_sum(const Place& s) { return at(s).y2; }
  float* up_gradient_sum(const Place& s) { return at(s).dn2; }
  float* qkv_gradient_sum(const Place& s) { return at(s).dn1; }
  float* logits_gradient_sum(const Place& s) { return micros_[s.micro].dnf; }
  float* loss_most(const Place& s) { return micros_[s.micro].most; }
  float* loss_label(const Place& s) { return micros_[s.micro].rows.label; }
  float* loss_sum(const Place& s) { return micros_[s.micro].rows.sum; }

  TransformerFacts facts_;
  Parameters parameters_;
  Math& math_;
  std::uint64_t seed_;
  std::uint64_t step_ = 0;
  float* values_;
  ReplicaExchange* exchange_ = nullptr;
  float* first_;
  float* second_;
  std::vector<MicroTensors> micros_;
  double loss_ = 0.0;
};

}  // namespace stepcast::executor
