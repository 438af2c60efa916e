// models/parallel/placement.hpp — which part of the model each chunk of each pipeline stage is.
//
// Symbols      p stages, v chunks a stage, position 0 .. n-1 along the model
// Linear       v = 1; stage i is position i
// Interleaved  chunk c of stage i is position c p + i (Narayanan et al. 2021)
// V            chunk 0 of stage i is position i, chunk 1 is position 2p-1-i: the first stage embeds and
//              computes the loss, the last hands over to itself (Qi et al. 2024, DualPipe-V)
// Dual         two copies of a model cut into p: chunk 0 is position i, chunk 1 position p-1-i; each
//              half of the micro-batches passes one of them, from opposite ends (DeepSeek-AI 2024)
#pragma once

#include <cstdint>
#include <optional>

namespace stepcast::parallel {

enum class Arrangement : std::uint8_t { kLinear, kInterleaved, kV, kDual };

struct ChunkPlace {
  std::int32_t stage = 0;
  std::uint8_t chunk = 0;
  friend auto operator<=>(const ChunkPlace&, const ChunkPlace&) = default;
};

struct Placement {
  Arrangement arrangement = Arrangement::kLinear;
  std::int32_t stages = 1;
  std::int32_t chunks = 1;  // on each stage

  // Parts that the model is cut into.
  [[nodiscard]] std::int32_t positions() const {
    return arrangement == Arrangement::kDual ? stages : stages * chunks;
  }
  [[nodiscard]] std::int32_t position(ChunkPlace place) const;
  // Where a micro-batch's forward pass goes next, and where it came from.
  [[nodiscard]] std::optional<ChunkPlace> next(ChunkPlace place) const { return moved(place, 1); }
  [[nodiscard]] std::optional<ChunkPlace> previous(ChunkPlace place) const { return moved(place, -1); }
  [[nodiscard]] bool first(ChunkPlace place) const { return position(place) == 0; }
  [[nodiscard]] bool last(ChunkPlace place) const { return position(place) == positions() - 1; }
  // One stage holds both ends of the model.
  [[nodiscard]] bool joins_ends() const {
    return stages == 1 || arrangement == Arrangement::kV || arrangement == Arrangement::kDual;
  }

  friend bool operator==(const Placement&, const Placement&) = default;

 private:
  [[nodiscard]] std::optional<ChunkPlace> moved(ChunkPlace place, std::int32_t step) const;
};

const char* name_of(Arrangement arrangement);

}  // namespace stepcast::parallel
