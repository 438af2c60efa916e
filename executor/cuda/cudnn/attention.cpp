#include "executor/cuda/cudnn/attention.hpp"

#include <limits>
#include <utility>
#include <vector>

namespace stepcast::executor::cudnn {
namespace {

constexpr std::size_t kLine = 256;  // bytes: pieces of the workspace begin at these

std::size_t lines(std::int64_t bytes) { return (static_cast<std::size_t>(bytes) + kLine - 1) / kLine * kLine; }

// Strides of [batch, heads, length, width] that lies as [batch, length, heads, width].
Extent by_heads(std::int64_t length, std::int64_t heads, std::int64_t width) { return {length * heads * width, width, heads * width, 1}; }

Extent turned(Extent e) {
  std::swap(e[2], e[3]);
  return e;
}

Data data_of(plan::Dtype dtype) {
  if (dtype == plan::Dtype::kBf16) return Data::kBfloat16;
  if (dtype == plan::Dtype::kFp16) return Data::kHalf;
  throw Refused("attention in 16 bits only");
}

}  // namespace

AttentionGraph::AttentionGraph(const Api& api, const kernels::FlashShape& shape, plan::Dtype dtype, Pass pass) : shape_{shape}, data_{data_of(dtype)}, graph_{api} {
  if (shape.window > 0) throw Refused("attention over a window");
  if (shape.causal && shape.query_length != shape.kv_length) throw Refused("causal attention of fewer queries than keys");
  pass == Pass::kForward ? forward() : backward();
}

// Masked: what a query does not see is -inf.
std::int64_t AttentionGraph::masked_scores(std::int64_t scores) {
  Graph& g = graph_;
  if (!shape_.causal) return scores;
  const Extent square{shape_.batch, shape_.query_heads, shape_.query_length, shape_.kv_length};
  const std::int64_t row = g.between(square, Data::kInt32);
  const std::int64_t column = g.between(square, Data::kInt32);
  const std::int64_t seen = g.between(square, Data::kBoolean);
  const std::int64_t masked = g.between(square);
  ids_.masked = g.value();
  g.index(2, scores, row);
  g.index(3, scores, column);
  g.pointwise(Pointwise::kGreaterOrEqual, row, column, seen);
  g.select(scores, ids_.masked, seen, masked);
  return masked;
}

void AttentionGraph::forward() {
  Graph& g = graph_;
  const kernels::FlashShape& s = shape_;
  const Extent square{s.batch, s.query_heads, s.query_length, s.kv_length};
  const Extent column{s.batch, s.query_heads, s.query_length, 1};
  const Extent keys{s.batch, s.kv_heads, s.kv_length, s.head_dim};
  ids_.q = g.tensor({s.batch, s.query_heads, s.query_length, s.head_dim}, by_heads(s.query_length, s.query_heads, s.head_dim), data_);
  ids_.k = g.tensor(turned(keys), turned(by_heads(s.kv_length, s.kv_heads, s.head_dim)), data_);
  ids_.v = g.tensor({s.batch, s.kv_heads, s.kv_length, s.value_dim}, by_heads(s.kv_length, s.kv_heads, s.value_dim), data_);
  ids_.out = g.tensor({s.batch, s.query_heads, s.query_length, s.value_dim}, by_heads(s.query_length, s.query_heads, s.value_dim), data_);
  ids_.log_sums = g.tensor(column, packed(column), Data::kFloat);
  ids_.scale = g.value();

  const std::int64_t product = g.between(square);
  g.matmul(ids_.q, ids_.k, product);
  const std::int64_t scaled = g.between(square);
  g.pointwise(Pointwise::kMul, product, ids_.scale, scaled);
  const std::int64_t scores = masked_scores(scaled);
  const std::int64_t most = g.between(column);
  g.reduce(Reduce::kMax, scores, most);
  const std::int64_t below = g.between(square);
  g.pointwise(Pointwise::kSub, scores, most, below);
  const std::int64_t weights = g.between(square);
  g.pointwise(Pointwise::kExp, below, weights);
  const std::int64_t sum = g.between(column);
  g.reduce(Reduce::kAdd, weights, sum);
  const std::int64_t log = g.between(column);
  g.pointwise(Pointwise::kLog, sum, log);
  g.pointwise(Pointwise::kAdd, most, log, ids_.log_sums);
  const std::int64_t shares = g.between(square, data_);
  g.pointwise(Pointwise::kDiv, weights, sum, shares);
  g.matmul(shares, ids_.v, ids_.out);
}

void AttentionGraph::backward() {
  Graph& g = graph_;
  const kernels::FlashShape& s = shape_;
  const Extent square{s.batch, s.query_heads, s.query_length, s.kv_length};
  const Extent column{s.batch, s.query_heads, s.query_length, 1};
  const Extent queries{s.batch, s.query_heads, s.query_length, s.head_dim};
  const Extent outs{s.batch, s.query_heads, s.query_length, s.value_dim};
  const Extent keys{s.batch, s.kv_heads, s.kv_length, s.head_dim};
  const Extent values{s.batch, s.kv_heads, s.kv_length, s.value_dim};
  const Extent q_strides = by_heads(s.query_length, s.query_heads, s.head_dim);
  const Extent o_strides = by_heads(s.query_length, s.query_heads, s.value_dim);
  const Extent k_strides = by_heads(s.kv_length, s.kv_heads, s.head_dim);
  const Extent v_strides = by_heads(s.kv_length, s.kv_heads, s.value_dim);
  ids_.q = g.tensor(queries, q_strides, data_);
  ids_.k = g.tensor(turned(keys), turned(k_strides), data_);
  ids_.v = g.tensor(turned(values), turned(v_strides), data_);
  ids_.out = g.tensor(outs, o_strides, data_);
  ids_.dout = g.tensor(outs, o_strides, data_);
  ids_.log_sums = g.tensor(column, packed(column), Data::kFloat);
  ids_.dq = g.tensor(queries, q_strides, data_);
  ids_.dk = g.tensor(keys, k_strides, data_);
  ids_.dv = g.tensor(values, v_strides, data_);
  ids_.scale = g.value();
  ids_.one = g.value();
  ids_.delta = g.tensor(column, packed(column), Data::kFloat);
  ids_.dq_sums = g.tensor(queries, packed(queries), Data::kFloat);
  sums_ = lines(4 * s.batch * s.query_heads * s.query_length);
  zeroed_ = lines(4 * s.batch * s.query_heads * s.query_length * s.head_dim);

  // D, times one: the engines look for the factor of dropout.
  const std::int64_t both = g.between(outs);
  g.pointwise(Pointwise::kMul, ids_.dout, ids_.out, both);
  const std::int64_t delta = g.between(column);
  g.reduce(Reduce::kAdd, both, delta);
  g.pointwise(Pointwise::kMul, delta, ids_.one, ids_.delta);

  const std::int64_t product = g.between(square);
  g.matmul(ids_.q, ids_.k, product);
  const std::int64_t scaled = g.between(square);
  g.pointwise(Pointwise::kMul, product, ids_.scale, scaled);
  const std::int64_t below = g.between(square);
  g.pointwise(Pointwise::kSub, scaled, ids_.log_sums, below);
  const std::int64_t scores = masked_scores(below);
  const std::int64_t shares = g.between(square);
  g.pointwise(Pointwise::kExp, scores, shares);

  // Of all query heads; those that share a key are added up.
  const auto down = [&](std::int64_t from, std::int64_t by, std::int64_t to, std::int64_t width) {
    const Extent across{s.batch, s.query_heads, s.kv_length, s.query_length};
    const std::int64_t rows = g.between(across, turned(packed(square)), data_);
    g.reshape(from, rows);
    if (s.query_heads == s.kv_heads) return g.matmul(rows, by, to);
    const std::int64_t each = g.between({s.batch, s.query_heads, s.kv_length, width}, data_);
    g.matmul(rows, by, each);
    g.reduce(Reduce::kAdd, each, to);
  };
  down(shares, ids_.dout, ids_.dv, s.value_dim);

  const std::int64_t slopes = g.between(square);
  g.matmul(ids_.dout, ids_.v, slopes);
  const std::int64_t less = g.between(square);
  g.pointwise(Pointwise::kSub, slopes, ids_.delta, less);
  const std::int64_t weighted = g.between(square);
  g.pointwise(Pointwise::kMul, less, shares, weighted);
  const std::int64_t ds = g.between(square);
  g.pointwise(Pointwise::kMul, weighted, ids_.scale, ds);
  down(ds, ids_.q, ids_.dk, s.head_dim);

  const std::int64_t upright = g.between(keys, k_strides, data_);
  g.reshape(ids_.k, upright);
  g.matmul(ds, upright, ids_.dq_sums);
  g.pointwise(Pointwise::kIdentity, ids_.dq_sums, ids_.dq);
}

void AttentionGraph::run(const Plan& plan, Handle handle, const AttentionOperands& o, void* workspace) const {
  float scale = shape_.scale();
  float masked = -std::numeric_limits<float>::infinity();
  float one = 1.0F;
  const auto in = [](const void* data) { return const_cast<void*>(data); };  // the library's interface has no inputs
  auto* const base = static_cast<unsigned char*>(workspace);
  std::vector<Operand> operands;
  operands.reserve(16);
  // Those that the pass has.
  const auto give = [&](std::int64_t tensor, void* data) {
    if (tensor != 0) operands.push_back({tensor, data});
  };
  give(ids_.q, in(o.q));
  give(ids_.k, in(o.k));
  give(ids_.v, in(o.v));
  give(ids_.out, o.out);
  give(ids_.log_sums, o.log_sums);
  give(ids_.scale, &scale);
  give(ids_.masked, &masked);
  give(ids_.dout, in(o.dout));
  give(ids_.dq, o.dq);
  give(ids_.dk, o.dk);
  give(ids_.dv, o.dv);
  give(ids_.one, &one);
  give(ids_.dq_sums, base);
  give(ids_.delta, base + zeroed_);
  plan.run(handle, operands, base + zeroed_ + sums_);
}

}  // namespace stepcast::executor::cudnn
