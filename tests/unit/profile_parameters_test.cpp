#include <doctest/doctest.h>

#include <set>

#include "calibration/profile_parameters.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/write.hpp"
#include "tests/support/gpu_profile_fixture.hpp"
#include "tests/support/source_dir.hpp"
#include "topologies/catalogue_keys.hpp"

using namespace stepcast;
using namespace stepcast::calibration;
using namespace stepcast::calibration::testing;

TEST_SUITE_BEGIN("unit");

namespace {

struct One {
  Figure<Duration> latency;
  template <class V>
  void visit(V& v) {
    v.key("latency", latency, "A latency.", scenario::required());
  }
};

const ProfileParameter& parameter(const std::vector<ProfileParameter>& all, const std::string& key) {
  for (const ProfileParameter& p : all)
    if (p.key == key) return p;
  FAIL("no parameter " << key);
  return all.front();
}

}  // namespace

TEST_CASE("profile parameters: every shipped profile lists distinct keys whose values are within their bounds") {
  for (const Profile& profile : read_profiles(std::string{STEPCAST_SOURCE_DIR} + "/calibration/profiles")) {
    CAPTURE(profile.name);
    std::set<std::string> keys;
    for (const ProfileParameter& p : parameters_of(profile)) {
      CAPTURE(p.key);
      CHECK(keys.insert(p.key).second);
      CHECK(p.within(p.value) == p.value);
      CHECK(p.plus_minus >= 0);
      CHECK(parameter_value(profile, p.key) == p.value);
    }
    CHECK(keys.contains("gemm.mma_efficiency"));
    CHECK(keys.contains("overhead.host_launch"));
    CHECK(keys.contains("clock.power_per_sm") == profile.clock.power_per_sm.has_value());
    CHECK(keys.contains("collectives.ll_base") == profile.collectives.has_value());
  }
}

// 5 % of 1 us measured; 30 % of 0.8 assumed; what the figure states goes before both.
TEST_CASE("profile parameters: the stated deviation, else one by the kind of evidence") {
  Profile profile = round_profile();
  profile.overhead.kernel_latency.basis = topology::Basis::kMeasured;
  profile.gemm.mma_efficiency.plus_minus = 0.01;
  profile.gemm.mma_efficiency.date = "2026-11-30";
  const std::vector<ProfileParameter> all = parameters_of(profile);
  CHECK(parameter(all, "overhead.kernel_latency").plus_minus == doctest::Approx(0.05e-6));
  CHECK(parameter(all, "overhead.kernel_latency").unit == "s");
  CHECK(parameter(all, "overhead.kernel_latency").text == "1 us");
  CHECK_FALSE(parameter(all, "overhead.kernel_latency").stated);
  CHECK(parameter(all, "memory.streaming_efficiency").plus_minus == doctest::Approx(0.24));
  CHECK(parameter(all, "memory.streaming_efficiency").within(2) == 1);
  const ProfileParameter& stated = parameter(all, "gemm.mma_efficiency");
  CHECK(stated.stated);
  CHECK(stated.plus_minus == doctest::Approx(0.01));
  CHECK(stated.date == "2026-11-30");
  CHECK(stated.low == doctest::Approx(0.05));
  CHECK(stated.high == doctest::Approx(1.1));
}

TEST_CASE("profile parameters: a value is set by its key, in SI units, and nothing else moves") {
  Profile profile = round_profile();
  CHECK(set_parameter(profile, "gemm.tile_overhead", 2.5e-6));
  CHECK(profile.gemm.tile_overhead.value == Duration::nanoseconds(2500));
  CHECK(set_parameter(profile, "attention.query_block", 63.7));
  CHECK(profile.attention.query_block.value == 64);
  CHECK(set_parameter(profile, "overhead.context", 1e9));
  CHECK(profile.overhead.context.value == Bytes{1'000'000'000});
  CHECK_FALSE(set_parameter(profile, "gemm.mma_efficency", 0.5));
  CHECK_FALSE(set_parameter(profile, "collectives.ll_base", 1e-6));  // it carries none
  CHECK(profile.gemm.mma_efficiency.value == 0.5);
  CHECK_FALSE(parameter_value(profile, "gemm").has_value());
}

TEST_CASE("profile parameters: figures of a catalogue entry are found alike") {
  const std::vector<ProfileParameter> all = parameters_of(round_gpu_entry());
  CHECK(parameter(all, "bf16").value == doctest::Approx(100e12));
  CHECK(parameter(all, "bf16").unit == "FLOP/s");
}

TEST_CASE("profile parameters: a replaced figure is written and reads back with its deviation and day") {
  One one;
  REQUIRE(replace_figure(one, "latency", {.value = 3e-6, .basis = topology::Basis::kMeasured, .source = "test", .plus_minus = 2e-8, .date = "2026-02-28"}));
  const std::string text = scenario::print_effective(one);
  CHECK(text.find("plus_minus: 20 ns") != std::string::npos);
  const One back = scenario::read_yaml_text<One>(text, "one.yaml");
  CHECK(back.latency.plus_minus == Duration::nanoseconds(20));
  CHECK(back.latency.date == "2026-02-28");
  CHECK(scenario::print_effective(back) == text);
}

TEST_CASE("profile parameters: a deviation needs its unit and a day has to exist") {
  const auto problem = [](const std::string& keys) -> std::string {
    try {
      scenario::read_yaml_text<One>("latency: {value: 3 us, basis: measured, source: t, " + keys + "}\n", "one.yaml");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(problem("plus_minus: 20 ns, date: 2024-02-29").empty());
  CHECK(problem("plus_minus: 20").find("one.yaml:1:") != std::string::npos);
  CHECK(problem("plus_minus: 20").find("latency.plus_minus") != std::string::npos);
  CHECK(problem("plus_minus: -1 ns").find("latency.plus_minus") != std::string::npos);
  CHECK(problem("date: 2026-02-29").find("not a day") != std::string::npos);
  CHECK(problem("date: 30.11.2026").find("not a day") != std::string::npos);
  CHECK(problem("date: 2026-1-3").find("not a day") != std::string::npos);
}
