#include "executor/common/parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/hash.hpp"

namespace stepcast::executor {
namespace {

int key_of(std::optional<std::uint16_t> layer) { return layer ? *layer : -1; }

// The operator whose end is that of the parameter's gradient. Norms of a layer count as ready with the layer, as the planner's buckets
// have it (models/parallel/bucket.hpp).
std::string gradient_label(const Parameter& p) {
  if (p.name == "embedding") return "embedding.grad";
  if (p.name == "logits") return "head.logits.wgrad";
  if (p.name == "final_norm") return "head.final_norm.grad";
  if (p.name == "norm1" || p.name == "norm2") return "layer.norm1.grad";
  return (p.name == "up" || p.name == "down" ? "layer.mlp." : "layer.attention.") + p.name + ".wgrad";
}

std::int64_t place(std::int64_t local, std::int64_t width, const TransformerFacts& f) { return f.tp_rank * width + local; }

// Where a local element lies in the whole matrix.
struct Spot {
  std::int64_t row;
  std::int64_t column;
};
Spot spot_of(const Parameter& p, const TransformerFacts& f, std::int64_t row, std::int64_t column) {
  if (p.name == "embedding" || p.name == "logits") return {place(row, f.vocab, f), column};
  if (p.name == "out") return {row, place(column, f.query_width(), f)};
  if (p.name == "down") return {row, place(column, f.ffn, f)};
  if (p.name == "up") return {row < f.ffn ? place(row, f.ffn, f) : f.tp * f.ffn + place(row - f.ffn, f.ffn, f), column};
  if (p.name == "qkv") {
    const std::int64_t q = f.query_width();
    const std::int64_t k = f.key_width();
    if (row < q) return {place(row, q, f), column};
    if (row < q + k) return {f.tp * q + place(row - q, k, f), column};
    return {f.tp * (q + k) + place(row - q - k, k, f), column};
  }
  return {row, column};
}

}  // namespace

Parameters::Parameters(const TransformerFacts& facts, const plan::Program& program) : facts_{facts} {
  const auto add = [&](const char* name, std::optional<std::uint16_t> layer, std::int64_t rows, std::int64_t columns, bool replicated) {
    all_.push_back({.name = name, .layer = layer, .rows = rows, .columns = columns, .offset = 0, .replicated = replicated});
  };
  const TransformerFacts& f = facts_;
  if (f.first) add("embedding", std::nullopt, f.vocab, f.hidden, false);
  for (const std::uint16_t layer : f.layers) {
    add("norm1", layer, 1, f.hidden, true);
    add("qkv", layer, f.qkv_width(), f.hidden, false);
    add("out", layer, f.hidden, f.query_width(), false);
    add("norm2", layer, 1, f.hidden, true);
    add("up", layer, 2 * f.ffn, f.hidden, false);
    add("down", layer, f.hidden, f.ffn, false);
  }
  if (f.last) {
    add("final_norm", std::nullopt, 1, f.hidden, true);
    if (!f.tied || !f.first) add("logits", std::nullopt, f.vocab, f.hidden, false);
  }
  std::map<std::pair<std::string, int>, std::size_t> ready;  // label and layer -> last instruction
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const plan::Instruction& instruction = program.instructions[i];
    if (std::holds_alternative<plan::Compute>(instruction.body)) ready[{program.labels[instruction.label.index()], key_of(instruction.layer)}] = i;
  }
  const auto when = [&](const Parameter& p) {
    const auto it = ready.find({gradient_label(p), key_of(p.layer)});
    SIM_CHECK(it != ready.end(), p.name, key_of(p.layer));
    return it->second;
  };
  std::stable_sort(all_.begin(), all_.end(), [&](const Parameter& a, const Parameter& b) { return when(a) < when(b); });
  for (std::size_t i = 0; i < all_.size(); ++i) {
    all_[i].offset = size_;
    size_ += all_[i].size();
    index_[{all_[i].name, key_of(all_[i].layer)}] = i;
  }
}

const Parameter& Parameters::get(const std::string& name, std::optional<std::uint16_t> layer) const {
  const auto it = index_.find({name, key_of(layer)});
  SIM_CHECK(it != index_.end(), name, key_of(layer));
  return all_[it->second];
}

std::vector<float> Parameters::initial(std::uint64_t seed) const {
  std::vector<float> values(size_);
  for (const Parameter& p : all_) {
    if (p.name.find("norm") != std::string::npos) {
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(p.offset), p.size(), 1.0F);
      continue;
    }
    Fingerprint name;
    name.add(seed);
    name.add(std::string_view{facts_.tied && p.name == "logits" ? "embedding" : p.name});
    name.add(std::int64_t{key_of(p.layer)});
    // Uniform with the deviation 0.02 of GPT-2, which suits small widths too.
    const float most = 0.02F * std::sqrt(3.0F);
    for (std::int64_t r = 0; r < p.rows; ++r) {
      for (std::int64_t c = 0; c < p.columns; ++c) {
        const Spot spot = spot_of(p, facts_, r, c);
        const std::uint64_t bits = mix64(name.value() ^ mix64(static_cast<std::uint64_t>(spot.row) << 32U | static_cast<std::uint64_t>(spot.column)));
        values[p.offset + static_cast<std::size_t>(r * p.columns + c)] = most * (static_cast<float>(bits >> 40U) * 0x1.0p-23F - 1.0F);
      }
    }
  }
  return values;
}

}  // namespace stepcast::executor
