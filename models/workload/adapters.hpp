// models/workload/adapters.hpp — low-rank adapters on frozen weights (LoRA), and a 4-bit base under
// them (QLoRA).
//
// Symbols  W[k,n] a frozen weight, X its input, Y its output; A[k,r], B[r,n] an adapter of rank r, s its
//          scale; t tensor-parallel degree
// Model    Y  = X W + s (X A) B                                                                       (1)
//          dX = dY W' + (s dY B') A'      dB = (X A)' s dY      dA = X' (s dY B')                     (2)
//          No gradient of W, of norms, biases, routers, embedding and head; what only those gradients
//          would read is not kept. Input gradients flow through all of them.
//          Columns of W on t ranks: A cut by rank, X A gathered, B cut as W; backward dY B' all-reduced.
//          Rows: A cut as W, X A all-reduced, B cut by columns, its output gathered; backward dY B'
//          all-reduced, under sequence parallelism dY gathered for it besides. Weights that every rank
//          holds (into latents): adapters too, their gradients summed.
//          4 bits: half a byte a parameter, and the scale of each block of 64: 4 bytes, or, quantised
//          again, 1 byte and 4 bytes of each 256 of those                                            (3)
//          Before each product the matrix is brought back to 16 bits, forward and for the input gradient.
// Source   (1), (2) Hu et al. 2021 (arXiv 2106.09685); order and collectives: Megatron-Bridge
//          ParallelLinearAdapter; (3) Dettmers et al. 2023 (QLoRA, arXiv 2305.14314) section 3: 0.127
//          bits a parameter for double quantisation against 0.5; kernels: bitsandbytes MatMul4Bit,
//          dequantize_4bit (scales, their offset, then the matrix)
// Ignores  dropout before A; that the first layer's input needs no gradient; a second reduction of dX
//          without sequence parallelism (adapter and base are summed first)
// Tests    unit/adapters_test
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace stepcast::workload {

struct ModelShape;

// Weight matrices of a layer that adapters go on; queries, keys and values with latents are all of kQkv.
enum class Projection : std::uint8_t { kNone, kQkv, kOut, kUp, kDown };

// What frozen matrices of layers are stored as; norms, biases, routers, embedding and head stay as they are.
struct FourBits {
  bool double_quantised = true;
  friend bool operator==(const FourBits&, const FourBits&) = default;
};

struct Adapters {
  std::int64_t rank = 16;
  bool qkv = true;
  bool out = false;
  bool up = false;    // of MLPs: with the gate
  bool down = false;
  std::optional<FourBits> base;

  [[nodiscard]] constexpr bool on(Projection projection) const {
    switch (projection) {
      case Projection::kNone: return false;
      case Projection::kQkv: return qkv;
      case Projection::kOut: return out;
      case Projection::kUp: return up;
      case Projection::kDown: return down;
    }
    return false;
  }
  friend bool operator==(const Adapters&, const Adapters&) = default;
};

inline constexpr std::int64_t kBlockOf4Bit = 64;
inline constexpr std::int64_t kScalesOfBlock = 256;

// Equation (3), in its two parts [bytes].
constexpr std::int64_t packed_bytes(std::int64_t parameters) { return (parameters + 1) / 2; }
constexpr std::int64_t scale_bytes(const FourBits& base, std::int64_t parameters) {
  const std::int64_t scales = (parameters + kBlockOf4Bit - 1) / kBlockOf4Bit;
  return base.double_quantised ? scales + 4 * ((scales + kScalesOfBlock - 1) / kScalesOfBlock) : 4 * scales;
}

// Of all layers' adapters, and of those that one token meets (top_k experts of each layer).
struct AdapterCount {
  std::int64_t total = 0;
  std::int64_t active = 0;
};
AdapterCount count_adapters(const ModelShape& shape, const Adapters& adapters);

}  // namespace stepcast::workload
