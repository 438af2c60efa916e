// executor/common/kernels/vocabulary.hpp — both ends of a language model, each rank holding a band of the vocabulary: rows of the table for
// tokens, and the cross-entropy of logits. Vocabulary-parallel as in Megatron-LM (Shoeybi et al. 2019, section 3): what other ranks
// hold is 0 here, and maxima, label logits and sums of exponentials are reduced over the ranks.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/common/kernels/host_device.hpp"

namespace stepcast::executor::kernels {

struct Band {
  std::int64_t first = 0;  // token
  std::int64_t count = 0;
  STEPCAST_HOST_DEVICE bool holds(std::int32_t token) const { return token >= first && token < first + count; }
};

// Index over rows * width.
STEPCAST_HOST_DEVICE inline void embed(std::int64_t index, std::int64_t width, const Band& band, const std::int32_t* tokens, const float* table, float* out) {
  const std::int32_t token = tokens[index / width];
  out[index] = band.holds(token) ? table[(token - band.first) * width + index % width] : 0.0F;
}

// One column of the table's gradient, added to what is there: rows in order, so that the sum is the same everywhere.
STEPCAST_HOST_DEVICE inline void embed_gradient(std::int64_t column, std::int64_t rows, std::int64_t width, const Band& band, const std::int32_t* tokens,
                                                const float* dout, float* dtable) {
  for (std::int64_t row = 0; row < rows; ++row) {
    if (band.holds(tokens[row])) dtable[(tokens[row] - band.first) * width + column] += dout[row * width + column];
  }
}

// What a row of logits adds to its loss.
struct LossRows {
  float* most = nullptr;    // largest logit
  float* label = nullptr;   // the label's logit, or 0 where another rank holds it
  float* sum = nullptr;     // of exponentials over the largest
};

STEPCAST_HOST_DEVICE inline void loss_row(std::int64_t row, const Band& band, const std::int32_t* labels, const float* logits, const LossRows& out) {
  const float* const z = logits + row * band.count;
  float most = z[0];
  for (std::int64_t i = 1; i < band.count; ++i) most = z[i] > most ? z[i] : most;
  float sum = 0.0F;
  for (std::int64_t i = 0; i < band.count; ++i) sum += std::exp(z[i] - most);
  out.most[row] = most;
  out.label[row] = band.holds(labels[row]) ? z[labels[row] - band.first] : 0.0F;
  out.sum[row] = sum;
}

// d loss / d logits, times `scale`, in place of the logits. Most and sum are of all ranks.
STEPCAST_HOST_DEVICE inline void loss_gradient_row(std::int64_t row, const Band& band, const std::int32_t* labels, const LossRows& in, float scale, float* logits) {
  float* const z = logits + row * band.count;
  for (std::int64_t i = 0; i < band.count; ++i) z[i] = scale * std::exp(z[i] - in.most[row]) / in.sum[row];
  if (band.holds(labels[row])) z[labels[row] - band.first] -= scale;
}

}  // namespace stepcast::executor::kernels
