// Forecast against measurement, worked by hand on two workers and a handful of instructions.
#include <doctest/doctest.h>

#include <cmath>

#include "app/validate/validation.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/plan/builder.hpp"
#include "sim/run/spans.hpp"

using namespace stepcast;
using app::Validation;
using app::ValidationRow;

TEST_SUITE_BEGIN("app");

namespace {

// Two stages. Stage 0: a product, a norm, the product again, a send. Stage 1: a receive, a product in the backward pass.
plan::Plan two_stages() {
  const plan::Kernel gemm{.op = plan::OpClass::kGemm, .flops = Flops::from_si(2.0)};
  const plan::Kernel norm{.op = plan::OpClass::kNorm};
  plan::Plan plan;
  plan.name = "two";
  plan.degrees[plan::Axis::kPipeline] = 2;
  for (int stage = 0; stage < 2; ++stage) {
    plan::Program program;
    program.name = "stage";
    program.streams = {{plan::StreamKind::kCompute, "compute"}, {plan::StreamKind::kCommunication, "pp"}};
    program.labels = {"mm", "norm", "message"};
    program.kernels = {gemm, norm};
    const auto add = [&](std::uint8_t stream, plan::Stage s, std::uint32_t label, plan::Body body) {
      program.instructions.push_back({.stream = plan::StreamId{stream}, .stage = s, .label = plan::LabelId{label}, .layer = {}, .micro_batch = 0, .body = body});
    };
    if (stage == 0) {
      add(0, plan::Stage::kForward, 0, plan::Compute{plan::KernelId{0u}});
      add(0, plan::Stage::kForward, 1, plan::Compute{plan::KernelId{1u}});
      add(0, plan::Stage::kForward, 0, plan::Compute{plan::KernelId{0u}});
      add(1, plan::Stage::kForward, 2, plan::Send{1, Bytes{100}});
    } else {
      add(1, plan::Stage::kForward, 2, plan::Recv{0, Bytes{100}});
      add(0, plan::Stage::kBackward, 0, plan::Compute{plan::KernelId{0u}});
    }
    plan.programs.push_back(std::move(program));
    plan.program_of_stage.push_back(plan::ProgramId{static_cast<std::uint32_t>(stage)});
  }
  return plan;
}

struct Timed {
  std::uint32_t worker, instruction;
  std::int64_t start_us, duration_us;
};

trace::Recording recording_of(const plan::Plan& plan, const char* origin, std::initializer_list<Timed> timed) {
  trace::Recording r{.name = plan.name, .origin = origin, .streams = {}, .workers = {}, .spans = {}, .counters = {}};
  for (const Timed& t : timed) {
    r.workers[RankId{t.worker}] = run::worker_label(plan, RankId{t.worker});
    r.spans.push_back(run::span_of(plan, RankId{t.worker}, t.instruction, TimePoint::at(Duration::microseconds(t.start_us)), Duration::microseconds(t.duration_us), r.streams));
  }
  return r;
}

const ValidationRow& row(const std::vector<ValidationRow>& rows, const std::string& name) {
  for (const ValidationRow& r : rows) {
    if (r.name == name) return r;
  }
  FAIL("no row ", name);
  return rows.front();
}

}  // namespace

// Worker 0, forecast: 10, 2, 10 us; measured 12, 2, 8: the products' sum is right (0 %), each is off by 2 us: absolute 4 / 20. Worker 1's
// product: 20 forecast, 25 measured. The receive waits from 0 on, its send starts at 22 in both: 3 us forecast, 5 measured.
TEST_CASE("validation: instructions are compared one by one, messages from when both sides are there") {
  const plan::Plan plan = two_stages();
  const trace::Recording forecast = recording_of(plan, "simulated", {{0, 0, 0, 10}, {0, 1, 10, 2}, {0, 2, 12, 10}, {0, 3, 22, 3}, {1, 0, 22, 3}, {1, 1, 25, 20}});
  // Out of order, as a store may give them.
  const trace::Recording measured = recording_of(plan, "measured", {{1, 1, 27, 25}, {1, 0, 0, 27}, {0, 2, 14, 8}, {0, 0, 0, 12}, {0, 1, 12, 2}, {0, 3, 22, 5}});
  const Validation v = app::validate_run(plan, 45e-6, forecast, 52e-6, measured);
  CHECK(v.exact);
  CHECK(v.matched == 6);
  CHECK(v.workers == 2);
  CHECK(v.step_error() == doctest::Approx(45.0 / 52.0 - 1.0));
  const ValidationRow& gemm = row(v.by_class, "gemm");
  CHECK(gemm.count == 3);
  CHECK(gemm.forecast_s == doctest::Approx(40e-6 / 2));  // the mean over workers
  CHECK(gemm.measured_s == doctest::Approx(45e-6 / 2));
  CHECK(*gemm.signed_error() == doctest::Approx(40.0 / 45.0 - 1.0));
  CHECK(*gemm.absolute == doctest::Approx((2.0 + 2.0 + 5.0) / 45.0));
  CHECK(row(v.by_class, "receive").measured_s == doctest::Approx(5e-6 / 2));
  CHECK(row(v.by_class, "send").forecast_s == doctest::Approx(3e-6 / 2));
  CHECK(row(v.by_stream, "pp").count == 2);
  // Phases of the compute stream add up to the step.
  double forecast_sum = 0.0;
  double measured_sum = 0.0;
  for (const ValidationRow& r : v.by_phase) {
    forecast_sum += r.forecast_s;
    measured_sum += r.measured_s;
  }
  CHECK(forecast_sum == doctest::Approx(45e-6));
  CHECK(measured_sum == doctest::Approx(52e-6));
  CHECK(row(v.by_phase, "wait").measured_s == doctest::Approx((2 * 52e-6 - 22e-6 - 25e-6) / 2));
  CHECK(row(v.by_phase, "backward").forecast_s == doctest::Approx(10e-6));
  REQUIRE(v.worst.size() == 6);
  CHECK(v.worst[0].worker == RankId{1u});
  CHECK(v.worst[0].difference_s() == doctest::Approx(-5e-6));
  CHECK(v.side_by_side.workers.size() == 4);
  CHECK(v.side_by_side.workers.begin()->second.starts_with("forecast: rank 0"));
  CHECK(v.side_by_side.workers.rbegin()->second.starts_with("measured: rank 1"));
  CHECK(v.side_by_side.spans.size() == 12);
}

TEST_CASE("validation: what one side lacks is not matched") {
  const plan::Plan plan = two_stages();
  const trace::Recording forecast = recording_of(plan, "simulated", {{0, 0, 0, 10}, {0, 1, 10, 2}, {0, 2, 12, 10}, {0, 3, 22, 3}});
  const trace::Recording measured = recording_of(plan, "measured", {{0, 0, 0, 12}, {0, 2, 14, 8}, {1, 1, 27, 25}});
  const Validation v = app::validate_run(plan, 45e-6, forecast, 52e-6, measured);
  CHECK(v.workers == 1);
  CHECK(v.matched == 2);
  CHECK(v.forecast_count == 4);
  CHECK(v.notes.size() == 1);
  const Validation none = app::validate_run(plan, 45e-6, forecast, 52e-6, {});
  CHECK(none.matched == 0);
  CHECK(none.by_class.empty());
  CHECK(app::validation_text(none, {}).find("0 of 0 instructions") != std::string::npos);
}

// A profile: as many products (compared one by one), three norms against one (their sums). Three steps: the one of 50 us is the median.
TEST_CASE("validation: a profile is compared by class and order") {
  const plan::Plan plan = two_stages();
  const trace::Recording forecast = recording_of(plan, "simulated", {{0, 0, 0, 10}, {0, 1, 10, 2}, {0, 2, 12, 10}, {0, 3, 22, 3}});
  trace::Recording profile{.name = "p", .origin = "measured", .streams = {"steps", "stream 7"}, .workers = {{RankId{0u}, "rank 0"}}, .spans = {}, .counters = {}};
  const auto add = [&](std::uint8_t stream, std::int64_t start, std::int64_t duration, const char* name, const char* category) {
    profile.spans.push_back({RankId{0u}, stream, TimePoint::at(Duration::microseconds(start)), Duration::microseconds(duration), name, category, {}, {}, {}, {}});
  };
  add(0, 0, 70, "step 1", "step");
  add(0, 100, 50, "step 2", "step");
  add(0, 200, 40, "step 3", "step");
  add(1, 1, 5, "sgemm", "gemm");
  for (const std::int64_t t : {101, 130}) add(1, t, 11, "sgemm", "gemm");
  for (const std::int64_t t : {115, 117, 119}) add(1, t, 1, "rms", "norm");
  add(1, 145, 1, "send_recv", "collective");
  add(1, 146, 4, "mystery", "other");
  const Validation v = app::validate_profile(plan, 25e-6, forecast, profile);
  CHECK_FALSE(v.exact);
  CHECK(v.measured_step_s == doctest::Approx(50e-6));
  CHECK(v.forecast_count == 4);
  CHECK(v.measured_count == 7);
  CHECK(v.matched == 3);  // two products, one message
  CHECK(*row(v.by_class, "gemm").absolute == doctest::Approx(2.0 / 22.0));
  CHECK(row(v.by_class, "norm").measured_count == 3u);
  CHECK_FALSE(row(v.by_class, "norm").absolute.has_value());
  CHECK(row(v.by_class, "other").forecast_s == 0.0);
  CHECK(v.by_phase.empty());
  std::erase_if(profile.spans, [](const trace::Span& s) { return s.category == "step"; });
  CHECK_THROWS_AS(app::validate_profile(plan, 25e-6, forecast, profile), UserError);
}

TEST_SUITE_END();
