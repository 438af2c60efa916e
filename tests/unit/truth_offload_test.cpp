// What rows of published runs keep in host memory, in a scenario's words.
#include <doctest/doctest.h>

#include "calibration/truth_offload.hpp"

using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

TEST_CASE("truth rows: offload of llm.q") {
  const OffloadWords states = offload_words({.stated = "cpu: opt-m,opt-v", .notes = "options: lmhead-chunks=4"});
  CHECK(states.memory == ", offload: [momentum, variance], offload_update: device");
  CHECK(states.parallel.empty());
  CHECK(states.zero == 0);
  // Sharded weights whose source is in host memory are brought in layer by layer, on one GPU too.
  const OffloadWords streamed = offload_words({.stated = "cpu: master,opt-m,opt-v", .notes = "sharding: shard-weights"});
  CHECK(streamed.memory == ", offload: [master, momentum, variance, parameters], offload_update: device");
  CHECK(streamed.zero == 3);
  // The quantised copy that persists is the source where there is one.
  const OffloadWords kept = offload_words({.stated = "cpu: master,residual", .notes = "sharding: shard-weights; options: persistent-quants", .zero = 3});
  CHECK(kept.memory == ", offload: [master, residuals], offload_update: device");
  const OffloadWords quants = offload_words({.stated = "cpu: master,quants", .notes = "sharding: shard-weights; options: memcpy-all-gather persistent-quants", .zero = 3});
  CHECK(quants.memory == ", offload: [master, parameters], offload_update: device, offload_shared: true");
  CHECK(quants.parallel == ", fp8_param_gather: true");
  CHECK(offload_words({.stated = "cpu: kv"}).refusal == "offload 'kv' is not modelled yet");
}

TEST_CASE("truth rows: offload of DeepSpeed") {
  CHECK(offload_words({.stated = "none"}).memory.empty());
  CHECK(offload_words({.stated = ""}).memory.empty());
  CHECK(offload_words({.stated = "cpu optimizer (ZeRO-Offload, DeepSpeedCPUAdam)", .zero = 2}).memory == ", offload: [master, momentum, variance]");
  CHECK(offload_words({.stated = "cpu optimizer+params (DeepSpeed ZeRO-3 offload)", .zero = 3}).memory == ", offload: [master, momentum, variance, parameters]");
  CHECK(offload_words({.stated = "cpu optimizer + activation (stated for the study)", .zero = 3}).memory == ", offload: [master, momentum, variance, residuals]");
  CHECK(offload_words({.stated = "cpu (Gemini auto placement)", .zero = 3}).assumed.size() == 1);
  CHECK_FALSE(offload_words({.stated = "nvme optimizer + nvme params (ZeRO-Infinity)"}).refusal.empty());
}

TEST_SUITE_END();
