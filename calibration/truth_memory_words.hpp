// calibration/truth_memory_words.hpp — what a framework holds in memory besides what a row states, in a scenario's words.
//
// Model    logit copies  Megatron's loss turns one fp32 copy of the logits into the softmax in place
//                        (mpu/cross_entropy.py); Megatron-DeepSpeed clones it first (bigscience-workshop/Megatron-DeepSpeed
//                        pull request 155, October 2021, after its runs on V100); Megatron-Core's fused loss, compiled, does
//                        not work in place; torchtitan casts to fp32, then takes PyTorch's log-softmax, over
//                        tensor-parallel ranks with one copy more (loss_parallel); since 2025 compiled with the model, without
//                        copies (components/loss.py)
//          allocator     torchtitan's run_train.sh sets PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
//          training loop DeepSpeed's: outputs kept, gradients copied into buckets of 5e8 elements (its default
//                        reduce_bucket_size) and cast for the update
//          sharding      torchtitan keeps parameters gathered between the passes in a pipeline (parallelize_llama.py:
//                        reshard_after_forward is not pp_enabled)
//                        ColossalAI Gemini's: gradients take the place of parameters in its chunks (reuse_fp16_chunk)
//          context       before CUDA 11.7 a process loaded all kernels of its libraries at once: 1343 MiB on a V100 in
//                        January 2022 (huggingface/transformers docs/source/en/model_memory_anatomy.md)
// Ignores  versions within a framework's name
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast::calibration {

// Each begins with a comma, or is empty.
struct MemoryWords {
  std::string parallel;
  std::string memory;
  std::string training;
};

struct MemoryRow {
  std::string_view framework;
  std::string_view gpu;
  std::string_view notes;
  std::string_view source;             // path of the page, which names year and month
  bool fp32_gradients = true;
  bool pipeline = false;
  bool tensor_parallel = false;
  bool fused_loss = false;             // of Megatron-Core
  std::int64_t bucket_elements = 500'000'000;  // of DeepSpeed's gradients
  std::string_view library_workspace;  // where it is known to differ from the GPU's default; else empty
};
MemoryWords memory_words(const MemoryRow& row);

}  // namespace stepcast::calibration
