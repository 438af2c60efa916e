// Device memory while a model comes to be.
#include <doctest/doctest.h>

#include "models/parallel/load_peak.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

std::int64_t peak_of(const std::vector<LoadPeak>& peaks, std::string_view way) {
  for (const LoadPeak& peak : peaks)
    if (peak.way == way) return peak.peak.count();
  return -1;
}

constexpr std::int64_t kModel = 8'030'261'248;                 // Llama-3-8B
constexpr std::int64_t kEnds = 2 * 128256LL * 4096 + 4096;     // tables and the last norm: larger than a layer

}  // namespace

// bf16, fp32 gradients, master and Adam: 18 bytes a parameter, 14 of them in a checkpoint.
TEST_CASE("load peak: a whole model on every GPU") {
  Strategy s;
  s.sequence = 8192;
  s.dp = 8;
  s.global_batch = 8;
  const auto peaks = load_peaks(llama3_8b(), s);
  REQUIRE(peaks.size() == 4);
  CHECK(peak_of(peaks, "in place") == 18 * kModel);
  CHECK(peak_of(peaks, "whole in fp32, then cast") == 18 * kModel);  // 6 bytes a parameter are fewer
  CHECK(peak_of(peaks, "checkpoint through the host") == 18 * kModel + 4 * kEnds);
  CHECK(peak_of(peaks, "checkpoint on the device") == (18 + 14) * kModel);
}

// Sharded over eight: 18/8 bytes a parameter, but the whole model in fp32 is 4 each.
TEST_CASE("load peak: shards of a model that was whole on every GPU first") {
  Strategy s;
  s.sequence = 8192;
  s.dp = 8;
  s.global_batch = 8;
  s.zero = 3;
  const auto peaks = load_peaks(llama3_8b(), s);
  const std::int64_t shard = kModel / 8;
  CHECK(peak_of(peaks, "in place") == -1);
  CHECK(peak_of(peaks, "whole in fp32, then sharded") == 4 * kModel + 2 * shard);
  CHECK(peak_of(peaks, "meta device, a unit at a time") == 18 * shard);  // a unit beside parameters is less
  CHECK(peak_of(peaks, "checkpoint on the device") == (18 + 14) * shard);
}

// The last stage has the head beside its layers, the first the embedding: the fullest counts.
TEST_CASE("load peak: the fullest stage") {
  Strategy s;
  s.sequence = 1024;
  s.pp = 2;
  s.global_batch = 4;
  const workload::ModelShape shape = gpt_shape(4, 1024, 16);
  const ModelBlocks blocks = make_blocks(shape, s);
  std::int64_t most = 0;
  for (const StageModel& stage : split_stages(blocks, s)) most = std::max(most, stage.parameters);
  CHECK(peak_of(load_peaks(shape, s), "in place") == 18 * most);
}

TEST_SUITE_END();
