// What rows of published runs keep in host memory, in a scenario's words.
#include <doctest/doctest.h>

#include "calibration/truth_offload.hpp"
#include "calibration/truth_row.hpp"
#include "sim/base/csv.hpp"
#include "tests/support/source_dir.hpp"
#include "topologies/catalogue.hpp"

using namespace stepcast;
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

// The whole scenario of a row: DeepSpeed's ZeRO-3 with everything on the host, experts on several hosts.
TEST_CASE("truth rows: what is stated reaches the scenario") {
  const topology::Catalogue catalogue = topology::load_catalogue(STEPCAST_SOURCE_DIR "/topologies/data");
  const std::string columns = "row_id,model,gpu,n_gpus,gpus_per_node,intra_node,layers,hidden,heads,kv_heads,ffn,gated_mlp,vocab,seq_len,global_batch,micro_batch,dp,ep,experts,moe_topk,moe_ffn,zero,offload,precision,framework,step_s\n";
  const auto scenario = [&](const std::string& row) {
    const std::vector<TruthRow> rows = read_truth_table(CsvTable::parse(columns + row + "\n", "t.csv"), catalogue);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].refusal == "");
    return rows[0].scenario;
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string offloaded =
      scenario("a,Qwen2.5-7B,RTX4090,4,4,PCIe4,28,3584,28,4,18944,1,152064,1024,512,32,4,,,,,3,cpu optimizer+params (DeepSpeed ZeRO-3 offload),bf16 (AdamW fp32 or bf16 "
               "master per config),LLaMA-Factory + DeepSpeed,75");
  CHECK(has(offloaded, "offload: [master, momentum, variance, parameters]"));
  CHECK(has(offloaded, "prefetch: 0, gather_by_matrix: true"));
  CHECK(has(offloaded, "host_waits: gradients"));
  CHECK(has(offloaded, "fp32_master: false"));
  CHECK(has(offloaded, "gradients: bf16"));
  const std::string wide = scenario("c,DeepSeek-V3,B200,32,8,NVLink5+NVSwitch,8,7168,128,128,18432,1,129280,4096,32,1,32,32,256,8,2048,1,none,bf16,Megatron-Bridge 26.04.01,3");
  CHECK(has(wide, "ep: 32, ep_within: 8"));
}

TEST_SUITE_END();
