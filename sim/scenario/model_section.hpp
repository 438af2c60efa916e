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
  std::optional<std::int64_t> full_attention_every;
  bool qk_norm = false;
  std::optional<std::int64_t> experts;
  std::int64_t top_k = 1;
  std::optional<std::int64_t> expert_ffn;  // default ffn
  std::int64_t shared_experts = 0;
  std::int64_t dense_layers = 0;
  std::int64_t moe_every = 1;
  std::optional<std::int64_t> kv_lora_rank;
  std::optional<std::int64_t> q_lora_rank;
  std::int64_t qk_nope_head_dim = 128;
  std::int64_t qk_rope_head_dim = 64;
  std::int64_t v_head_dim = 128;

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
    v.key("full_attention_every", full_attention_every, "Each so many-th layer looks back on everything in spite of sliding_window. Default: none.",
          between(1, 1e5).example("2"));
    v.key("qk_norm", qk_norm, "Queries and keys of each head are normalised.");
    v.key("experts", experts, "Routed experts of a layer: a mixture of experts in place of the MLP.", between(2, 65536).example("64"));
    v.key("top_k", top_k, "Routed experts that a token visits.", between(1, 65536).example("8"));
    v.key("expert_ffn", expert_ffn, "Width of one projection of one expert. Default: ffn.", between(1, 1e8).example("2048"));
    v.key("shared_experts", shared_experts, "Experts that every token visits, each expert_ffn wide.", between(0, 65536));
    v.key("dense_layers", dense_layers, "Layers without experts at the start of the model.", between(0, 1e5));
    v.key("moe_every", moe_every, "Each so many-th layer has experts; the others are dense.", between(1, 1e5));
    v.key("kv_lora_rank", kv_lora_rank,
          "Width of the latent that keys and values are made from: multi-head latent attention (DeepSeek).",
          between(1, 1e6).example("512"));
    v.key("q_lora_rank", q_lora_rank, "Width of the latent that queries are made from. Default: none.", between(1, 1e6).example("1536"));
    v.key("qk_nope_head_dim", qk_nope_head_dim, "Latent attention: the part of a query or key head that is not rotated.", between(1, 1e6));
    v.key("qk_rope_head_dim", qk_rope_head_dim, "Latent attention: the rotated part, shared by all key heads.", between(1, 1e6));
    v.key("v_head_dim", v_head_dim, "Latent attention: width of a value head.", between(1, 1e6));
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
  bool grouped_experts = true;
  double dropout = 0.0;
  std::optional<double> capacity_factor;
  double expert_skew = 0.0;
  std::int64_t expert_seed = 0;
  std::int64_t mtp_layers = 0;
  std::int64_t images = 0;
  std::optional<std::int64_t> image_size;

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
    v.key("grouped_experts", grouped_experts,
          "A GPU's experts run their products as one grouped kernel; false: one expert after another, each with kernels of its own (Megatron without moe-grouped-gemm).");
    v.key("dropout", dropout, "Dropout probability; above 0 its masks are kept for the backward pass.",
          between(0, 1));
    v.key("capacity_factor", capacity_factor,
          "Rows an expert takes of each rank, over the mean; more are dropped, fewer padded. Default: none are dropped.",
          between(0.01, 1000).example("1.25"));
    v.key("expert_skew", expert_skew,
          "How unevenly tokens choose experts: the i-th most popular is chosen in proportion to i to the power of minus this; 0 is even.",
          between(0, 10).example("0.3"));
    v.key("expert_seed", expert_seed, "Seed of the order in which popular experts lie on the GPUs.", between(0, 1e9));
    v.key("images", images,
          "Images in each sequence, for the vision encoder that the config.json of hf brings along; 0 leaves the encoder out.", between(0, 1e6));
    v.key("image_size", image_size, "Pixels of an image's side. Default: that of the config.json.", between(1, 1e5).example("448"));
    v.key("mtp_layers", mtp_layers, "Multi-token prediction modules behind the last layer (DeepSeek-V3).", between(0, 64));
  }
  friend bool operator==(const Model&, const Model&) = default;
};

}  // namespace stepcast::scenario
