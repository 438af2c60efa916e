#include "calibration/truth_recompute.hpp"

#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLlmqParts{{{"att", "attention"},
                                                                                  {"qkv", "qkv_proj"},
                                                                                  {"ffn", "up_proj, mlp_act"},
                                                                                  {"swiglu", "mlp_act"},
                                                                                  {"norm", "layernorm"}}};

std::string modules(const std::vector<std::string>& words) {
  return fmt::format("recompute: selective, recompute_modules: [{}]", join(words, ", "));
}

std::optional<std::string> llmq(std::string_view list) {
  std::vector<std::string> words;
  for (const std::string& part : split(std::string{list}, ',')) {
    const std::string name{trim(part)};
    if (name == "block") return "recompute: full";
    std::string_view word;
    for (const auto& [known, becomes] : kLlmqParts)
      if (known == name) word = becomes;
    if (word.empty()) return std::nullopt;
    words.emplace_back(word);
  }
  return modules(words);
}

}  // namespace

std::optional<std::string> recompute_words(std::string_view stated) {
  if (stated.empty() || stated.starts_with("none")) return "recompute: none";
  if (stated == "full") return "recompute: full";
  if (stated == "selective" || stated == "selective (attention core)") return "recompute: selective";
  if (stated == "selective (op)") return "recompute: operators";
  constexpr std::string_view kModules = "selective modules=[";
  if (stated.starts_with(kModules) && stated.ends_with(']')) {
    std::vector<std::string> words = split(std::string{stated.substr(kModules.size(), stated.size() - kModules.size() - 1)}, ' ');
    std::erase(words, "");
    return modules(words);
  }
  constexpr std::string_view kParts = "selective:";
  if (stated.starts_with(kParts)) return llmq(stated.substr(kParts.size()));
  return std::nullopt;
}

}  // namespace stepcast::calibration
