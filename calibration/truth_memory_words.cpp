#include "calibration/truth_memory_words.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace stepcast::calibration {
namespace {

struct Habits {
  std::string_view prefix;  // of the framework's name; the first match wins
  int logit_copies;
  std::string_view engine;  // the scenario's word
  bool lazy_kernels;
  bool expandable_segments;
};
constexpr std::array kHabits{
    Habits{"Megatron-DeepSpeed", 1, "deepspeed", false, false},  Habits{"Megatron + D", 1, "deepspeed", false, false},
    Habits{"DeepSpeed", 1, "deepspeed", false, false},           Habits{"PyTorch-Lightning DDP", 1, "ddp", false, false},
    Habits{"ColossalAI Gemini", 0, "gemini", false, false},      Habits{"Megatron-LM Sep 2020", 0, "megatron", false, false}, Habits{"Megatron-LM v2", 0, "megatron", false, false},
    Habits{"Megatron-LM PTD-P", 0, "megatron", false, false},    Habits{"torchtitan", 1, "torch", true, true},
    Habits{"", 0, "megatron", true, false},
};

int logit_copies(const MemoryRow& row, const Habits& habits) {
  const auto has = [](std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; };
  if (row.fused_loss) return 1;
  if (habits.engine == "deepspeed" && row.gpu.starts_with("V100")) return 0;  // before the clone
  if (!row.framework.starts_with("torchtitan")) return habits.logit_copies;
  if (has(row.framework, "compile") && has(row.source, "_2025")) return 0;
  return row.tensor_parallel ? 2 : 1;
}

}  // namespace

MemoryWords memory_words(const MemoryRow& row) {
  const Habits& habits =
      *std::find_if(kHabits.begin(), kHabits.end(), [&](const Habits& h) { return row.framework.starts_with(h.prefix); });
  const bool deepspeed = habits.engine == "deepspeed";
  MemoryWords words;
  words.memory = fmt::format(", logit_copies: {}", logit_copies(row, habits));
  if (!row.library_workspace.empty()) words.memory += fmt::format(", library_workspace: {}", row.library_workspace);
  if (!habits.lazy_kernels) words.memory += ", context: 1343 MiB";
  if (row.notes.find("8-bit Adam") != std::string_view::npos) words.training = ", optimizer: adam-8bit";
  if (row.pipeline && row.framework.starts_with("torchtitan")) words.parallel = ", zero3_reshard_after_forward: false";
  if (habits.expandable_segments) words.memory += ", expandable_segments: true";
  if (habits.engine != "megatron") words.training += fmt::format(", engine: {}", habits.engine);
  if (deepspeed) words.parallel = fmt::format(", bucket: {} B", row.bucket_elements * (row.fp32_gradients ? 4 : 2));
  return words;
}

}  // namespace stepcast::calibration
