#include "executor/cpu/attention.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Core>

namespace stepcast::executor {
namespace {

using Eigen::Index;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Column = Eigen::Matrix<float, Eigen::Dynamic, 1>;
using Strided = Eigen::OuterStride<>;
using In = Eigen::Map<const Matrix, 0, Strided>;
using Out = Eigen::Map<Matrix, 0, Strided>;

constexpr Index kQueryBlock = 64;

// One head's matrices, and the keys that a block of its queries sees.
struct Head {
  const plan::AttentionShape& shape;
  Index batch;
  Index head;

  [[nodiscard]] Index kv_head() const { return head * shape.kv_heads / shape.query_heads; }
  template <class Map, class Scalar>
  [[nodiscard]] Map rows(Scalar* base, Index length, Index heads, Index which, Index dim, Index stride) const {
    if (stride == 0) stride = heads * dim;
    return Map{base + batch * length * stride + which * dim, length, dim, Strided{stride}};
  }
  [[nodiscard]] Index first_key(Index query) const {
    if (!shape.window) return 0;
    return std::max<Index>(0, query + offset() + 1 - *shape.window);
  }
  [[nodiscard]] Index end_key(Index query) const {
    return shape.causal ? std::clamp<Index>(query + offset() + 1, 0, shape.kv_length) : shape.kv_length;
  }
  [[nodiscard]] Index offset() const { return shape.kv_length - shape.query_length; }
  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }
};

struct Block {
  Index query, count;  // rows
  Index key, keys;     // columns that any row sees
};

template <class Do>
void for_blocks(const Head& h, Do&& each) {
  for (Index query = 0; query < h.shape.query_length; query += kQueryBlock) {
    const Index count = std::min<Index>(kQueryBlock, h.shape.query_length - query);
    const Index key = h.first_key(query);
    each(Block{query, count, key, std::max<Index>(0, h.end_key(query + count - 1) - key)});
  }
}

// exp(score - subtracted), 0 where masked.
template <class Subtract>
void exponentials(const Head& h, const Block& b, Matrix& scores, Subtract&& subtracted) {
  for (Index i = 0; i < b.count; ++i) {
    const Index from = std::clamp<Index>(h.first_key(b.query + i) - b.key, 0, b.keys);
    const Index to = std::clamp<Index>(h.end_key(b.query + i) - b.key, from, b.keys);
    scores.row(i).head(from).setZero();
    scores.row(i).tail(b.keys - to).setZero();
    auto seen = scores.row(i).segment(from, to - from);
    if (to > from) seen = (seen.array() - subtracted(i, seen)).exp();
  }
}

template <class Do>
void for_heads(const plan::AttentionShape& shape, Do&& each) {
  for (Index b = 0; b < shape.batch; ++b) {
    for (Index h = 0; h < shape.query_heads; ++h) each(Head{shape, b, h});
  }
}

Index row_of(const Head& h) { return (h.batch * h.shape.query_heads + h.head) * h.shape.query_length; }

}  // namespace

void attention_forward(const plan::AttentionShape& s, const AttentionInputs& in, float* out, float* log_sums) {
  Matrix scores;
  for_heads(s, [&](const Head& h) {
    const In q = h.rows<In>(in.q, s.query_length, s.query_heads, h.head, s.head_dim, in.stride);
    const In k = h.rows<In>(in.k, s.kv_length, s.kv_heads, h.kv_head(), s.head_dim, in.stride);
    const In v = h.rows<In>(in.v, s.kv_length, s.kv_heads, h.kv_head(), s.value_dim, in.stride);
    Out o = h.rows<Out>(out, s.query_length, s.query_heads, h.head, s.value_dim, 0);
    for_blocks(h, [&](const Block& b) {
      scores.noalias() = h.scale() * q.middleRows(b.query, b.count) * k.middleRows(b.key, b.keys).transpose();
      Column most{b.count};
      exponentials(h, b, scores, [&](Index i, const auto& seen) { return most[i] = seen.maxCoeff(); });
      const Column sums = scores.rowwise().sum();
      o.middleRows(b.query, b.count).noalias() = sums.cwiseInverse().asDiagonal() * scores * v.middleRows(b.key, b.keys);
      for (Index i = 0; i < b.count; ++i) log_sums[row_of(h) + b.query + i] = most[i] + std::log(sums[i]);
    });
  });
}

void attention_backward(const plan::AttentionShape& s, const AttentionInputs& in, const float* out, const float* log_sums,
                        const float* out_gradient, const AttentionGradients& gradients) {
  for (Index b = 0; b < s.batch; ++b) {
    for (Index h = 0; h < s.kv_heads; ++h) {
      const Head head{s, b, h * s.query_heads / s.kv_heads};
      head.rows<Out>(gradients.k, s.kv_length, s.kv_heads, h, s.head_dim, gradients.stride).setZero();
      head.rows<Out>(gradients.v, s.kv_length, s.kv_heads, h, s.value_dim, gradients.stride).setZero();
    }
  }
  Matrix scores;
  Matrix slopes;
  for_heads(s, [&](const Head& h) {
    const In q = h.rows<In>(in.q, s.query_length, s.query_heads, h.head, s.head_dim, in.stride);
    const In k = h.rows<In>(in.k, s.kv_length, s.kv_heads, h.kv_head(), s.head_dim, in.stride);
    const In v = h.rows<In>(in.v, s.kv_length, s.kv_heads, h.kv_head(), s.value_dim, in.stride);
    const In o = h.rows<In>(out, s.query_length, s.query_heads, h.head, s.value_dim, 0);
    const In d_o = h.rows<In>(out_gradient, s.query_length, s.query_heads, h.head, s.value_dim, 0);
    Out d_q = h.rows<Out>(gradients.q, s.query_length, s.query_heads, h.head, s.head_dim, gradients.stride);
    Out d_k = h.rows<Out>(gradients.k, s.kv_length, s.kv_heads, h.kv_head(), s.head_dim, gradients.stride);
    Out d_v = h.rows<Out>(gradients.v, s.kv_length, s.kv_heads, h.kv_head(), s.value_dim, gradients.stride);
    for_blocks(h, [&](const Block& b) {
      const auto q_b = q.middleRows(b.query, b.count);
      const auto d_o_b = d_o.middleRows(b.query, b.count);
      scores.noalias() = h.scale() * q_b * k.middleRows(b.key, b.keys).transpose();
      exponentials(h, b, scores, [&](Index i, const auto&) { return log_sums[row_of(h) + b.query + i]; });
      d_v.middleRows(b.key, b.keys).noalias() += scores.transpose() * d_o_b;
      slopes.noalias() = d_o_b * v.middleRows(b.key, b.keys).transpose();
      const Column along = d_o_b.cwiseProduct(o.middleRows(b.query, b.count)).rowwise().sum();
      slopes.colwise() -= along;
      slopes = h.scale() * slopes.cwiseProduct(scores);
      d_q.middleRows(b.query, b.count).noalias() = slopes * k.middleRows(b.key, b.keys);
      d_k.middleRows(b.key, b.keys).noalias() += slopes.transpose() * q_b;
    });
  });
}

}  // namespace stepcast::executor
