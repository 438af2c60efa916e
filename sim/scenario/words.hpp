// sim/scenario/words.hpp — the choices of a scenario file and the words that name them.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace stepcast::scenario {

template <class E, std::size_t N>
using WordList = std::array<std::pair<const char*, E>, N>;

enum class Schedule : std::uint8_t { kGpipe, kOneFOneB };
constexpr WordList<Schedule, 2> enum_words(Schedule) {
  return {{{"gpipe", Schedule::kGpipe}, {"1f1b", Schedule::kOneFOneB}}};
}

enum class RecomputePolicy : std::uint8_t { kNone, kSelective, kFull };
constexpr WordList<RecomputePolicy, 3> enum_words(RecomputePolicy) {
  return {{{"none", RecomputePolicy::kNone},
           {"selective", RecomputePolicy::kSelective},
           {"full", RecomputePolicy::kFull}}};
}

enum class AttentionChoice : std::uint8_t { kFlash, kFlash2, kFlash1, kUnfused };
constexpr WordList<AttentionChoice, 4> enum_words(AttentionChoice) {
  return {{{"flash", AttentionChoice::kFlash},
           {"flash-2", AttentionChoice::kFlash2},
           {"flash-1", AttentionChoice::kFlash1},
           {"unfused", AttentionChoice::kUnfused}}};
}

enum class Precision : std::uint8_t { kBf16, kFp16, kFp32, kTf32, kFp8 };
constexpr WordList<Precision, 5> enum_words(Precision) {
  return {{{"bf16", Precision::kBf16},
           {"fp16", Precision::kFp16},
           {"fp32", Precision::kFp32},
           {"tf32", Precision::kTf32},
           {"fp8", Precision::kFp8}}};
}

enum class GradientPrecision : std::uint8_t { kFp32, kBf16, kFp16 };
constexpr WordList<GradientPrecision, 3> enum_words(GradientPrecision) {
  return {{{"fp32", GradientPrecision::kFp32},
           {"bf16", GradientPrecision::kBf16},
           {"fp16", GradientPrecision::kFp16}}};
}

enum class FlopsConventionChoice : std::uint8_t { kMegatron, kPalm, kLlama };
constexpr WordList<FlopsConventionChoice, 3> enum_words(FlopsConventionChoice) {
  return {{{"megatron", FlopsConventionChoice::kMegatron},
           {"palm", FlopsConventionChoice::kPalm},
           {"llama", FlopsConventionChoice::kLlama}}};
}

enum class CollectiveAlgorithm : std::uint8_t { kAuto, kRing, kTree };
constexpr WordList<CollectiveAlgorithm, 3> enum_words(CollectiveAlgorithm) {
  return {{{"auto", CollectiveAlgorithm::kAuto},
           {"ring", CollectiveAlgorithm::kRing},
           {"tree", CollectiveAlgorithm::kTree}}};
}

}  // namespace stepcast::scenario
