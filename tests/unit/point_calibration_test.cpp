// Points of `stepcast measure`, hand-made, through a database into a profile.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "app/calibrate/point_calibration.hpp"
#include "app/calibrate/stored_points.hpp"
#include "app/measure/measured_point.hpp"
#include "calibration/gpu_parameters.hpp"
#include "calibration/profile_parameters.hpp"
#include "sim/base/diagnostic.hpp"
#include "tests/support/program.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::app;

TEST_SUITE_BEGIN("unit");

namespace {

HardwareShelf shelf() { return load_shelf(DataFiles{STEPCAST_SOURCE_DIR}); }

trace::Run stored(const std::string& name, std::vector<double> seconds, std::int32_t workers = 1, const std::string& machine = "box", const std::string& backend = "cpu", nlohmann::json readings = nlohmann::json::object()) {
  trace::Run run;
  run.name = name;
  run.origin = "measured";
  run.scenario = point_key(backend, machine, workers, name);
  run.created = "2026-11-30T20:00:00Z";
  run.results = nlohmann::json{{"kind", "measure"}, {"point", name}, {"seconds", seconds}, {"readings", readings}}.dump();
  return run;
}

// What a machine a fifth slower than the shipped profile says would show.
void fill(const std::string& file) {
  const HardwareShelf hardware = shelf();
  const topology::Gpu& gpu = hardware.catalogue.gpus.at("cpu-host");
  calibration::Profile profile = calibration::choose_profile(hardware.profiles, gpu).profile;
  calibration::set_parameter(profile, "gemm.mma_efficiency", 0.8);
  calibration::set_parameter(profile, "memory.streaming_efficiency", 0.7);
  const calibration::KernelForecast model{gpu, profile};
  const auto add = [&](const std::string& name) {
    const double t = model.alone_seconds(*kernel_of_name(name));
    trace::append_run(file, stored(name, {t, t, 1.3 * t}));
  };
  for (const int n : {64, 128, 256, 512, 1024, 1536}) add("gemm " + std::to_string(n) + "x" + std::to_string(n) + "x" + std::to_string(n) + " forward");
  for (const int n : {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24}) add("stream " + std::to_string(n) + " + " + std::to_string(n));
  for (const int n : {1 << 16, 1 << 20, 1 << 24}) trace::append_run(file, stored("copy " + std::to_string(n), {2e-6 + n / 5e9}));
  trace::append_run(file, stored("gemm 512x512x512 forward on 2 at once", {3.0 * model.alone_seconds(*kernel_of_name("gemm 512x512x512 forward"))}, 2));
}

}  // namespace

TEST_CASE("stored points: names say what was timed") {
  const auto gemm = kernel_of_name("gemm 8 x 128x64x32 weight_grad");
  REQUIRE(gemm.has_value());
  CHECK(gemm->gemm == plan::GemmShape{8, 128, 64, 32});
  CHECK(gemm->flops.si() == doctest::Approx(2.0 * 8 * 128 * 64 * 32));
  CHECK(kernel_of_name("gemm 512x512x512 bf16 forward")->dtype == plan::Dtype::kBf16);
  CHECK(kernel_of_name("gemm 512x512x512 forward on 2 at once") == kernel_of_name("gemm 512x512x512 forward"));
  CHECK(kernel_of_name("attention 4 heads of 64, 256 tokens backward")->attention->query_length == 256);
  CHECK(kernel_of_name("norm 4096 + 4096")->op == plan::OpClass::kNorm);
  CHECK(kernel_of_name("adam 4096")->op == plan::OpClass::kOptimizer);
  for (const char* other : {"copy 4096", "all_reduce 4096 x2", "gemm 512x512x512 beside all_reduce 1048576 x2", "launch x16", ""}) CHECK_FALSE(kernel_of_name(other).has_value());
}

TEST_CASE("point calibration: a machine's points give its figures, costs and slowdowns") {
  const test::TemporaryDirectory place;
  const std::string file = (place.path() / "p.db").string();
  fill(file);
  const PointCalibration c = calibrate_points(shelf(), stored_points(file), {});
  CHECK(c.machine == "box");
  CHECK(c.kernels == 11);
  CHECK(c.fit.profile.gemm.mma_efficiency.value == doctest::Approx(0.8).epsilon(0.05));
  CHECK(c.fit.profile.memory.streaming_efficiency.value == doctest::Approx(0.7).epsilon(0.05));
  CHECK(c.fit.profile.gemm.mma_efficiency.date == "2026-11-30");
  CHECK(c.fit.fitted.at(calibration::KernelPart::kProducts).median < c.before.at(calibration::KernelPart::kProducts).median);
  REQUIRE(c.costs.size() == 1);
  CHECK(c.costs[0].cost.what == "copy");
  CHECK(c.costs[0].cost.bandwidth.value.si() == doctest::Approx(5e9).epsilon(0.05));
  REQUIRE(c.fit.profile.interference.size() == 1);
  CHECK(c.fit.profile.interference[0].slowdown.value == doctest::Approx(3.0).epsilon(0.01));
  REQUIRE(c.fit.profile.fitted_on.size() == 2);
  CHECK_FALSE(c.fit.profile.attention.tail_share.has_value());  // no attention was timed
  CHECK(c.fit.profile.fitted_on[0].most_work->si() == doctest::Approx(2.0 * 1536 * 1536 * 1536).epsilon(1e-3));
}

// A product of 3 t alone on two workers; beside an all-reduce of t both end after 4 t: the product takes 4/3. An all-reduce that takes longer says nothing.
TEST_CASE("point calibration: a product beside a collective counts where the collective takes less") {
  const test::TemporaryDirectory place;
  const std::string file = (place.path() / "p.db").string();
  fill(file);
  const double t = stored_points(file).back().seconds / 3.0;
  trace::append_run(file, stored("all_reduce 1048576 x2", {t}, 2));
  trace::append_run(file, stored("all_reduce 67108864 x2", {9.0 * t}, 2));
  trace::append_run(file, stored("gemm 512x512x512 beside all_reduce 1048576 x2", {4.0 * t}, 2));
  trace::append_run(file, stored("gemm 512x512x512 beside all_reduce 67108864 x2", {12.0 * t}, 2));
  const std::vector<calibration::Interference> found = calibrate_points(shelf(), stored_points(file), {}).fit.profile.interference;
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == "products beside all_reduce, 2 workers");
  CHECK(found[0].slowdown.value == doctest::Approx(4.0 / 3.0));
  CHECK(found[0].kernels == "products");
  CHECK(found[0].workers == 2);
  CHECK(found[0].beside == "all_reduce");
  CHECK_FALSE(found[1].beside);
}

TEST_CASE("stored points: a damaged record is refused by the name of its run") {
  const auto error_of = [](nlohmann::json results, const std::string& name = "gemm 64x64x64 forward") {
    const test::TemporaryDirectory place;
    const std::string file = (place.path() / "p.db").string();
    trace::Run run = stored(name, {1e-3});
    run.results = results.dump();
    trace::append_run(file, run);
    try {
      stored_points(file);
    } catch (const UserError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  using Json = nlohmann::json;
  const Json sound{{"kind", "measure"}, {"seconds", {1e-3}}};
  CHECK(error_of(sound).empty());
  CHECK(error_of(Json{{"kind", "something else"}, {"seconds", "x"}}).empty());
  const Json work{{"op", "gemm"}, {"read_bytes", 1}, {"written_bytes", 1}, {"flops", 1}};
  Json negative = work;
  negative.update(Json{{"batch", 1}, {"m", -4}, {"n", 4}, {"k", 4}});
  for (const Json& more : {Json{{"seconds", "abc"}}, Json{{"seconds", {1, "x"}}}, Json{{"seconds", {1e300}}}, Json{{"readings", {{"throttle_reasons", {"a"}}}}}, Json{{"readings", {{"throttle_reasons", 5}}}},
                           Json{{"work", {work}}}, Json{{"work", {negative}}}, Json{{"work", {5}}}, Json{{"kind", 5}}}) {
    CAPTURE(more.dump());
    Json broken = sound;
    broken.update(more);
    CHECK(error_of(broken).find("run 1 'gemm 64x64x64 forward': its record is not of the form") != std::string::npos);
  }
  CHECK(error_of(sound, "gemm 99999999999999999999x1x1 forward").find("is not of the form") != std::string::npos);
  CHECK(error_of(sound, "gemm 0x1x1 forward").find("0 where at least 1 belongs") != std::string::npos);
}

// NVML's 0x4 is the power cap, 0x1 an idle GPU.
TEST_CASE("point calibration: throttled and zero samples are labelled and left out") {
  const test::TemporaryDirectory place;
  const std::string file = (place.path() / "p.db").string();
  fill(file);
  trace::append_run(file, stored("gemm 768x768x768 forward", {1.0, 0.01}, 1, "box", "cpu", {{"throttle_reasons", {4, 1}}}));
  trace::append_run(file, stored("gemm 896x896x896 forward", {1.0, 1.0}, 1, "box", "cpu", {{"throttle_reasons", {4, 64}}}));
  trace::append_run(file, stored("gemm 960x960x960 forward", {0.0}));
  const PointCalibration c = calibrate_points(shelf(), stored_points(file), {.gpu = {}, .machine = {}, .folds = 0});
  CHECK(c.throttled_samples == 3);
  CHECK(c.throttled == std::vector<std::string>{"gemm 896x896x896 forward", "gemm 960x960x960 forward"});
  CHECK(c.kernels == 12);
}

TEST_CASE("point calibration: no points, several machines, GPUs without a name and unknown ones are refused") {
  const test::TemporaryDirectory place;
  const std::string file = (place.path() / "p.db").string();
  const auto problem = [&](const PointRequest& request) -> std::string {
    try {
      calibrate_points(shelf(), stored_points(file), request);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  trace::append_run(file, stored("something else", {}));
  CHECK(problem({}).find("no kernel of one worker") != std::string::npos);
  fill(file);
  CHECK(problem({}).empty());
  trace::append_run(file, stored("stream 1024 + 1024", {1e-6}, 1, "other"));
  CHECK(problem({}).find("points of several machines") != std::string::npos);
  CHECK(problem({.gpu = {}, .machine = "box", .folds = 0}).empty());
  CHECK(problem({.gpu = {}, .machine = "nowhere", .folds = 0}).find("no points of it") != std::string::npos);
  trace::append_run(file, stored("gemm 512x512x512 bf16 forward", {1e-4}, 1, "gpubox", "cuda"));
  CHECK(problem({.gpu = {}, .machine = "gpubox", .folds = 0}).find("--gpu is missing") != std::string::npos);
  CHECK(problem({.gpu = "h100-sxm", .machine = "gpubox", .folds = 0}).empty());
  CHECK(problem({.gpu = "nothing", .machine = "box", .folds = 0}).find("unknown GPU") != std::string::npos);
  CHECK_THROWS_AS(calibrate_points(shelf(), {}, {}), UserError);
}
