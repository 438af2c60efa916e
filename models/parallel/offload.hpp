// models/parallel/offload.hpp — what of a worker's state lies in host memory, and the copies and host work that this costs.
//
// Streams  offload.in (host to device), offload.out (device to host), host (the cores)
// Model    Residuals: the input that a layer keeps for its backward pass goes out while the layer runs and comes back one layer ahead of
//          its backward pass; two at a time lie on the device.                                            b s h e / tp bytes each way
//          Gradients: a block's gradient, or its shard, goes out when the block's backward pass is done; from the second micro-batch on
//          the host's sum comes in first and is added to on the device.
//          Update on the host: the cores run the optimizer block by block on n elements, once all gradients are there; updated
//          parameters go in behind it, unless they stay in host memory. Memory traffic of n elements                          (1)
//            n (4 + 2 (m + o) + e_p) + 8 n    gradient in fp32, master m and moments o read and written, parameters written; the
//                                             gradient scaled in a pass of its own
//          Update on the device: what the update needs of a block and does not have comes in, the kernel runs, what it changed goes
//          out; two blocks at a time lie on the device.
//          Parameters are brought in by sharded.hpp: a shard, then gathered; or (shared) the whole unit, where the GPUs of a host see
//          each other's host memory.
// Source   DeepSpeed runtime/zero/stage_1_and_2.py (async_accumulate_grad_in_cpu_via_gpu) and csrc/adam/cpu_adam (host update);
//          Ren et al. 2021, ZeRO-Offload; IST-DASLab/llmq doc.md and src/models/llama_optimizer.cpp (device update, residuals)
// Ignores  NVMe; the delayed update of ZeRO-Offload; that a gradient is summed over replicas before its shard goes out; buffers of the
//          device update
#pragma once

#include <deque>
#include <optional>

#include "models/parallel/emitter.hpp"
#include "models/parallel/stage_model.hpp"
#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

// [B] an element of the optimizer's master copy and moments that lies in host memory.
std::int64_t offloaded_state_bytes(const Strategy& strategy);
// Elements of a block's trained parameters that this worker updates.
std::int64_t updated_elements(const StageBlock& block, const Strategy& strategy);
// [B] of memory traffic of the cores: (1).
Bytes host_update_bytes(const Strategy& strategy, std::int64_t elements);

class OffloadWriter {
 public:
  // All of these outlive it.
  OffloadWriter(const StageModel& model, const Strategy& strategy, Emitter& emitter) : model_{model}, strategy_{strategy}, emitter_{emitter} {}

  // Of what a block saves, the part that leaves the device.
  [[nodiscard]] Bytes leaves(std::size_t block, Bytes saved) const;
  void before_forward(std::size_t block, Bytes saved);
  void after_forward();
  // `next`: the block whose backward pass follows, if any.
  void before_backward(std::size_t block, Bytes saved, std::optional<std::size_t> next, Bytes next_saved);
  void after_backward(std::size_t block, std::uint16_t micro_batch);
  // From gradients to parameters, in place of the update on the device alone.
  void update();

 private:
  struct Staged {
    std::optional<plan::BufferId> buffer;
    plan::EventId done;  // the buffer may be used again
  };
  void fetch(std::size_t block, Bytes bytes);
  void retire(std::deque<Staged>& staged, std::size_t left);
  void update_on_host();
  void update_on_device();
  [[nodiscard]] plan::StreamId in() { return emitter_.builder.stream(plan::StreamKind::kHostToDevice, "offload.in"); }
  [[nodiscard]] plan::StreamId out() { return emitter_.builder.stream(plan::StreamKind::kDeviceToHost, "offload.out"); }
  [[nodiscard]] plan::StreamId host() { return emitter_.builder.stream(plan::StreamKind::kHost, "host"); }
  void copy_in(std::string_view label, Bytes bytes);
  void copy_out(std::string_view label, Bytes bytes);

  const StageModel& model_;
  const Strategy& strategy_;
  Emitter& emitter_;
  std::deque<Staged> outgoing_;   // residuals on their way to the host
  std::deque<Staged> gradients_;  // of a worker without replicas
  struct Fetched {
    std::size_t block = 0;
    std::optional<plan::BufferId> buffer;
    plan::EventId arrived;
  };
  std::deque<Fetched> fetched_;
  std::optional<plan::EventId> last_used_;
};

}  // namespace stepcast::parallel
