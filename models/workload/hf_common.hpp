// models/workload/hf_common.hpp — keys that many model families share. Private to models/workload.
#pragma once

#include <cstdint>

#include "models/workload/json_reader.hpp"
#include "models/workload/model_shape.hpp"

namespace stepcast::workload {

// Far past any published model, small enough that no product of them leaves 64 bits.
constexpr IntegerRange kLayers{1, 4096};
constexpr IntegerRange kWidth{1, std::int64_t{1} << 20};
constexpr IntegerRange kHeads{1, std::int64_t{1} << 14};
constexpr IntegerRange kHeadWidth{1, std::int64_t{1} << 14};
constexpr IntegerRange kMlpWidth{1, std::int64_t{1} << 23};
constexpr IntegerRange kVocab{1, std::int64_t{1} << 26};
constexpr IntegerRange kTokens{1, std::int64_t{1} << 30};

void read_activation(JsonObject& c, ModelShape& shape, JsonObject::Names names,
                     Activation otherwise);

struct Defaults {
  std::int64_t vocab = 0;
  std::int64_t ffn = 0;       // 0: 4 * hidden
  std::int64_t kv_heads = 0;  // 0: = heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  bool tied = false;
};

// The keys nearly all decoders share.
void read_common(JsonObject& c, ModelShape& shape, const Defaults& defaults);

// layer_types where the file lists them.
bool read_layer_types(JsonObject& c, ModelShape& shape);

// Every `period`-th layer sees everything.
void alternate(ModelShape& shape, std::int64_t period);

// A list without a sliding layer means no window at all.
void drop_unused_window(ModelShape& shape);

// Families whose class has no window of its own, but whose files may list layer types.
void listed_windows(JsonObject& c, ModelShape& shape);

// Qwen's two ways to say which layers slide.
void qwen_window(JsonObject& c, ModelShape& shape);

inline void layer_norm(ModelShape& shape) { shape.norm = NormKind::kLayerNorm; }

}  // namespace stepcast::workload
