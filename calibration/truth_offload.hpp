// calibration/truth_offload.hpp — what a row of published runs keeps in host memory, in a scenario's words.
//
// Model    llm.q names the parts ("cpu: master,opt-m,opt-v,quants,residual"); states pass through the device in the update. With sharded
//          weights a layer is brought in for each pass: from the host where its source is there, the quantised copy if that persists
//          (persistent-quants), else the master. memcpy-all-gather: GPUs read each other's host memory.
//          DeepSpeed's CPU optimizer runs on the host's cores and has the gradients sent there; "params": ZeRO-3 parameters, too;
//          "activation": checkpoints of layers.
// Source   IST-DASLab/llmq README ("Offloading") and doc.md; DeepSpeed docs/_tutorials/zero-offload.md, zero.md
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::calibration {

struct OffloadRow {
  std::string_view stated;  // the column
  std::string_view notes;
  std::int64_t zero = 0;
};

// Empty words where nothing is offloaded.
struct OffloadWords {
  std::string refusal;
  std::string memory;    // begins with a comma
  std::string parallel;  // begins with a comma
  std::int64_t zero = 0;
  std::vector<std::string> assumed;
};
OffloadWords offload_words(const OffloadRow& row);

}  // namespace stepcast::calibration
