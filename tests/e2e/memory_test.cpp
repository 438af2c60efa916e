// `stepcast memory`: the answer no comes with changes that make it yes; formulas of others beside it.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using nlohmann::json;
using stepcast::test::Outcome;
using stepcast::test::run_stepcast;

TEST_SUITE_BEGIN("e2e");

// Two sequences at a time do not fit eight at a time; every change offered does, at the peak and time it said.
TEST_CASE("memory: what would make it fit does, when it is done") {
  const std::string asked = "memory configs/quickstart.yaml --set batch.micro=8";
  const Outcome refused = run_stepcast(asked + " --json -");
  REQUIRE(refused.status == 1);
  const json changes = json::parse(refused.out).at("would_fit");
  REQUIRE(changes.size() >= 3);
  double last = 0.0;
  for (const json& change : changes) {
    std::string sets;
    for (const json& set : change.at("set")) sets += " --set " + set.get<std::string>();
    CAPTURE(sets);
    const Outcome done = run_stepcast(asked + sets + " --json -");
    CHECK(done.status == 0);
    const json memory = json::parse(done.out);
    CHECK(memory.at("device_memory_peak_bytes") == change.at("device_memory_peak_bytes"));
    CHECK_FALSE(memory.contains("would_fit"));
    const double gpu_time = change.at("step_time_s").get<double>() * change.at("gpus_ratio").get<double>();
    CHECK(gpu_time >= last);
    last = gpu_time;
  }
}

// A checkpoint read onto the device is the model's states a second time, gradients aside.
TEST_CASE("memory: before the first step") {
  const json memory = json::parse(run_stepcast("memory configs/quickstart.yaml --json -").out);
  const json& start = memory.at("start");
  REQUIRE(start.size() == 4);
  CHECK(start.at(0).at("way") == "in place");
  CHECK(start.at(0).at("device_memory_peak_bytes") < memory.at("device_memory_peak_bytes"));
  CHECK(start.at(3).at("way") == "checkpoint on the device");
  CHECK(start.at(3).at("device_memory_peak_bytes") > memory.at("device_memory_peak_bytes"));
  CHECK(start.at(3).at("fits") == true);
}

TEST_CASE("memory: estimators of others, for bare numbers and beside a scenario") {
  const Outcome bare = run_stepcast("memory --estimator deepspeed --params 2.851e9 --largest-layer 32e6");
  CHECK(bare.status == 0);
  CHECK(bare.out.find("71.69       0.12") != std::string::npos);
  const Outcome scenario = run_stepcast("memory configs/quickstart.yaml --estimator rule-of-40");
  CHECK(scenario.status == 0);
  CHECK(scenario.out.find("321 GB in all, 5 GPUs of 80 GB") != std::string::npos);
  CHECK(scenario.out.find("this plan: ") != std::string::npos);
  for (const char* wrong : {"memory", "memory --estimator deepsped --params 1e9", "memory --estimator zero", "memory --estimator zero --params -3",
                            "memory --estimator zero --params 1e9 --nodes 0"}) {
    CAPTURE(wrong);
    CHECK(run_stepcast(wrong).status == 2);
  }
}

TEST_SUITE_END();
