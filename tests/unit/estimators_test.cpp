// Other people's sizing formulas, against the figures that they print themselves.
#include <doctest/doctest.h>

#include "models/parallel/estimators.hpp"

using namespace stepcast::parallel;

TEST_SUITE_BEGIN("unit");

// 7.5 B parameters over 64 GPUs: 120, 31.4, 16.6, 1.9 GB (Rajbhandari et al., figure 1).
TEST_CASE("estimators: ZeRO's table of 7.5 B parameters") {
  const ZeroStates states = zero_states(7.5e9, 64);
  CHECK(states.baseline == doctest::Approx(120e9));
  CHECK(states.optimizer == doctest::Approx(31.40625e9));
  CHECK(states.gradients == doctest::Approx(16.640625e9));
  CHECK(states.parameters == doctest::Approx(1.875e9));
}

// 40, 280, 520, 2,800, 7,000 GB on 1, 4, 7, 35, 88 GPUs of 80 GB.
TEST_CASE("estimators: forty bytes a parameter") {
  const double billions[] = {1, 7, 13, 70, 175};
  const std::int64_t gpus[] = {1, 4, 7, 35, 88};
  for (int i = 0; i < 5; ++i) {
    const RuleOfThumb rule = rule_of_40(billions[i] * 1e9, 80e9);
    CHECK(rule.bytes == doctest::Approx(billions[i] * 40e9));
    CHECK(rule.gpus == gpus[i]);
  }
}

// T5-3B of 2851 M parameters, 32 M in its largest layer, on one node of eight: GPU 0.12, 0.78, 6.09 GiB, host 71.69.
TEST_CASE("estimators: DeepSpeed's rows for T5-3B") {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const auto rows = deepspeed_estimates({.parameters = 2851e6, .largest_layer = 32e6, .gpus_per_node = 8, .nodes = 1});
  REQUIRE(rows.size() == 8);
  CHECK(rows[0].device_bytes / kGib == doctest::Approx(0.119).epsilon(0.01));
  CHECK(rows[0].host_bytes_per_node / kGib == doctest::Approx(71.69).epsilon(1e-4));
  CHECK(rows[2].device_bytes / kGib == doctest::Approx(0.783).epsilon(0.001));
  CHECK(rows[4].device_bytes / kGib == doctest::Approx(6.093).epsilon(0.001));
  CHECK(rows[7].device_bytes / kGib == doctest::Approx(11.28).epsilon(0.001));
}
