// calibration/truth_recipes.hpp — what the launch scripts and recipes that a framework publishes set, where a row of published
// runs does not say it: which attention kernel ran, what was recomputed, how experts were cut.
// Source   each rule names the file that sets it (truth_recipes.cpp). A rule holds for a framework and a model or version of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::calibration {

struct RecipeQuery {
  std::string_view framework;
  std::string_view model;
  std::string_view gpu;
  std::string_view source;
  std::string_view source_loc;  // repository path @ version
  std::int64_t gpus = 0;
  std::int64_t tensor_parallel = 1;
  std::int64_t zero = 0;
  bool sequence_parallel = false;
};

struct Recipe {
  std::string attention{};               // the scenario's word; empty: the framework's habit
  std::string recompute{};               // as tables state it; empty: none
  std::optional<std::int64_t> expert_tp{};
  std::string machine{};                 // profile of the machine (calibration/profiles/machines), where its kernels are published
  bool dispatches_by_host = false;       // to experts: a token crosses to each host once (DeepEP, HybridEP)
  std::string modules{};                 // whose layers run, as a framework's name; empty: the framework's own
  std::int64_t copies_per_shard = 0;     // ZeRO-3: of each rank's part of a bucket of gradients
  std::int64_t copies_per_gathered_shard = 0;  // and of gathered parameters
  bool gathers_wait = false;             // for everything on the device
  std::int64_t bucket_elements = 500'000'000;  // of gradients reduced at once (DeepSpeed's default reduce_bucket_size)
  bool gathers_on_use = false;           // ZeRO-3: a layer's parameters are gathered when it needs them, not ahead
  bool pads_vocabulary = false;          // to a multiple of 128 for each tensor-parallel rank
  bool whole_vocabulary = false;         // not padded by the model, either
  bool launches_block = false;           // CUDA_LAUNCH_BLOCKING=1
};

Recipe recipe_of(const RecipeQuery& query);

}  // namespace stepcast::calibration
