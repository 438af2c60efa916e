#include "executor/common/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

namespace stepcast::executor {

std::optional<Transformer::Operator> Transformer::operator_of(const std::string& label) {
  using T = Transformer;
  static const std::map<std::string, Operator> kOperators{
      {"optimizer.zero_gradients", &T::zero},
      {"embedding", &T::embedding},
      {"embedding.grad", &T::embedding_gradient},
      {"layer.norm1", &T::norm1},
      {"layer.attention.qkv", &T::qkv},
      {"layer.attention.rotary", &T::rotary},
      {"layer.attention.core", &T::core},
      {"layer.attention.out", &T::out},
      {"layer.residual1", &T::residual1},
      {"layer.norm2", &T::norm2},
      {"layer.mlp.up", &T::up},
      {"layer.mlp.activation", &T::activation},
      {"layer.mlp.down", &T::down},
      {"layer.residual2", &T::residual2},
      {"layer.mlp.down.dgrad", &T::down_dgrad},
      {"layer.mlp.down.wgrad", &T::down_wgrad},
      {"layer.mlp.activation.grad", &T::activation_gradient},
      {"layer.mlp.up.dgrad", &T::up_dgrad},
      {"layer.mlp.up.wgrad", &T::up_wgrad},
      {"layer.norm2.grad", &T::norm2_gradient},
      {"layer.residual2.grad", &T::residual2_gradient},
      {"layer.attention.out.dgrad", &T::out_dgrad},
      {"layer.attention.out.wgrad", &T::out_wgrad},
      {"layer.attention.core.grad", &T::core_gradient},
      {"layer.attention.rotary.grad", &T::rotary_gradient},
      {"layer.attention.qkv.dgrad", &T::qkv_dgrad},
      {"layer.attention.qkv.wgrad", &T::qkv_wgrad},
      {"layer.norm1.grad", &T::norm1_gradient},
      {"layer.residual1.grad", &T::residual1_gradient},
      {"head.final_norm", &T::final_norm},
      {"head.logits", &T::logits},
      {"head.loss", &T::loss_forward},
      {"head.loss.grad", &T::loss_gradient},
      {"head.logits.dgrad", &T::logits_dgrad},
      {"head.logits.wgrad", &T::logits_wgrad},
      {"head.final_norm.grad", &T::final_norm_gradient},
  };
  const auto it = kOperators.find(label);
  return it == kOperators.end() ? std::nullopt : std::optional{it->second};
}

std::optional<Transformer::Tensor> Transformer::tensor_of(const std::string& label) {
  using T = Transformer;
  static const std::map<std::string, Tensor> kTensors{
      {"embedding.all_reduce", &T::hidden},
      {"embedding.scatter", &T::hidden},
      {"embedding.grad.gather", &T::hidden_gradient},
      {"layer.attention.gather", &T::norm1_out},
      {"layer.attention.qkv.regather", &T::norm1_out},
      {"layer.attention.scatter", &T::attention_sum},
      {"layer.attention.grad.gather", &T::attention_gradient_in},
      {"layer.attention.qkv.dgrad.scatter", &T::qkv_gradient_sum},
      {"layer.mlp.gather", &T::norm2_out},
      {"layer.mlp.up.regather", &T::norm2_out},
      {"layer.mlp.scatter", &T::mlp_sum},
      {"layer.mlp.grad.gather", &T::hidden_gradient},
      {"layer.mlp.up.dgrad.scatter", &T::up_gradient_sum},
      {"head.gather", &T::final_norm_out},
      {"head.logits.regather", &T::final_norm_out},
      {"head.logits.dgrad.scatter", &T::logits_gradient_sum},
      {"layer.attention.all_reduce", &T::attention_sum},
      {"layer.mlp.all_reduce", &T::mlp_sum},
      {"layer.mlp.up.dgrad.all_reduce", &T::up_gradient_sum},
      {"layer.attention.qkv.dgrad.all_reduce", &T::qkv_gradient_sum},
      {"head.logits.dgrad.all_reduce", &T::logits_gradient_sum},
      {"head.loss.max", &T::loss_most},
      {"head.loss.label", &T::loss_label},
      {"head.loss.sum", &T::loss_sum},
      {"pipeline.activation", &T::hidden},
      {"pipeline.activation.out", &T::hidden},
      {"pipeline.gradient", &T::hidden_gradient},
      {"pipeline.gradient.out", &T::hidden_gradient},
  };
  const auto it = kTensors.find(label);
  return it == kTensors.end() ? std::nullopt : std::optional{it->second};
}

Transformer::Transformer(const TransformerFacts& facts, const plan::Program& program, Math& math, std::uint64_t seed)
    : facts_{facts}, parameters_{facts, program}, math_{math}, seed_{seed} {
  const std::vector<float> initial = parameters_.initial(seed);
  values_ = math.floats(initial.size());
  math.upload(std::span<const float>{initial}, values_);
  first_ = math.floats(initial.size());
  second_ = math.floats(initial.size());

  const std::size_t h = hidden_size();
  const auto rows = static_cast<std::size_t>(facts.rows);
  const auto wide = [&](std::int64_t width) { return math.floats(rows * static_cast<std::size_t>(width)); };
  for (std::int64_t m = 0; m < facts.micro_batches; ++m) {
    MicroTensors micro{};
    for (std::size_t l = 0; l < facts.layers.size(); ++l) {
      LayerTensors t{};
      for (float** hidden : {&t.x, &t.n1, &t.y1, &t.x1, &t.n2, &t.y2, &t.dn2, &t.dx1, &t.g1, &t.dn1, &t.dx, &t.g}) *hidden = math.floats(h);
      for (float** row : {&t.r1, &t.r2}) *row = math.floats(rows);
      for (float** qkv : {&t.qkv, &t.dqkv}) *qkv = wide(facts.qkv_width());
      for (float** q : {&t.o, &t.d_o}) *q = wide(facts.query_width());
      t.lse = wide(facts.attention.query_heads);
      for (float** u : {&t.u, &t.du}) *u = wide(2 * facts.ffn);
      for (float** a : {&t.a, &t.da}) *a = wide(facts.ffn);
      micro.layers.push_back(t);
    }
    micro.h = math.floats(h);
    micro.g = math.floats(h);
    micro.tokens = math.tokens(rows);
    micro.labels = math.tokens(rows);
    if (facts.last) {
      micro.nf = math.floats(h);
      micro.dnf = math.floats(h);
      micro.z = wide(facts.vocab);
      for (float** row : {&micro.rf, &micro.most, &micro.rows.most, &micro.rows.label, &micro.rows.sum}) *row = math.floats(rows);
    }
    micros_.push_back(micro);
  }
}

void Transformer::begin_step() {
  ++step_;
  loss_ = 0.0;
  if (facts_.first || facts_.last) draw_tokens();
}

// Sample s of the step is the same whatever the plan: replicas and micro-batches take consecutive ones.
void Transformer::draw_tokens() {
  const auto vocabulary = static_cast<std::uint64_t>(facts_.vocab * facts_.tp);
  const auto next = [&](std::uint64_t x) { return (5 * x + 7) % vocabulary; };
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(facts_.rows));
  std::vector<std::int32_t> labels(tokens.size());
  for (std::size_t m = 0; m < micros_.size(); ++m) {
    for (std::int64_t b = 0; b < facts_.samples(); ++b) {
      const std::int64_t sample = (facts_.dp_rank * facts_.micro_batches + static_cast<std::int64_t>(m)) * facts_.samples() + b;
      std::uint64_t x = Rng{seed_ + step_, "sample", static_cast<std::uint64_t>(sample)}.below(vocabulary);
      for (std::int64_t p = 0; p < facts_.sequence; ++p, x = next(x)) {
        const auto at = static_cast<std::size_t>(b * facts_.sequence + p);
        tokens[at] = static_cast<std::int32_t>(x);
        labels[at] = static_cast<std::int32_t>(next(x));
      }
    }
    math_.upload(std::span<const std::int32_t>{tokens}, micros_[m].tokens);
    math_.upload(std::span<const std::int32_t>{labels}, micros_[m].labels);
  }
}

const float* Transformer::weight(const char* name, const Place& s) const { return values_ + parameters_.get(name, facts_.layers[s.layer]).offset; }
float* Transformer::slope_of(const Parameter& p, const Place& s) const {
  return exchange_->gradients(s.instruction, static_cast<std::size_t>(&p - parameters_.all().data())) + p.offset;
}
float* Transformer::slope(const char* name, const Place& s) { return slope_of(parameters_.get(name, facts_.layers[s.layer]), s); }

// y[rows, n] = x[rows, k] w[n, k]^T, and its gradients.
void Transformer::forward(const float* x, const float* w, float* y, std::int64_t n, std::int64_t k) {
  math_.multiply({.m = facts_.rows, .n = n, .k = k, .b = Transpose::kYes}, x, w, y);
}
void Transformer::input_gradient(const float* dy, const float* w, float* dx, std::int64_t n, std::int64_t k) {
  math_.multiply({.m = facts_.rows, .n = k, .k = n}, dy, w, dx);
}
void Transformer::weight_gradient(const float* dy, const float* x, float* dw, std::int64_t n, std::int64_t k) {
  math_.multiply({.m = n, .n = k, .k = facts_.rows, .a = Transpose::kYes, .accumulates = true}, dy, x, dw);
}

void Transformer::zero(const Place&) { exchange_->zero_gradients(); }

void Transformer::embedding(const Place& s) {
  math_.embed(facts_.rows, facts_.hidden, band(), micros_[s.micro].tokens, weight_of_end("embedding"), micros_[s.micro].h);
}
void Transformer::embedding_gradient(const Place& s) {
  math_.embed_gradient(facts_.rows, facts_.hidden, band(), micros_[s.micro].tokens, micros_[s.micro].g, slope_of_end("embedding", s));
}

void Transformer::norm1(const Place& s) {
  LayerTensors& t = at(s);
  if (!s.again) math_.copy(own(micros_[s.micro].h), own(t.x), own_size());
  math_.norm(norm_of(t.x, weight("norm1", s)), own(t.n1), t.r1);
}
void Transformer::qkv(const Place& s) { forward(at(s).n1, weight("qkv", s), at(s).qkv, facts_.qkv_width(), facts_.hidden); }
void Transformer::rotary(const Place& s) {
  const plan::AttentionShape& a = facts_.attention;
  math_.rotate({facts_.sequence, a.query_heads + a.kv_heads, a.head_dim, facts_.qkv_width(), 1.0F}, facts_.rows, at(s).qkv);
}
void Transformer::core(const Place& s) { math_.attention({facts_.attention, at(s).qkv}, at(s).o, at(s).lse); }
void Transformer::out(const Place& s) { forward(at(s).o, weight("out", s), at(s).y1, facts_.hidden, facts_.query_width()); }
void Transformer::residual1(const Place& s) { math_.add(own(at(s).x), own(at(s).y1), own(at(s).x1), own_size()); }
void Transformer::norm2(const Place& s) { math_.norm(norm_of(at(s).x1, weight("norm2", s)), own(at(s).n2), at(s).r2); }
void Transformer::up(const Place& s) { forward(at(s).n2, weight("up", s), at(s).u, 2 * facts_.ffn, facts_.hidden); }
void Transformer::activation(const Place& s) { math_.swiglu(facts_.rows, facts_.ffn, at(s).u, at(s).a); }
void Transformer::down(const Place& s) { forward(at(s).a, weight("down", s), at(s).y2, facts_.hidden, facts_.ffn); }
void Transformer::residual2(const Place& s) {
  if (!s.again) math_.add(own(at(s).x1), own(at(s).y2), own(micros_[s.micro].h), own_size());
}

void Transformer::down_dgrad(const Place& s) {
  math_.copy(micros_[s.micro].g, at(s).g, hidden_size());
  input_gradient(at(s).g, weight("down", s), at(s).da, facts_.hidden, facts_.ffn);
}
void Transformer::down_wgrad(const Place& s) { weight_gradient(at(s).g, at(s).a, slope("down", s), facts_.hidden, facts_.ffn); }
void Transformer::activation_gradient(const Place& s) { math_.swiglu_gradient(facts_.rows, facts_.ffn, at(s).u, at(s).da, at(s).du); }
void Transformer::up_dgrad(const Place& s) { input_gradient(at(s).du, weight("up", s), at(s).dn2, 2 * facts_.ffn, facts_.hidden); }
void Transformer::up_wgrad(const Place& s) { weight_gradient(at(s).du, at(s).n2, slope("up", s), 2 * facts_.ffn, facts_.hidden); }
void Transformer::norm2_gradient(const Place& s) {
  LayerTensors& t = at(s);
  math_.norm_gradient(norm_of(t.x1, weight("norm2", s)), t.r2, own(t.dn2), own(t.dx1), slope("norm2", s));
}
void Transformer::residual2_gradient(const Place& s) { math_.add(own(at(s).g), own(at(s).dx1), own(at(s).g1), own_size()); }

void Transformer::out_dgrad(const Place& s) { input_gradient(at(s).g1, weight("out", s), at(s).d_o, facts_.hidden, facts_.query_width()); }
void Transformer::out_wgrad(const Place& s) { weight_gradient(at(s).g1, at(s).o, slope("out", s), facts_.hidden, facts_.query_width()); }
void Transformer::core_gradient(const Place& s) {
  LayerTensors& t = at(s);
  math_.attention_gradient({facts_.attention, t.qkv}, t.o, t.lse, t.d_o, t.dqkv);
}
void Transformer::rotary_gradient(const Place& s) {
  const plan::AttentionShape& a = facts_.attention;
  math_.rotate({facts_.sequence, a.query_heads + a.kv_heads, a.head_dim, facts_.qkv_width(), -1.0F}, facts_.rows, at(s).dqkv);
}
void Transformer::qkv_dgrad(const Place& s) { input_gradient(at(s).dqkv, weight("qkv", s), at(s).dn1, facts_.qkv_width(), facts_.hidden); }
void Transformer::qkv_wgrad(const Place& s) { weight_gradient(at(s).dqkv, at(s).n1, slope("qkv", s), facts_.qkv_width(), facts_.hidden); }
void Transformer::norm1_gradient(const Place& s) {
  LayerTensors& t = at(s);
  math_.norm_gradient(norm_of(t.x, weight("norm1", s)), t.r1, own(t.dn1), own(t.dx), slope("norm1", s));
}
void Transformer::residual1_gradient(const Place& s) { math_.add(own(at(s).g1), own(at(s).dx), own(micros_[s.micro].g), own_size()); }

void Transformer::final_norm(const Place& s) {
  MicroTensors& m = micros_[s.micro];
  math_.norm(norm_of(m.h, weight_of_end("final_norm")), own(m.nf), m.rf);
}
void Transformer::logits(const Place& s) { forward(micros_[s.micro].nf, weight_of_end("logits"), micros_[s.micro].z, facts_.vocab, facts_.hidden); }
void Transformer::loss_forward(const Place& s) {
  MicroTensors& m = micros_[s.micro];
  math_.loss(facts_.rows, band(), m.labels, m.z, m.rows);
  math_.copy(m.rows.most, m.most, static_cast<std::size_t>(facts_.rows));
}
void Transformer::most_reduced(const Place& s) {
  MicroTensors& m = micros_[s.micro];
  math_.rescale(static_cast<std::size_t>(facts_.rows), m.rows.most, m.most, m.rows.sum);
}
void Transformer::loss_gradient(const Place& s) {
  MicroTensors& m = micros_[s.micro];
  const auto rows = static_cast<std::size_t>(facts_.rows);
  std::vector<float> most(rows);
  std::vector<float> label(rows);
  std::vector<float> sum(rows);
  math_.download(m.most, most);
  math_.download(m.rows.label, label);
  math_.download(m.rows.sum, sum);
  for (std::size_t i = 0; i < rows; ++i) loss_ += (std::log(double{sum[i]}) + double{most[i]} - double{label[i]}) / static_cast<double>(facts_.tokens_in_step);
  math_.loss_gradient(facts_.rows, band(), m.labels, {m.most, m.rows.label, m.rows.sum}, scale(), m.z);
}
void Transformer::logits_dgrad(const Place& s) { input_gradient(micros_[s.micro].z, weight_of_end("logits"), micros_[s.micro].dnf, facts_.vocab, facts_.hidden); }
void Transformer::logits_wgrad(const Place& s) { weight_gradient(micros_[s.micro].z, micros_[s.micro].nf, slope_of_end("logits", s), facts_.vocab, facts_.hidden); }
void Transformer::final_norm_gradient(const Place& s) {
  MicroTensors& m = micros_[s.micro];
  math_.norm_gradient(norm_of(m.h, weight_of_end("final_norm")), m.rf, own(m.dnf), own(m.g), slope_of_end("final_norm", s));
}

void Transformer::forget(const std::string& label, const Place& s) {
  LayerTensors& t = at(s);
  const auto rows = static_cast<std::size_t>(facts_.rows);
  const auto poison = [&](float* data, std::int64_t width) { math_.fill(data, rows * static_cast<std::size_t>(width), std::numeric_limits<float>::quiet_NaN()); };
  if (label == "layer.norm1") poison(t.n1, facts_.hidden);
  if (label == "layer.attention.qkv") poison(t.qkv, facts_.qkv_width());
  if (label == "layer.attention.core") poison(t.o, facts_.query_width());
  if (label == "layer.residual1") poison(t.x1, facts_.hidden);
  if (label == "layer.norm2") poison(t.n2, facts_.hidden);
  if (label == "layer.mlp.up") poison(t.u, 2 * facts_.ffn);
  if (label == "layer.mlp.activation") poison(t.a, facts_.ffn);
}

void Transformer::add_squares(float* sum) const {
  for (const Parameter& p : parameters_.all()) {
    if (p.replicated && facts_.tp_rank > 0) continue;
    if (p.name == "logits" && facts_.tied) continue;  // a copy of the first stage's table
    for (const Piece& piece : exchange_->own()) {
      const std::size_t from = std::max(piece.begin, p.offset);
      const std::size_t to = std::min(piece.end, p.offset + p.size());
      if (from < to) math_.add_squares(exchange_->sums() + from, to - from, sum);
    }
  }
}

void Transformer::update(const kernels::AdamStep& step) {
  for (const Piece& piece : exchange_->own()) {
    math_.adam(step, piece.size(), exchange_->owned_values() + piece.begin, exchange_->sums() + piece.begin, first_ + piece.begin, second_ + piece.begin);
  }
}

}  // namespace stepcast::executor
