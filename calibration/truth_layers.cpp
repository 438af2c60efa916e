#include "calibration/truth_layers.hpp"

#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

// The first number in the text.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  bool any = false;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 && value < 1'000'000'000) {
      value = value * 10 + (c - '0');
      any = true;
    } else if (any) {
      break;
    }
  }
  return any ? std::optional{value} : std::nullopt;
}

class Translator {
 public:
  explicit Translator(const LayerPhrases& phrases) : p_{phrases} {}

  LayerWords run() {
    if (has_experts()) experts();
    for (const std::string& part : split(p_.attention, ';')) {
      const std::string phrase{trim(part)};
      if (!phrase.empty() && !understood(phrase)) {
        words_.refusal = fmt::format("attention '{}' is not modelled yet", phrase);
        return words_;
      }
    }
    if (has_experts() && shared_ > 0) key("shared_experts", shared_);
    return words_;
  }

 private:
  [[nodiscard]] bool has_experts() const { return p_.experts.value_or(1) > 1; }
  void key(const char* name, std::int64_t value) { words_.shape += fmt::format(", {}: {}", name, value); }

  void experts() {
    key("experts", *p_.experts);
    key("top_k", p_.top_k.value_or(1));
    if (const auto width = p_.expert_ffn ? p_.expert_ffn : p_.ffn) key("expert_ffn", *width);
  }

  bool understood(const std::string& phrase) {
    const auto has = [&](std::string_view word) { return phrase.find(word) != std::string::npos; };
    if (phrase.starts_with("ALiBi") || has("unfused")) return true;
    if (phrase.starts_with("MLA(")) return latent(phrase);
    if (phrase == "alternating sliding-window") {
      words_.assumed.emplace_back("a window of 128 tokens on every second layer");
      key("sliding_window", 128);
      key("full_attention_every", 2);
      return true;
    }
    if (phrase == "chunked attention") return p_.sequence <= kChunk;
    const auto number = number_in(phrase);
    if (!has_experts() || !number) return false;
    if (has("dense layer") || has("dense_layers")) {
      if (*number > 0) key("dense_layers", *number);
    } else if (has("shared expert")) {
      shared_ = *number;
    } else if (has("shared ffn")) {
      if (!p_.expert_ffn || *number % *p_.expert_ffn != 0) return false;
      shared_ = *number / *p_.expert_ffn;
    } else if (has("MoE every")) {
      key("moe_every", *number);
    } else {
      return false;
    }
    return true;
  }

  // "MLA(q_lora=1536,kv_lora=512,rope=64)"; a head's other part and its values are head_dim wide.
  bool latent(const std::string& phrase) {
    const auto after = [&](const char* name) {
      const std::size_t at = phrase.find(name);
      return at == std::string::npos ? std::nullopt : number_in(std::string_view{phrase}.substr(at));
    };
    const auto kv = after("kv_lora=");
    const auto rope = after("rope=");
    if (!kv || !rope || !p_.head_dim) return false;
    key("kv_lora_rank", *kv);
    if (const auto q = after("(q_lora=")) key("q_lora_rank", *q);
    key("qk_nope_head_dim", *p_.head_dim);
    key("qk_rope_head_dim", *rope);
    key("v_head_dim", *p_.head_dim);
    words_.latent = true;
    return true;
  }

  static constexpr std::int64_t kChunk = 8192;  // Llama 4 attention_chunk_size: no shorter sequence is cut

  const LayerPhrases& p_;
  LayerWords words_;
  std::int64_t shared_ = 0;
};

}  // namespace

LayerWords layer_words(const LayerPhrases& phrases) { return Translator{phrases}.run(); }

}  // namespace stepcast::calibration
