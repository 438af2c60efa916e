// calibration/truth_megatron.hpp — how a functional test of Megatron-Core ran, from the name of the test case and the
// flags in its notes ("flags: deterministic-mode, attention-backend=unfused, transformer-impl=local, ...").
//
// Model    what neither says is the default of megatron/training/arguments.py: tied embeddings, LayerNorm, learned
//          positions, biases, dropout 0.1 (attention and hidden), loss not fused
//          local layers compute unfused attention; Transformer Engine's take a fused or a flash kernel unless told
//          unfused. Tests over context-parallel ranks and release tests set dropout 0; tests with experts have no
//          biases; the models of 7B and up do not tie their embeddings
//          deterministic tests set CUBLAS_WORKSPACE_CONFIG=:4096:8: 32 MiB a handle, two handles (forward, backward);
//          Transformer Engine's own workspace is 32 MiB from Hopper on, 4 MiB before; local layers compute their scores into
//          a buffer that they keep (dot_product_attention.py, get_global_memory_buffer)
// Source   NVIDIA/Megatron-LM tests/functional_tests/test_cases/*/model_config.yaml, megatron/training/arguments.py;
//          NVIDIA/TransformerEngine pytorch/module/base.py get_cublas_workspace_size_bytes
// Ignores  sizes of virtual-pipeline groups and uneven stages, which neither name nor flags give
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::calibration {

struct MegatronTest {
  std::string refusal;                // of a kind of model that cannot be expressed
  bool unfused_attention = false;
  bool fused_loss = false;
  bool fused_accumulation = true;
  bool grouped_experts = false;
  bool tied = true;
  bool bias = true;
  bool rotary = false;
  bool rms_norm = false;
  bool qk_norm = false;
  double dropout = 0.1;
  std::optional<std::int64_t> vocab;  // of the test's tokenizer, where the model is known by it
  std::string library_workspace;      // "68 MiB"
};

struct MegatronTestRow {
  std::string_view model;      // "gpt:gpt3_mcore_te_tp2_pp2"
  std::string_view notes;
  std::string_view gpu;
  std::int64_t hidden = 0;
  std::int64_t scores = 0;     // elements of one layer's attention scores on one rank
  bool context_parallel = false;
  bool experts = false;
};

// Empty for a row that is no functional test of Megatron-Core.
std::optional<MegatronTest> megatron_test(const MegatronTestRow& row);

}  // namespace stepcast::calibration
