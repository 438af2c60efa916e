// sim/scenario/model_section.hpp — the `model:` section: what is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/scenario/key.hpp"
#include "sim/scenario/words.hpp"

namespace stepcast::scenario {

struct InlineShape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::optional<std::int64_t> kv_heads;   // default heads
  std::optional<std::int64_t> head_dim;   // default hidden / heads
  std::optional<std::int64_t> ffn;        // default 4 * hidden
  std::int64_t vocab = 0;
  bool gated_mlp = false;
  bool tied_embeddings = false;
  bool bias = false;
  std::string norm = "rmsnorm";
  std::string position = "rotary";
  std::optional<std::int64_t> max_positions;
  std::optional<std::int64_t> sliding_window;

  template <class V>
  void visit(V& v) {
    v.key("layers", layers, "Transformer blocks.", required().between(1, 1e5).example("32"));
    v.key("hidden", hidden, "Width of the residual stream.", required().between(1, 1e7).example("4096"));
    v.key("heads", heads, "Attention (query) heads.", required().between(1, 1e6).example("32"));
    v.key("kv_heads", kv_heads, "Key and value heads; fewer than heads is grouped-query attention. Default: heads.",
          between(1, 1e6).example("8"));
    v.key("head_dim", head_dim, "Width of one head. Default: hidden / heads.", between(1, 1e6).example("128"));
    v.key("ffn", ffn, "Width of one MLP projection. Default: 4 x hidden.", between(1, 1e8).example("14336"));
    v.key("vocab", vocab, "Vocabulary size before padding.", required().between(1, 1e9).example("128256"));
    v.key("gated_mlp", gated_mlp, "Three MLP matrices (SwiGLU, GeGLU) rather than two.");
    v.key("tied_embeddings", tied_embeddings, "The output layer shares the embedding table.");
    v.key("bias", bias, "Linear layers carry biases.");
    v.key("norm", norm, "Kind of normalisation.", words({"layernorm", "rmsnorm"}));
    v.key("position", position, "How positions enter the model.", words({"rotary", "learned", "alibi", "none"}));
    v.key("max_positions", max_positions, "Rows of a learned position table. Default: the sequence length.",
          between(1, 1e9).example("8192"));
    v.key("sliding_window", sliding_window, "Tokens that attention looks back on. Default: all.",
          between(1, 1e9).example("4096"));
  }
  friend bool operator==(const InlineShape&, const InlineShape&) = default;
};

// Exactly one of `hf`, `preset`, `shape`.
struct Model {
  std::optional<std::string> hf;
  std::optional<std::string> preset;
  std::optional<InlineShape> shape;
  std::int64_t sequence = 0;
  AttentionChoice attention = AttentionChoice::kFlash;
  FlopsConventionChoice flops_convention = FlopsConventionChoice::kMegatron;
  std::int64_t vocab_padding = 128;
  bool fused_kernels = true;
  std::optional<bool> fused_loss;          // default fused_kernels
  std::optional<bool> fused_accumulation;  // default fused_kernels
  double dropout = 0.0;

  template <class V>
  void visit(V& v) {
    v.key("hf", hf,
          "Path of a Hugging Face config.json, from this file's folder or the working folder. Exactly one of hf, "
          "preset and shape is given.",
          not_empty().example("hf/llama3-8b.json"));
    v.key("preset", preset, "Name of a model in the catalogue (stepcast list).",
          not_empty().example("llama3-8b").in_starter());
    v.key("shape", shape, "The model's shape, written out.");
    v.key("sequence", sequence, "Tokens in one sequence.", required().between(1, 1e9).example("8192"));
    v.key("attention", attention, "Attention kernels: flash (scores never stored; the newest for the GPU), an older flash generation, or unfused.");
    v.key("flops_convention", flops_convention,
          "Which published rule counts the model's FLOPs for MFU: Megatron-LM, PaLM or Llama.");
    v.key("vocab_padding", vocab_padding, "The vocabulary is padded to a multiple of this times tp.", between(1, 1e6));
    v.key("fused_kernels", fused_kernels, "Norms, activations and biases run as fused kernels.");
    v.key("fused_loss", fused_loss, "The cross-entropy runs as two kernels rather than six. Default: fused_kernels.");
    v.key("fused_accumulation", fused_accumulation,
          "Weight gradients are added up in their GEMM rather than by a kernel of their own. Default: fused_kernels.");
    v.key("dropout", dropout, "Dropout probability; above 0 its masks are kept for the backward pass.",
          between(0, 1));
  }
  friend bool operator==(const Model&, const Model&) = default;
};

}  // namespace stepcast::scenario
