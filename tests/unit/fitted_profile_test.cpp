// What `calibrate --db` adds to a profile, in forecasts: slow-downs, copies, and ranges beyond which a forecast says so.
#include <doctest/doctest.h>

#include <algorithm>

#include "app/forecast/extrapolation.hpp"
#include "app/scenario/setup.hpp"
#include "calibration/profile_check.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("unit");

namespace {

// Eight replicas on one host; gradients are reduced beside the backward pass.
struct Case {
  app::HardwareShelf shelf = app::load_shelf(app::DataFiles{.root = STEPCAST_SOURCE_DIR});
  scenario::Loaded loaded = scenario::load_scenario(STEPCAST_SOURCE_DIR "/configs/quickstart.yaml", {"batch.global=16", "parallel.tp=1", "parallel.dp=8", "parallel.sequence_parallel=false", "parallel.zero=0", "parallel.overlap_grad_reduce=true"});
  app::Setup setup = app::prepare(shelf, loaded);
  [[nodiscard]] double step() const { return app::step_time(setup, true).seconds(); }
  void slow(const char* kernels, std::int64_t workers, double times, std::optional<std::string> beside = std::nullopt) {
    setup.profile.profile.interference.push_back({.what = "test", .slowdown = {times, topology::Basis::kMeasured, "test", {}, {}}, .kernels = kernels, .workers = workers, .beside = std::move(beside)});
  }
};

calibration::FittedRange work(const char* kernels, double least, double most) {
  return {.kernels = kernels, .points = 3, .least_work = Flops::from_si(least), .most_work = Flops::from_si(most), .least_bytes = {}, .most_bytes = {}};
}
calibration::FittedRange bytes(const std::string& kernels, std::int64_t least, std::int64_t most) {
  return {.kernels = kernels, .points = 3, .least_work = {}, .most_work = {}, .least_bytes = Bytes{least}, .most_bytes = Bytes{most}};
}

}  // namespace

TEST_CASE("fitted profile: kernels take the measured slow-down longer where as many workers share a host") {
  const Case plain;
  Case crowded;
  crowded.slow("streams", 8, 2.0);
  CHECK(crowded.step() > 1.01 * plain.step());
  Case other;
  other.slow("streams", 16, 2.0);  // measured with more workers than there are
  CHECK(other.step() == plain.step());
}

TEST_CASE("fitted profile: kernels beside collectives take the measured slow-down longer") {
  const Case plain;
  Case gentle;
  gentle.slow("products", 8, 1.0, "all_reduce");
  Case harsh;
  harsh.slow("products", 8, 2.0, "all_reduce");
  CHECK(gentle.step() < plain.step());  // nothing is taken from kernels: the model takes some
  CHECK(harsh.step() > gentle.step());
  Case copies;
  copies.slow("products", 8, 2.0, "copy both ways");
  CHECK(copies.step() == plain.step());
}

TEST_CASE("fitted profile: measured copies are what an early message costs") {
  Case c;
  const double usual = c.setup.transports.network.ahead.copy_rate;
  c.setup.profile.profile.costs.push_back({.what = "copy", .latency = {}, .bandwidth = {Bandwidth::from_si(3e9), topology::Basis::kMeasured, "test", {}, {}}, .least = Bytes{1}, .most = Bytes{2}});
  app::lay_network(c.setup, c.shelf, c.loaded);
  CHECK(c.setup.transports.network.ahead.copy_rate == 3e9);
  CHECK(usual != 3e9);
}

TEST_CASE("fitted profile: forecasts beyond the fitted ranges say so, within them nothing, and without ranges they do not know") {
  Case c;
  REQUIRE(app::extrapolated(c.setup));
  CHECK(app::extrapolated(c.setup)->empty());  // what ships states its ranges, and usual models lie within
  c.setup.profile.profile.fitted_on.clear();
  CHECK_FALSE(app::extrapolated(c.setup));
  const std::string reduce = calibration::collective_range(plan::CollectiveKind::kAllReduce, false);
  std::vector<calibration::FittedRange>& fitted = c.setup.profile.profile.fitted_on;
  for (const char* kernels : {"products", "attention", "attention backward"}) fitted.push_back(work(kernels, 1.0, 1e18));
  for (const char* kernels : {"streams", "reductions"}) fitted.push_back(bytes(kernels, 1, std::int64_t{1} << 50));
  REQUIRE(app::extrapolated(c.setup));
  CHECK(app::extrapolated(c.setup)->empty());
  fitted.front() = work("products", 1.0, 1e9);
  REQUIRE(app::extrapolated(c.setup)->size() == 1);
  CHECK(app::extrapolated(c.setup)->front().starts_with("products of "));
  CHECK(app::extrapolated(c.setup)->front().ends_with(" % of the kernels' time beyond), fitted on 1 FLOP to 1 GFLOP"));
  fitted.front() = work("products", 1.0, 1e18);
  fitted.push_back(bytes(reduce, 1, std::int64_t{1} << 50));
  fitted.back().least_ranks = 2;
  fitted.back().most_ranks = 4;
  const std::vector<std::string> lines = *app::extrapolated(c.setup);
  CHECK(std::find(lines.begin(), lines.end(), reduce + " of 8 ranks, fitted on 2 ranks to 4 ranks") != lines.end());
  fitted.clear();
  c.slow("streams", 4, 1.1);
  fitted.push_back(work("products", 1.0, 1e18));
  const std::vector<std::string> workers = *app::extrapolated(c.setup);
  CHECK(std::find(workers.begin(), workers.end(), "8 workers of a host at once, measured with 4") != workers.end());
  CHECK(workers.size() == 1);  // of kinds of kernels that have no range nothing is said: their figures have evidence of their own
  fitted.push_back(bytes(calibration::collective_range(plan::CollectiveKind::kBroadcast, false), 1, 2));
  const std::vector<std::string> shared = *app::extrapolated(c.setup);  // one figure for all collectives inside a host
  CHECK(std::find(shared.begin(), shared.end(), reduce + ": none was fitted") != shared.end());
}

// A product of 4 MFLOP beside those of a whole step.
TEST_CASE("fitted profile: kernels beyond the range that take next to no time are passed over") {
  Case c;
  std::vector<calibration::FittedRange>& fitted = c.setup.profile.profile.fitted_on;
  fitted.clear();
  double least = 1e30;
  double most = 0.0;
  for (const plan::Kernel& kernel : c.setup.plan.programs.front().kernels) {
    if (kernel.op != plan::OpClass::kGemm) continue;
    least = std::min(least, kernel.flops.si());
    most = std::max(most, kernel.flops.si());
  }
  plan::Kernel tiny;
  tiny.op = plan::OpClass::kGemm;
  tiny.dtype = plan::Dtype::kBf16;
  tiny.flops = Flops::from_si(2.0 * 128 * 128 * 128);
  tiny.gemm = plan::GemmShape{.batch = 1, .m = 128, .n = 128, .k = 128};
  plan::Program& program = c.setup.plan.programs.front();
  const auto compute = std::find_if(program.instructions.begin(), program.instructions.end(), [](const plan::Instruction& i) { return std::holds_alternative<plan::Compute>(i.body); });
  REQUIRE(compute != program.instructions.end());
  plan::Instruction one = *compute;
  program.kernels.push_back(tiny);
  one.body = plan::Compute{.kernel = plan::KernelId{static_cast<std::uint32_t>(program.kernels.size() - 1)}};
  program.instructions.push_back(one);
  fitted.push_back(work("products", least, most));
  CHECK(app::extrapolated(c.setup)->empty());
  fitted.front() = work("products", least, most / 2);
  CHECK(app::extrapolated(c.setup)->size() == 1);
}

TEST_SUITE_END();
