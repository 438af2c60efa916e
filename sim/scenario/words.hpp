// sim/scenario/words.hpp — the choices of a scenario file and the words that name them.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace stepcast::scenario {

template <class E, std::size_t N>
using WordList = std::array<std::pair<const char*, E>, N>;

enum class Schedule : std::uint8_t {
  kGpipe, kOneFOneB, kOneFOneBOverlap, kInterleaved, kZbH1, kZbH2, kZbV, kVHalf, kVMin, kDualPipe, kDualPipeV, kFile
};
constexpr WordList<Schedule, 12> enum_words(Schedule) {
  return {{{"gpipe", Schedule::kGpipe},
           {"1f1b", Schedule::kOneFOneB},
           {"1f1b-overlap", Schedule::kOneFOneBOverlap},
           {"interleaved", Schedule::kInterleaved},
           {"zb-h1", Schedule::kZbH1},
           {"zb-h2", Schedule::kZbH2},
           {"zb-v", Schedule::kZbV},
           {"v-half", Schedule::kVHalf},
           {"v-min", Schedule::kVMin},
           {"dualpipe", Schedule::kDualPipe},
           {"dualpipe-v", Schedule::kDualPipeV},
           {"file", Schedule::kFile}}};
}

enum class RecomputePolicy : std::uint8_t { kNone, kSelective, kOperators, kFull };
constexpr WordList<RecomputePolicy, 4> enum_words(RecomputePolicy) {
  return {{{"none", RecomputePolicy::kNone},
           {"selective", RecomputePolicy::kSelective},
           {"operators", RecomputePolicy::kOperators},
           {"full", RecomputePolicy::kFull}}};
}

enum class RecomputeModule : std::uint8_t {
  kCoreAttention, kNorms, kLatents, kExpertActivations, kMlpActivations, kQkv, kAttention, kUp, kMlp, kExperts, kShared
};
constexpr WordList<RecomputeModule, 11> enum_words(RecomputeModule) {
  return {{{"core_attn", RecomputeModule::kCoreAttention},
           {"layernorm", RecomputeModule::kNorms},
           {"mla_up_proj", RecomputeModule::kLatents},
           {"moe_act", RecomputeModule::kExpertActivations},
           {"mlp_act", RecomputeModule::kMlpActivations},
           {"qkv_proj", RecomputeModule::kQkv},
           {"attention", RecomputeModule::kAttention},
           {"up_proj", RecomputeModule::kUp},
           {"mlp", RecomputeModule::kMlp},
           {"moe", RecomputeModule::kExperts},
           {"shared_experts", RecomputeModule::kShared}}};
}

enum class RecomputeMethod : std::uint8_t { kUniform, kBlock, kEvery };
constexpr WordList<RecomputeMethod, 3> enum_words(RecomputeMethod) {
  return {{{"uniform", RecomputeMethod::kUniform}, {"block", RecomputeMethod::kBlock}, {"every", RecomputeMethod::kEvery}}};
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

enum class StatePrecision : std::uint8_t { kFp32, kBf16, kFp16, kFp8 };
constexpr WordList<StatePrecision, 4> enum_words(StatePrecision) {
  return {{{"fp32", StatePrecision::kFp32},
           {"bf16", StatePrecision::kBf16},
           {"fp16", StatePrecision::kFp16},
           {"fp8", StatePrecision::kFp8}}};
}

enum class ContextChoice : std::uint8_t { kRing, kPlainRing, kAllGather, kUlysses };
constexpr WordList<ContextChoice, 4> enum_words(ContextChoice) {
  return {{{"ring", ContextChoice::kRing},
           {"plain-ring", ContextChoice::kPlainRing},
           {"all-gather", ContextChoice::kAllGather},
           {"ulysses", ContextChoice::kUlysses}}};
}

enum class OptimizerChoice : std::uint8_t { kAdam, kAdamW, kAdam8bit, kSgd, kAdafactor, kMuon };
constexpr WordList<OptimizerChoice, 6> enum_words(OptimizerChoice) {
  return {{{"adam", OptimizerChoice::kAdam},
           {"adamw", OptimizerChoice::kAdamW},
           {"adam-8bit", OptimizerChoice::kAdam8bit},
           {"sgd", OptimizerChoice::kSgd},
           {"adafactor", OptimizerChoice::kAdafactor},
           {"muon", OptimizerChoice::kMuon}}};
}

enum class OffloadedPart : std::uint8_t { kMaster, kMomentum, kVariance, kGradients, kParameters, kResiduals };
constexpr WordList<OffloadedPart, 6> enum_words(OffloadedPart) {
  return {{{"master", OffloadedPart::kMaster},
           {"momentum", OffloadedPart::kMomentum},
           {"variance", OffloadedPart::kVariance},
           {"gradients", OffloadedPart::kGradients},
           {"parameters", OffloadedPart::kParameters},
           {"residuals", OffloadedPart::kResiduals}}};
}

enum class UpdatePlace : std::uint8_t { kHost, kDevice };
constexpr WordList<UpdatePlace, 2> enum_words(UpdatePlace) { return {{{"host", UpdatePlace::kHost}, {"device", UpdatePlace::kDevice}}}; }

enum class AdapterTarget : std::uint8_t { kQkv, kOut, kUp, kDown };
constexpr WordList<AdapterTarget, 4> enum_words(AdapterTarget) {
  return {{{"qkv", AdapterTarget::kQkv},
           {"out", AdapterTarget::kOut},
           {"up", AdapterTarget::kUp},
           {"down", AdapterTarget::kDown}}};
}

enum class AdapterBase : std::uint8_t { kAsTrained, kNf4 };
constexpr WordList<AdapterBase, 2> enum_words(AdapterBase) {
  return {{{"as-trained", AdapterBase::kAsTrained}, {"nf4", AdapterBase::kNf4}}};
}

// Whose training loop.
enum class EngineChoice : std::uint8_t { kMegatron, kDeepSpeed, kDdp, kTorch, kGemini };
constexpr WordList<EngineChoice, 5> enum_words(EngineChoice) {
  return {{{"megatron", EngineChoice::kMegatron},
           {"deepspeed", EngineChoice::kDeepSpeed},
           {"ddp", EngineChoice::kDdp},
           {"torch", EngineChoice::kTorch},
           {"gemini", EngineChoice::kGemini}}};
}

// When the host waits for the device within a step.
enum class HostWaitChoice : std::uint8_t { kNever, kMessages, kPasses, kGathers, kGradients, kKernels };
constexpr WordList<HostWaitChoice, 6> enum_words(HostWaitChoice) {
  return {{{"never", HostWaitChoice::kNever},
           {"messages", HostWaitChoice::kMessages},
           {"passes", HostWaitChoice::kPasses},
           {"gathers", HostWaitChoice::kGathers},
           {"gradients", HostWaitChoice::kGradients},
           {"kernels", HostWaitChoice::kKernels}}};
}

enum class FlopsConventionChoice : std::uint8_t { kMegatron, kPalm, kLlama };
constexpr WordList<FlopsConventionChoice, 3> enum_words(FlopsConventionChoice) {
  return {{{"megatron", FlopsConventionChoice::kMegatron},
           {"palm", FlopsConventionChoice::kPalm},
           {"llama", FlopsConventionChoice::kLlama}}};
}

enum class CollectiveAlgorithm : std::uint8_t { kAuto, kRing, kTree, kNvls, kNvlsTree, kCollNet, kPat, kPairwise, kPxn, kHierarchical };
constexpr WordList<CollectiveAlgorithm, 10> enum_words(CollectiveAlgorithm) {
  return {{{"auto", CollectiveAlgorithm::kAuto},
           {"ring", CollectiveAlgorithm::kRing},
           {"tree", CollectiveAlgorithm::kTree},
           {"nvls", CollectiveAlgorithm::kNvls},
           {"nvls-tree", CollectiveAlgorithm::kNvlsTree},
           {"collnet", CollectiveAlgorithm::kCollNet},
           {"pat", CollectiveAlgorithm::kPat},
           {"pairwise", CollectiveAlgorithm::kPairwise},
           {"pxn", CollectiveAlgorithm::kPxn},
           {"hierarchical", CollectiveAlgorithm::kHierarchical}}};
}

enum class CollectiveProtocol : std::uint8_t { kAuto, kLl, kLl128, kSimple };
constexpr WordList<CollectiveProtocol, 4> enum_words(CollectiveProtocol) {
  return {{{"auto", CollectiveProtocol::kAuto},
           {"ll", CollectiveProtocol::kLl},
           {"ll128", CollectiveProtocol::kLl128},
           {"simple", CollectiveProtocol::kSimple}}};
}

// The axes of the workers (plan::Axis): what traffic is for.
enum class TrafficAxis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
constexpr WordList<TrafficAxis, 5> enum_words(TrafficAxis) {
  return {{{"tp", TrafficAxis::kTensor},
           {"cp", TrafficAxis::kContext},
           {"ep", TrafficAxis::kExpert},
           {"dp", TrafficAxis::kData},
           {"pp", TrafficAxis::kPipeline}}};
}

enum class RoutingPolicy : std::uint8_t { kIdeal, kEcmp, kEEcmp, kPinned, kPlanned, kAdaptive, kFlowlet, kSpray };
constexpr WordList<RoutingPolicy, 8> enum_words(RoutingPolicy) {
  return {{{"ideal", RoutingPolicy::kIdeal},
           {"ecmp", RoutingPolicy::kEcmp},
           {"e-ecmp", RoutingPolicy::kEEcmp},
           {"pinned", RoutingPolicy::kPinned},
           {"planned", RoutingPolicy::kPlanned},
           {"adaptive", RoutingPolicy::kAdaptive},
           {"flowlet", RoutingPolicy::kFlowlet},
           {"spray", RoutingPolicy::kSpray}}};
}

enum class SwitchHash : std::uint8_t { kIdeal, kCrc16Bisync, kCrc16Ccitt, kCrc32Low, kCrc32High, kXor16, kXor8, kXor4 };
constexpr WordList<SwitchHash, 8> enum_words(SwitchHash) {
  return {{{"ideal", SwitchHash::kIdeal},
           {"crc16-bisync", SwitchHash::kCrc16Bisync},
           {"crc16-ccitt", SwitchHash::kCrc16Ccitt},
           {"crc32-low", SwitchHash::kCrc32Low},
           {"crc32-high", SwitchHash::kCrc32High},
           {"xor16", SwitchHash::kXor16},
           {"xor8", SwitchHash::kXor8},
           {"xor4", SwitchHash::kXor4}}};
}

enum class SwitchSeed : std::uint8_t { kPerSwitch, kSame };
constexpr WordList<SwitchSeed, 2> enum_words(SwitchSeed) {
  return {{{"per-switch", SwitchSeed::kPerSwitch}, {"same", SwitchSeed::kSame}}};
}

enum class QpUse : std::uint8_t { kSplit, kRoundRobin };
constexpr WordList<QpUse, 2> enum_words(QpUse) {
  return {{{"split", QpUse::kSplit}, {"round-robin", QpUse::kRoundRobin}}};
}

enum class SourcePortRule : std::uint8_t { kFlowLabel, kQp, kRandom, kFixed };
constexpr WordList<SourcePortRule, 4> enum_words(SourcePortRule) {
  return {{{"flow-label", SourcePortRule::kFlowLabel},
           {"qp", SourcePortRule::kQp},
           {"random", SourcePortRule::kRandom},
           {"fixed", SourcePortRule::kFixed}}};
}

}  // namespace stepcast::scenario
