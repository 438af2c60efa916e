#include "calibration/truth_offload.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::string_view kLlmq = "cpu: ";
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLlmqParts{
    {{"master", "master"}, {"opt-m", "momentum"}, {"opt-v", "variance"}, {"gradients", "gradients"}, {"residual", "residuals"}}};

void llmq(const OffloadRow& row, OffloadWords& words) {
  std::vector<std::string> parts;
  bool quants = false;
  bool master = false;
  for (const std::string& written : split(std::string{row.stated.substr(kLlmq.size())}, ',')) {
    const std::string name{trim(written)};
    quants = quants || name == "quants";
    master = master || name == "master";
    for (const auto& [known, becomes] : kLlmqParts)
      if (known == name) parts.emplace_back(becomes);
    const bool is_known = name == "quants" || std::any_of(kLlmqParts.begin(), kLlmqParts.end(), [&](const auto& p) { return p.first == name; });
    if (!is_known) words.refusal = fmt::format("offload '{}' is not modelled yet", name);
  }
  const bool persists = has(row.notes, "persistent-quants");
  if (has(row.notes, "shard-weights") && (persists ? quants : master)) {
    parts.emplace_back("parameters");
    words.zero = 3;
    if (has(row.notes, "memcpy-all-gather")) words.memory = ", offload_shared: true";
    if (persists) words.parallel = ", fp8_param_gather: true";
  }
  words.memory = fmt::format(", offload: [{}], offload_update: device{}", join(parts, ", "), words.memory);
}

}  // namespace

OffloadWords offload_words(const OffloadRow& row) {
  OffloadWords words{.zero = row.zero};
  if (row.stated.empty() || row.stated == "none") return words;
  if (row.stated.starts_with(kLlmq)) {
    llmq(row, words);
    return words;
  }
  const bool gemini = has(row.stated, "Gemini auto");
  if (!row.stated.starts_with("cpu ") || (!gemini && !has(row.stated, "optimizer"))) {
    words.refusal = fmt::format("offload '{}' is not modelled yet", row.stated);
    return words;
  }
  std::string parts = "master, momentum, variance";
  if (gemini) words.assumed.emplace_back("optimizer and parameters in host memory");
  if (gemini || has(row.stated, "params")) parts += ", parameters";
  if (has(row.stated, "activation")) parts += ", residuals";
  words.memory = fmt::format(", offload: [{}]", parts);
  return words;
}

}  // namespace stepcast::calibration
