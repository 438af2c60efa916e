// executor/common/kernels/flash.hpp — attention by blocks, without the score matrix: what a team of threads does for one block of queries
// (forward) or of keys (backward). One text for GPUs, where a team is a thread block and tile products run on tensor cores, and for
// CPUs, where tests hold it against the row-wise kernels (attention.hpp).
//
// Source   Dao et al. 2022 and Dao 2023 (arXiv 2205.14135, 2307.08691): running maximum and sum per row; backward from kept log-sums, five
//          products, query gradients added up in fp32
// Storage  T in and out, fp32 for sums; tiles lie in the team's shared memory, rows padded against bank conflicts
// Valid    head and value widths in multiples of kStep
// A Team   each(n, f), each_row(n, f(row, lane, lanes)), most(x) and sum(x) over the lanes of a row, copy_rows, multiply<ta, tb>, add_to, sync
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor::kernels {

inline constexpr int kStep = 16;  // sides of a tensor-core tile

struct FlashShape {
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t query_length = 1;
  std::int64_t kv_length = 1;
  int head_dim = 64;
  int value_dim = 64;
  bool causal = true;
  std::int64_t window = 0;  // keys a query sees at most; 0: all

  // Queries are the last of the keys: what a query sees at most, and at least.
  STEPCAST_HOST_DEVICE std::int64_t end_of(std::int64_t query) const {
    const std::int64_t end = query + kv_length - query_length + 1;
    return causal && end < kv_length ? end : kv_length;
  }
  STEPCAST_HOST_DEVICE std::int64_t begin_of(std::int64_t query) const {
    const std::int64_t begin = window > 0 ? query + kv_length - query_length + 1 - window : 0;
    return begin > 0 ? begin : 0;
  }
  STEPCAST_HOST_DEVICE bool sees(std::int64_t query, std::int64_t key) const { return key >= begin_of(query) && key < end_of(query); }
  STEPCAST_HOST_DEVICE float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim)); }
  STEPCAST_HOST_DEVICE std::int64_t group() const { return query_heads / kv_heads; }
};

// [batch, length, heads, width]
template <class T>
struct FlashInputs {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
};
template <class T>
struct FlashSlopes {
  const T* dout = nullptr;
  const float* log_sums = nullptr;  // [batch, query_heads, query_length]
  const float* delta = nullptr;     // the same shape: sum of out * dout over a row
  float* dq = nullptr;              // zero before
  T* dk = nullptr;
  T* dv = nullptr;
};

// Elements of a padded row of T, of floats.
STEPCAST_HOST_DEVICE constexpr int padded(int width) { return width + 8; }
STEPCAST_HOST_DEVICE constexpr int padded_floats(int width) { return width + 4; }

// Steps between rows of global memory and of tiles, and where a head's rows begin.
struct FlashLayout {
  std::int64_t q, o, k, v;             // global, elements
  int tile_head, tile_value;           // tiles of T
  int tile_head_sums, tile_value_sums; // tiles of floats
  STEPCAST_HOST_DEVICE explicit FlashLayout(const FlashShape& s)
      : q{s.query_heads * s.head_dim},
        o{s.query_heads * s.value_dim},
        k{s.kv_heads * s.head_dim},
        v{s.kv_heads * s.value_dim},
        tile_head{padded(s.head_dim)},
        tile_value{padded(s.value_dim)},
        tile_head_sums{padded_floats(s.head_dim)},
        tile_value_sums{padded_floats(s.value_dim)} {}
  STEPCAST_HOST_DEVICE std::int64_t key(const FlashShape& s, std::int64_t batch, std::int64_t row, std::int64_t head) const { return (batch * s.kv_length + row) * k + head * s.head_dim; }
  STEPCAST_HOST_DEVICE std::int64_t value(const FlashShape& s, std::int64_t batch, std::int64_t row, std::int64_t head) const { return (batch * s.kv_length + row) * v + head * s.value_dim; }
  STEPCAST_HOST_DEVICE std::int64_t query(const FlashShape& s, std::int64_t batch, std::int64_t row, std::int64_t head) const { return (batch * s.query_length + row) * q + head * s.head_dim; }
  STEPCAST_HOST_DEVICE std::int64_t out(const FlashShape& s, std::int64_t batch, std::int64_t row, std::int64_t head) const { return (batch * s.query_length + row) * o + head * s.value_dim; }
};

// Pieces of a team's memory, one behind the other, each on a line of 128 bytes.
class Carver {
 public:
  STEPCAST_HOST_DEVICE explicit Carver(unsigned char* base) : base_{base} {}
  template <class E>
  STEPCAST_HOST_DEVICE E* take(int count) {
    E* const piece = base_ == nullptr ? nullptr : reinterpret_cast<E*>(base_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(E) + 127) / 128 * 128;
    return piece;
  }
  [[nodiscard]] STEPCAST_HOST_DEVICE std::size_t used() const { return used_; }

 private:
  unsigned char* base_;
  std::size_t used_ = 0;
};

template <class T>
struct FlashForwardTiles {
  static constexpr int kQueries = 64;
  static constexpr int kKeys = 64;
  T* q;
  T* k;
  T* v;
  T* p;
  float* s;
  float* o;
  float* most;
  float* sum;
  std::size_t bytes;
  STEPCAST_HOST_DEVICE FlashForwardTiles(const FlashShape& shape, unsigned char* memory) {
    Carver carver{memory};
    q = carver.take<T>(kQueries * padded(shape.head_dim));
    k = carver.take<T>(kKeys * padded(shape.head_dim));
    v = carver.take<T>(kKeys * padded(shape.value_dim));
    p = carver.take<T>(kQueries * padded(kKeys));
    s = carver.take<float>(kQueries * padded_floats(kKeys));
    o = carver.take<float>(kQueries * padded_floats(shape.value_dim));
    most = carver.take<float>(kQueries);
    sum = carver.take<float>(kQueries);
    bytes = carver.used();
  }
};

STEPCAST_HOST_DEVICE constexpr std::int64_t blocks_of(std::int64_t length, int block) { return (length + block - 1) / block; }

template <class T>
STEPCAST_HOST_DEVICE std::int64_t flash_forward_items(const FlashShape& s) {
  return s.batch * s.query_heads * blocks_of(s.query_length, FlashForwardTiles<T>::kQueries);
}

// Both passes: a block of keys and values into their tiles, zeros behind the last. Answers how many there are.
template <class Tiles, class T, class Team>
STEPCAST_HOST_DEVICE std::int64_t load_keys(Team& team, const Tiles& t, const FlashShape& s, const FlashLayout& at, const FlashInputs<T>& in, std::int64_t batch, std::int64_t first, std::int64_t kv_head) {
  const std::int64_t keys = s.kv_length - first < Tiles::kKeys ? s.kv_length - first : Tiles::kKeys;
  team.copy_rows(t.k, at.tile_head, in.k + at.key(s, batch, first, kv_head), at.k, Tiles::kKeys, keys, s.head_dim);
  team.copy_rows(t.v, at.tile_value, in.v + at.value(s, batch, first, kv_head), at.v, Tiles::kKeys, keys, s.value_dim);
  return keys;
}

// Both passes: a block of queries into its tile.
template <class Tiles, class T, class Team>
STEPCAST_HOST_DEVICE void load_queries(Team& team, const Tiles& t, const FlashShape& s, const FlashLayout& at, const FlashInputs<T>& in, std::int64_t batch, std::int64_t first, std::int64_t rows, std::int64_t head) {
  team.copy_rows(t.q, at.tile_head, in.q + at.query(s, batch, first, head), at.q, Tiles::kQueries, rows, s.head_dim);
}

// Item: a block of queries of one head; those that see most come first.
template <class T, class Team>
STEPCAST_HOST_DEVICE void flash_forward(Team& team, std::int64_t item, const FlashShape& s, const FlashInputs<T>& in, T* out, float* log_sums, unsigned char* memory) {
  using Tiles = FlashForwardTiles<T>;
  const Tiles t{s, memory};
  const std::int64_t heads = s.batch * s.query_heads;
  const std::int64_t first = (blocks_of(s.query_length, Tiles::kQueries) - 1 - item / heads) * Tiles::kQueries;
  const std::int64_t head = item % heads % s.query_heads;
  const std::int64_t batch = item % heads / s.query_heads;
  const std::int64_t rows = s.query_length - first < Tiles::kQueries ? s.query_length - first : Tiles::kQueries;
  const FlashLayout at{s};
  const int op = at.tile_value_sums;
  constexpr int kSp = padded_floats(Tiles::kKeys);
  constexpr int kPp = padded(Tiles::kKeys);
  const float scale = s.scale();

  load_queries(team, t, s, at, in, batch, first, rows, head);
  team.each(Tiles::kQueries * op, [&](int i) { t.o[i] = 0.0F; });
  team.each(Tiles::kQueries, [&](int i) {
    t.most[i] = -INFINITY;
    t.sum[i] = 0.0F;
  });
  const std::int64_t end = s.end_of(first + rows - 1);
  for (std::int64_t k0 = s.begin_of(first) / Tiles::kKeys * Tiles::kKeys; k0 < end; k0 += Tiles::kKeys) {
    team.sync();
    const std::int64_t keys = load_keys(team, t, s, at, in, batch, k0, head / s.group());
    team.sync();
    team.template multiply<false, true>(t.q, at.tile_head, t.k, at.tile_head, t.s, kSp, Tiles::kQueries, Tiles::kKeys, s.head_dim, false);
    team.sync();
    team.each_row(Tiles::kQueries, [&](int row, int lane, int lanes) {
      const std::int64_t query = first + row;
      float* const scores = t.s + row * kSp;
      float most = -INFINITY;
      for (int c = lane; c < Tiles::kKeys; c += lanes) {
        const bool seen = row < rows && c < keys && s.sees(query, k0 + c);
        scores[c] = seen ? scores[c] * scale : -INFINITY;
        most = scores[c] > most ? scores[c] : most;
      }
      most = team.most(most);
      const float before = t.most[row];
      const float now = most > before ? most : before;
      float sum = 0.0F;
      for (int c = lane; c < Tiles::kKeys; c += lanes) {
        const float weight = scores[c] == -INFINITY ? 0.0F : std::exp(scores[c] - now);
        t.p[row * kPp + c] = static_cast<T>(weight);
        sum += weight;
      }
      sum = team.sum(sum);
      const float shrink = before == -INFINITY ? 0.0F : std::exp(before - now);
      for (int c = lane; c < s.value_dim; c += lanes) t.o[row * op + c] *= shrink;
      team.together();
      if (lane == 0) {
        t.sum[row] = t.sum[row] * shrink + sum;
        t.most[row] = now;
      }
    });
    team.sync();
    team.template multiply<false, false>(t.p, kPp, t.v, at.tile_value, t.o, op, Tiles::kQueries, s.value_dim, Tiles::kKeys, true);
  }
  team.sync();
  T* const block = out + at.out(s, batch, first, head);
  team.each(static_cast<int>(rows) * s.value_dim, [&](int i) {
    const int row = i / s.value_dim;
    const int c = i % s.value_dim;
    const float sum = t.sum[row];
    block[row * at.o + c] = static_cast<T>(sum > 0.0F ? t.o[row * op + c] / sum : 0.0F);
  });
  team.each(static_cast<int>(rows), [&](int row) {
    log_sums[(batch * s.query_heads + head) * s.query_length + first + row] = t.sum[row] > 0.0F ? t.most[row] + std::log(t.sum[row]) : INFINITY;
  });
}

// Index over batch * query_length * query_heads.
template <class T>
STEPCAST_HOST_DEVICE void flash_delta(std::int64_t index, const FlashShape& s, const T* out, const T* dout, float* delta) {
  const std::int64_t row = index / s.query_heads;
  const std::int64_t head = index % s.query_heads;
  float sum = 0.0F;
  for (int c = 0; c < s.value_dim; ++c) sum += static_cast<float>(out[index * s.value_dim + c]) * static_cast<float>(dout[index * s.value_dim + c]);
  delta[(row / s.query_length * s.query_heads + head) * s.query_length + row % s.query_length] = sum;
}

template <class T>
struct FlashBackwardTiles {
  static constexpr int kQueries = 32;
  static constexpr int kKeys = 64;
  T* k;
  T* v;
  T* q;
  T* dout;
  T* p;
  T* slopes;
  float* s;
  float* dp;
  float* dq;  // where s and dp were, which are done by then
  float* dk;
  float* dv;
  std::size_t bytes;
  STEPCAST_HOST_DEVICE FlashBackwardTiles(const FlashShape& shape, unsigned char* memory) {
    constexpr int kScores = kQueries * padded_floats(kKeys);
    Carver carver{memory};
    k = carver.take<T>(kKeys * padded(shape.head_dim));
    v = carver.take<T>(kKeys * padded(shape.value_dim));
    q = carver.take<T>(kQueries * padded(shape.head_dim));
    dout = carver.take<T>(kQueries * padded(shape.value_dim));
    p = carver.take<T>(kQueries * padded(kKeys));
    slopes = carver.take<T>(kQueries * padded(kKeys));
    const int query_floats = kQueries * padded_floats(shape.head_dim);
    s = carver.take<float>(2 * kScores > query_floats ? 2 * kScores : query_floats);
    dp = s == nullptr ? nullptr : s + kScores;
    dq = s;
    dk = carver.take<float>(kKeys * padded_floats(shape.head_dim));
    dv = carver.take<float>(kKeys * padded_floats(shape.value_dim));
    bytes = carver.used();
  }
};

template <class T>
STEPCAST_HOST_DEVICE std::int64_t flash_backward_items(const FlashShape& s) {
  return s.batch * s.kv_heads * blocks_of(s.kv_length, FlashBackwardTiles<T>::kKeys);
}

// Item: a block of keys of one key-value head, with all query heads that share it.
template <class T, class Team>
STEPCAST_HOST_DEVICE void flash_backward(Team& team, std::int64_t item, const FlashShape& s, const FlashInputs<T>& in, const FlashSlopes<T>& g, unsigned char* memory) {
  using Tiles = FlashBackwardTiles<T>;
  const Tiles t{s, memory};
  const std::int64_t heads = s.batch * s.kv_heads;
  const std::int64_t k0 = item / heads * Tiles::kKeys;
  const std::int64_t kv = item % heads % s.kv_heads;
  const std::int64_t batch = item % heads / s.kv_heads;
  const FlashLayout at{s};
  constexpr int kSp = padded_floats(Tiles::kKeys);
  constexpr int kPp = padded(Tiles::kKeys);
  const float scale = s.scale();

  const std::int64_t keys = load_keys(team, t, s, at, in, batch, k0, kv);
  team.each(Tiles::kKeys * at.tile_head_sums, [&](int i) { t.dk[i] = 0.0F; });
  team.each(Tiles::kKeys * at.tile_value_sums, [&](int i) { t.dv[i] = 0.0F; });

  // Queries that see any of these keys.
  const std::int64_t offset = s.kv_length - s.query_length;
  std::int64_t begin = s.causal ? k0 - offset : 0;
  begin = begin > 0 ? begin : 0;
  std::int64_t end = s.window > 0 ? k0 + keys - 1 - offset + s.window : s.query_length;
  end = end < s.query_length ? end : s.query_length;
  for (std::int64_t head = kv * s.group(); head < (kv + 1) * s.group(); ++head) {
    for (std::int64_t q0 = begin / Tiles::kQueries * Tiles::kQueries; q0 < end; q0 += Tiles::kQueries) {
      const std::int64_t rows = s.query_length - q0 < Tiles::kQueries ? s.query_length - q0 : Tiles::kQueries;
      const std::int64_t sums = (batch * s.query_heads + head) * s.query_length + q0;
      team.sync();
      load_queries(team, t, s, at, in, batch, q0, rows, head);
      team.copy_rows(t.dout, at.tile_value, g.dout + at.out(s, batch, q0, head), at.o, Tiles::kQueries, rows, s.value_dim);
      team.sync();
      team.template multiply<false, true>(t.q, at.tile_head, t.k, at.tile_head, t.s, kSp, Tiles::kQueries, Tiles::kKeys, s.head_dim, false);
      team.template multiply<false, true>(t.dout, at.tile_value, t.v, at.tile_value, t.dp, kSp, Tiles::kQueries, Tiles::kKeys, s.value_dim, false);
      team.sync();
      team.each(Tiles::kQueries * Tiles::kKeys, [&](int i) {
        const int row = i / Tiles::kKeys;
        const int c = i % Tiles::kKeys;
        float weight = 0.0F;
        float slope = 0.0F;
        if (row < rows && c < keys && s.sees(q0 + row, k0 + c)) {
          weight = std::exp(t.s[row * kSp + c] * scale - g.log_sums[sums + row]);
          slope = weight * (t.dp[row * kSp + c] - g.delta[sums + row]) * scale;
        }
        t.p[row * kPp + c] = static_cast<T>(weight);
        t.slopes[row * kPp + c] = static_cast<T>(slope);
      });
      team.sync();
      team.template multiply<true, false>(t.p, kPp, t.dout, at.tile_value, t.dv, at.tile_value_sums, Tiles::kKeys, s.value_dim, Tiles::kQueries, true);
      team.template multiply<true, false>(t.slopes, kPp, t.q, at.tile_head, t.dk, at.tile_head_sums, Tiles::kKeys, s.head_dim, Tiles::kQueries, true);
      team.template multiply<false, false>(t.slopes, kPp, t.k, at.tile_head, t.dq, at.tile_head_sums, Tiles::kQueries, s.head_dim, Tiles::kKeys, false);
      team.sync();
      float* const dq = g.dq + at.query(s, batch, q0, head);
      team.each(static_cast<int>(rows) * s.head_dim, [&](int i) { team.add_to(dq + i / s.head_dim * at.q + i % s.head_dim, t.dq[i / s.head_dim * at.tile_head_sums + i % s.head_dim]); });
    }
  }
  team.sync();
  T* const dk = g.dk + at.key(s, batch, k0, kv);
  T* const dv = g.dv + at.value(s, batch, k0, kv);
  team.each(static_cast<int>(keys) * s.head_dim, [&](int i) { dk[i / s.head_dim * at.k + i % s.head_dim] = static_cast<T>(t.dk[i / s.head_dim * at.tile_head_sums + i % s.head_dim]); });
  team.each(static_cast<int>(keys) * s.value_dim, [&](int i) { dv[i / s.value_dim * at.v + i % s.value_dim] = static_cast<T>(t.dv[i / s.value_dim * at.tile_value_sums + i % s.value_dim]); });
}

}  // namespace stepcast::executor::kernels
