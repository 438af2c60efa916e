// models/parallel/bucket.hpp — gradients in the order in which the backward pass finishes them, cut
// into buckets.
//
// Model    a bucket takes whole parameter tensors until it holds at least the wanted size, from the
//          last block to the first (Megatron-Core _ParamAndGradBuffer, PyTorch DDP reducer), within one
//          chunk of the stage (Megatron-Core wraps each model chunk by itself). It is
//          ready when the weight gradient that completes it is done, mid-block or not. A table that
//          both ends share is written by the head's backward pass, the first of all, and ready with the
//          embedding's, the last: what holds it lives from the one to the other (autograd adds both up
//          before the parameter's hook runs).
// Ignores  order of tensors within one step; the norms and biases of a block count as ready with its
//          last kernel
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/parallel/stage_model.hpp"

namespace stepcast::parallel {

// A moment of the backward pass: after this step of this block.
struct Moment {
  std::size_t block = 0;
  std::size_t step = 0;
  friend bool operator==(const Moment&, const Moment&) = default;
};

struct GradientPiece {
  std::size_t chunk = 0;
  Moment ready;
  std::int64_t elements = 0;
  Kind kind = Kind::kDense;
  std::int64_t in_fp8 = 0;  // of `elements`: weights of fp8 products
  std::optional<Moment> shared;  // a table's, where the head of the same chunk writes to it before
};

struct Bucket {
  std::size_t chunk = 0;
  Kind kind = Kind::kDense;
  std::int64_t elements = 0;
  Moment opened;   // the first of its gradients to be ready is written by this step
  Moment ready;    // its last one
  Moment written;  // memory is needed from here: `opened`, or the head's product with a shared table
  std::int64_t in_fp8 = 0;
};

std::vector<GradientPiece> gradient_pieces(const StageModel& model);
// Routed experts' gradients have buckets of their own. In the order of readiness.
// Requires: bucket_elements >= 1.
std::vector<Bucket> make_buckets(std::span<const GradientPiece> pieces, std::int64_t bucket_elements);

}  // namespace stepcast::parallel
