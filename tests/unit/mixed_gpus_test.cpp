// A job on GPUs of two kinds: each worker runs at its own pace, and what meets waits for the slower.
#include <doctest/doctest.h>

#include <string>

#include "app/scenario/hardware_shelf.hpp"
#include "app/scenario/setup.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/source_dir.hpp"

namespace stepcast::app {
namespace {

const HardwareShelf& shelf() {
  static const HardwareShelf loaded = load_shelf(DataFiles{.root = STEPCAST_SOURCE_DIR});
  return loaded;
}

// Two boxes of eight, one pipeline stage on each.
Forecast run(const std::string& extra, bool fold = true, const std::string& parallel = "tp: 8, pp: 2, sequence_parallel: true") {
  const std::string text = "name: mixed\nmodel: {preset: llama3-8b, sequence: 4096}\ncluster:\n  nodes: 2\n  node: dgx-h100\n"
                           "  fabric: {preset: rail-clos}\n" + extra + "batch: {global: 32}\n";
  const std::size_t at = text.find("batch:");
  return forecast(prepare(shelf(), scenario::load_scenario_text(text.substr(0, at) + "parallel: {" + parallel + "}\n" + text.substr(at), "s.yaml")),
                  {.fold = fold});
}

const std::string kMixed = "  other_gpus: [{nodes: \"1\", gpu: a100-sxm-80}]\n";
const std::string kAllOther = "  gpu: a100-sxm-80\n";

TEST_SUITE_BEGIN("unit");

TEST_CASE("mixed GPUs: a pipeline over both is slower than the fast kind, and faster with fewer layers on the slow one") {
  const double fast = run("").step_time_s();
  const Forecast mixed = run(kMixed);
  CHECK(mixed.step_time_s() > 1.3 * fast);
  CHECK(mixed.step_time_s() < 1.02 * run(kAllOther).step_time_s());
  CHECK(mixed.result.folded);  // each stage is of one kind
  CHECK(run(kMixed, false).result.step == mixed.result.step);
  const double uneven = run(kMixed, true, "tp: 8, pp: 2, sequence_parallel: true, layers_per_stage: [21, 11]").step_time_s();
  CHECK(uneven < 0.9 * mixed.step_time_s());
  CHECK(uneven > fast);
  // The peak that MFU divides by is the mean of both.
  CHECK(mixed.peak.si() == doctest::Approx((run("").peak.si() + run(kAllOther).peak.si()) / 2));
  CHECK_FALSE(mixed.notes.empty());
}

// Replicas of equal batches wait for the slower one; every worker is simulated, since those of a stage differ.
TEST_CASE("mixed GPUs: replicas wait for the slower kind") {
  const std::string replicas = "tp: 8, dp: 2, sequence_parallel: true";
  const Forecast mixed = run(kMixed, true, replicas);
  CHECK_FALSE(mixed.result.folded);
  CHECK(mixed.result.workers_simulated == 16);
  CHECK(mixed.step_time_s() > 1.5 * run("", true, replicas).step_time_s());
  CHECK(mixed.device_memory <= run("", true, replicas).device_memory);
}

TEST_CASE("mixed GPUs: what is refused") {
  const auto problem = [](const std::string& extra) {
    try {
      run(extra);
    } catch (const UserError& error) {
      return error.diagnostics().front().path + ": " + error.diagnostics().front().problem;
    }
    return std::string{};
  };
  CHECK(problem("  other_gpus: [{nodes: \"2\", gpu: a100-sxm-80}]\n") == "cluster.other_gpus[0].nodes: no node 2");
  CHECK(problem("  other_gpus: [{nodes: \"1\", gpu: a100-sxm-80}, {nodes: 0-1, gpu: h200-sxm}]\n") ==
        "cluster.other_gpus[1].nodes: node 1 has other GPUs already");
  CHECK(problem("  other_gpus: [{nodes: \"1\", gpu: a1000}]\n").starts_with("cluster.other_gpus[0].gpu: "));
}

TEST_SUITE_END();

}  // namespace
}  // namespace stepcast::app
