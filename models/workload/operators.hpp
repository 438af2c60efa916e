// models/workload/operators.hpp — a transformer block as the operators one tensor-parallel rank runs
// for one micro-batch: kernels in issue order, the tensor-parallel collectives between them, the
// activations kept for the backward pass, and the parameters held.
//
// Symbols  s [1] sequence length, b [1] micro-batch, t [1] tensor-parallel degree, h hidden size
// Sources  Megatron-LM column/row split: Shoeybi et al. 2019 (arXiv 1909.08053) section 3;
//          sequence parallelism and activation bytes: Korthikanti et al. 2022 (arXiv 2205.05198)
//          sections 4 and 5; flash attention's saved statistics: Dao 2023 (arXiv 2307.08691)
//          experts: Megatron-Core MoELayer with its all-to-all dispatcher; rings of keys and values:
//          Liu et al. 2023 (arXiv 2310.01889), Transformer Engine context_parallel; all-gather: Llama 3
//          (arXiv 2407.21783 section 3.3.2); over heads: Jacobs et al. 2023 (Ulysses, arXiv 2309.14509)
// Ignores  dropout in training recipes that turn it off (default off), multimodal blocks
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/workload/adapters.hpp"
#include "models/workload/model_shape.hpp"
#include "models/workload/routing.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/instruction.hpp"
#include "sim/plan/kernel.hpp"

namespace stepcast::workload {

enum class AttentionKernel : std::uint8_t {
  kFlash,    // fused; causal runs half the score work; keeps output and log-sum-exp
  kUnfused,  // batched GEMM, masked softmax, batched GEMM; runs the full square; keeps the scores
};

// layer_recompute.cpp has what each keeps.
enum class Recompute : std::uint8_t { kNone, kSelective, kOperators, kFull };

// What selective recomputation computes again (Megatron-Core recompute_modules, and finer ones).
struct RecomputeParts {
  bool attention_core = true;  // scores and softmax; with flash attention there is nothing to keep of them
  bool norms = false;          // layernorm: outputs of the norms before both halves
  bool latents = false;        // mla_up_proj: q, k, v from the latents
  bool expert_activations = false;  // moe_act: what enters the down projections of experts
  bool mlp_activations = false;     // the same of dense MLPs
  bool qkv = false;            // queries, keys and values
  bool attention = false;      // these and all of the attention, fused or not
  bool up = false;             // the up projection of dense MLPs
  bool mlp = false;            // mlp: dense MLPs
  bool experts = false;        // moe: router, exchanges, experts
  bool shared = false;         // shared_experts
  friend bool operator==(const RecomputeParts&, const RecomputeParts&) = default;
};

// How attention sees keys and values of other context-parallel ranks.
enum class ContextStyle : std::uint8_t {
  kRing,       // passed on from rank to rank beside the attention to the part that is there; each rank holds
               // an early and a late part of the sequence, so that causal work is even (zig-zag)
  kPlainRing,  // as kRing, each rank one part: the last rank has work in every step
  kAllGather,  // gathered before the attention
  kUlysses,    // all-to-all: the whole sequence for a part of the heads
};

constexpr bool is_ring(ContextStyle style) { return style == ContextStyle::kRing || style == ContextStyle::kPlainRing; }

struct BlockOptions {
  std::int64_t micro_batch = 1;
  std::int64_t sequence = 0;
  int tensor_parallel = 1;
  bool sequence_parallel = false;
  bool overlap_tensor_parallel = false;           // its gathers and scatters run inside products
  int context_parallel = 1;
  ContextStyle context_style = ContextStyle::kRing;
  int expert_parallel = 1;
  int expert_tensor_parallel = 1;
  std::optional<int> experts_within;              // expert-parallel ranks of one host: tokens cross hosts once
  Routing routing;
  std::optional<plan::Dtype> dispatch_dtype;      // of tokens and gradients on their way to experts; empty: dtype
  bool overlap_shared_experts = false;            // they run beside dispatch and combine
  plan::Dtype dtype = plan::Dtype::kBf16;         // of activations and of the arithmetic outside GEMMs
  std::optional<plan::Dtype> gemm_dtype;          // e.g. fp8 linear layers; empty: dtype
  AttentionKernel attention = AttentionKernel::kFlash;
  Recompute recompute = Recompute::kNone;
  RecomputeParts recompute_parts;
  // bias+activation, bias+dropout+residual, scale+mask+softmax and norm in one kernel each; false:
  // one kernel an operation, norms and softmax through fp32 copies.
  bool fused_kernels = true;
  bool fused_loss = true;  // cross-entropy in two kernels; false: six, through fp32 copies
  int logit_copies = 0;    // fp32 copies of the logits beside the one that becomes the softmax
  // Weight gradients are added up in the epilogue of their GEMM; false: by one more kernel for
  // every parameter tensor.
  bool fused_accumulation = true;
  bool grouped_experts = true;                    // products of a rank's experts in one kernel; false: one after another
  double dropout = 0.0;                           // > 0 keeps masks (1 byte an element)
  std::int64_t vocab_padding = 128;               // padded to a multiple of this times t (Megatron)
  plan::Dtype gradient_dtype = plan::Dtype::kFp32; // weight gradients accumulate in it
  std::optional<Adapters> adapters;               // these are trained, all else is frozen
};

struct Operator {
  std::string name;  // "attention.qkv", "mlp.up", "norm1", ...
  plan::Kernel kernel;
  bool routed = false;  // works on routed experts' weights
  bool frozen = false;  // on weights that are not trained
};

// The ranks that a block's collective runs over; across hosts and within one: parts of kExpert.
enum class Over : std::uint8_t { kTensor, kContext, kExpert, kExpertTensor, kExpertAcross, kExpertWithin };

// Of an all-to-all: what each rank gets is equal, or follows the load of the experts that it holds.
enum class Parts : std::uint8_t { kEqual, kToExperts, kFromExperts };

// A collective at this point of the block.
struct BlockCollective {
  std::string name;
  plan::CollectiveKind kind = plan::CollectiveKind::kAllReduce;
  Bytes bytes;       // as plan::Collective::bytes
  plan::Dtype dtype = plan::Dtype::kBf16;
  // May run beside the `overlap_steps` steps that follow it in the list (the weight-gradient GEMM,
  // say); the step after those needs its result.  overlaps_next is overlap_steps > 0.
  bool overlaps_next = false;
  int overlap_steps = 0;
  bool for_weights = false;  // needed by weight gradients only: goes with them where they are put off
  Over over = Over::kTensor;
  Parts parts = Parts::kEqual;
};

using Step = std::variant<Operator, BlockCollective>;

struct SavedTensor {
  std::string name;
  Bytes size;  // per tensor-parallel rank
};

// Weights that are held and used but not trained, as they are stored; beside Block::parameters.
struct FrozenWeights {
  Bytes dense;
  Bytes routed;  // of routed experts
  Bytes scales;  // of 4-bit weights; not cut where parameters are sharded (FSDP leaves them on every rank)
  FrozenWeights& operator+=(const FrozenWeights& other) {
    dense += other.dense;
    routed += other.routed;
    scales += other.scales;
    return *this;
  }
};

struct Block {
  std::string name;                 // "layer", "embedding", "head"
  std::vector<Step> forward;
  std::vector<Step> recompute;      // runs before `backward`; empty unless recomputing
  std::vector<Step> backward;       // input- and weight-gradient kernels apart (Kernel::pass)
  std::vector<SavedTensor> saved;   // kept from forward to backward
  // Where weight gradients are put off: what lives from the input gradients to them. The inputs of the
  // linear layers (of `saved`, or computed again), and the gradients of their outputs.
  Bytes weight_inputs;
  Bytes weight_gradients;
  Bytes recompute_peak;             // extra activations alive while the block is recomputed
  Bytes forward_workspace;          // largest transient within the pass (beyond saved)
  Bytes backward_workspace;
  std::int64_t parameters = 0;      // held by one rank, trained
  std::int64_t matrix_count = 0;    // parameter tensors, for optimizer launch counts
  std::int64_t routed_parameters = 0;  // of `parameters`: of the routed experts that this rank holds
  std::int64_t routed_count = 0;       // of `matrix_count`
  FrozenWeights frozen;
};

// Requires: t divides heads, and kv_heads divides t or t divides kv_heads (checked by the planner).
Block make_embedding(const ModelShape& shape, const BlockOptions& options);
Block make_layer(const ModelShape& shape, std::int64_t layer, const BlockOptions& options);
// Final norm, logits, loss; `shares_embedding`: tied weights that live on this same stage count once.
Block make_head(const ModelShape& shape, const BlockOptions& options, bool shares_embedding);
// A further token's prediction behind the head: the next token's embedding joined to the hidden state by a
// projection, one more layer, the head again. Tables are the model's; the projection's weights are whole on
// each tensor-parallel rank, which projects its own tokens. (DeepSeek-V3, arXiv 2412.19437 section 2.2.)
Block make_predictor(const ModelShape& shape, const BlockOptions& options);

// The vision encoder, of a micro-batch's images: patch embedding, one layer, projector.
struct VisionBlocks {
  Block patches;
  Block layer;
  Block projector;
  std::int64_t partial_gradients = 0;  // that tensor-parallel ranks hold in part, of all of it
};
// Requires: the tower has images, and t divides its heads and width.
VisionBlocks make_vision(const VisionTower& tower, const BlockOptions& options);

// Elements of a layer's adapters that every tensor-parallel rank holds and sees its own tokens of: on weights
// into latents. Requires: adapters.
std::int64_t whole_adapter_elements(const ModelShape& shape, const BlockOptions& options);
// Elements of the largest weight gradient that one of `backward` makes, all experts of a grouped product together.
std::int64_t largest_weight_gradient(const std::vector<Step>& backward);

// Padded vocabulary: the next multiple of options.vocab_padding * t.
std::int64_t padded_vocab(const ModelShape& shape, const BlockOptions& options);

// Boundary activation handed to the next pipeline stage (per tensor-parallel rank).
Bytes boundary_activation(const ModelShape& shape, const BlockOptions& options);

// FLOPs of one training step per sequence (forward and backward, recompute not counted), by
// convention. The three differ in attention and embedding terms; see docs/guide/metrics.md.
//   kMegatron  72 l s h^2 (1 + s/(6h) + V/(12 h l)) generalised to GQA, gated MLPs, latent attention
//              and the experts a token visits; the full
//              square of attention scores (Narayanan et al. 2021, eq. 3, less the recompute term)
//   kPalm      6 N + 12 l H Q s per token, N without embedding tables and without the
//              experts a token does not visit (Chowdhery et al. 2022, app. B)
//   kLlama     as kMegatron but attention scores counted causally (half)
enum class FlopsConvention : std::uint8_t { kMegatron, kPalm, kLlama };
// With adapters, by each rule: a frozen weight counts in the forward pass and the input gradient, two thirds of
// a trained one; adapters count as trained weights (Megatron-Bridge flop_utils.py, is_lora).
Flops model_flops_per_sequence(const ModelShape& shape, std::int64_t sequence, FlopsConvention convention,
                               const std::optional<Adapters>& adapters = std::nullopt);
const char* name_of(FlopsConvention convention);

}  // namespace stepcast::workload
