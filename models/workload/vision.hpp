// models/workload/vision.hpp — the vision encoder of a multimodal model: patches of images become tokens of
// the decoder. A transformer over the patches of each image, which see each other in both directions, then a
// projector from `merged` patches to one token.
//
// Symbols  p patches of an image, m merged patches, h hidden size, c values of a patch
// Order    on the stage that embeds: patch embedding (c x h), positions, layers, projector, its tokens put in
//          the places that the embedding leaves for them
// Tensor   layers as the decoder's; patch embedding on all patches on every rank; the projector whole on
//          every rank, which under sequence parallelism projects its own tokens
// Source   Hugging Face transformers: qwen3_vl, siglip with gemma3, llama4 (modeling files: parameters exact);
//          Megatron-Core puts the encoder in front of the first pipeline stage
// Ignores  attention within windows of an image, padding of odd images, norms before and after the layers,
//          class tokens in the attention, video
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast::workload {

struct VisionTower {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  bool rotary = false;
  std::int64_t patch = 14;         // pixels of a side
  std::int64_t patch_values = 0;   // of one patch, all channels and frames
  bool patch_bias = true;
  std::int64_t positions = 0;      // rows of the learned table
  std::int64_t merged = 1;
  bool pooled = false;             // merged by their mean, not side by side
  std::vector<std::int64_t> projector;  // widths that its linear layers give; the last is the decoder's
  bool projector_bias = false;
  bool projector_norm = false;
  std::int64_t taps = 0;           // further projectors, of layers within (Qwen3-VL's deepstack)
  std::int64_t extra_parameters = 0;  // class token, norms around the layers
  // Of each sequence, as the scenario has it.
  std::int64_t images = 0;
  std::int64_t image_size = 0;     // pixels of a side

  [[nodiscard]] constexpr std::int64_t patches() const { return (image_size / patch) * (image_size / patch); }
  [[nodiscard]] constexpr std::int64_t tokens() const { return patches() / merged; }  // of an image, in the decoder
  [[nodiscard]] constexpr std::int64_t projector_width() const { return pooled ? hidden : merged * hidden; }
  friend bool operator==(const VisionTower&, const VisionTower&) = default;
};

std::int64_t vision_parameters(const VisionTower& tower);
// Of a sequence's images, forward and backward; scores count the full square.
double vision_flops(const VisionTower& tower);

}  // namespace stepcast::workload
