// Forecasts through the command: the contract's JSON, sums, determinism, answers that are "no".
#include <algorithm>
#include <map>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using nlohmann::json;
using stepcast::test::Outcome;
using stepcast::test::run_shell;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;
using stepcast::test::text_of;

namespace {

const std::string kQuick = "configs/quickstart.yaml";

json forecast_of(const std::string& arguments) {
  const Outcome outcome = run_stepcast(arguments + " --json -");
  REQUIRE_MESSAGE((outcome.status == 0 || outcome.status == 1), outcome.err);
  return json::parse(outcome.out);
}

// What measures the simulator itself may differ between two runs; nothing else may.
std::string without_wall_time(const std::string& text) {
  json value = json::parse(text);
  value["simulator"].erase("wall_s");
  value["simulator"].erase("peak_rss_bytes");
  return value.dump();
}

// A difference is not worth printing megabytes.
bool same_content(const std::filesystem::path& a, const std::filesystem::path& b) { return text_of(a) == text_of(b); }

}  // namespace

TEST_SUITE_BEGIN("e2e");

TEST_CASE("simulate: the JSON has the contract's keys with their types") {
  const json forecast = forecast_of("simulate " + kQuick);
  for (const char* key : {"step_time_s", "samples_per_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu",
                          "device_memory_peak_bytes"}) {
    CAPTURE(key);
    REQUIRE(forecast.contains(key));
    CHECK(forecast[key].is_number());
    CHECK(forecast[key].get<double>() > 0.0);
  }
  CHECK(forecast["name"].is_string());
  CHECK(forecast["bottleneck"].is_string());
  CHECK(forecast["fits"] == true);
  for (const char* key : {"host_memory_peak_bytes", "energy_per_step_j", "average_clock_hz"}) {
    CAPTURE(key);
    REQUIRE(forecast.contains(key));
    CHECK((forecast[key].is_null() || forecast[key].is_number()));
  }
  CHECK(forecast["cost"].contains("per_step"));
  CHECK(forecast["cost"].contains("per_billion_tokens"));
  for (const char* key : {"wall_s", "events", "workers", "peak_rss_bytes", "version", "seed"}) {
    CAPTURE(key);
    CHECK(forecast["simulator"].contains(key));
  }
  // 64 sequences of 8192 tokens on 8 GPUs.
  const double step = forecast["step_time_s"];
  CHECK(forecast["samples_per_s"].get<double>() == doctest::Approx(64 / step));
  CHECK(forecast["tokens_per_s_per_gpu"].get<double>() == doctest::Approx(64 * 8192 / step / 8));
}

TEST_CASE("simulate: the breakdown adds up to the step") {
  for (const std::string& scenario : {kQuick, std::string{"configs/llama3-70b-64xh100.yaml"}}) {
    CAPTURE(scenario);
    const json forecast = forecast_of("simulate " + scenario);
    double sum = 0.0;
    for (const char* key : {"compute", "exposed_tp", "exposed_pp", "exposed_dp", "exposed_ep", "exposed_cp",
                            "exposed_offload", "input_wait", "optimizer", "bubble"}) {
      CAPTURE(key);
      REQUIRE(forecast["breakdown_s"].contains(key));
      const json& part = forecast["breakdown_s"][key];
      if (!part.is_null()) sum += part.get<double>();
    }
    CHECK(sum == doctest::Approx(forecast["step_time_s"].get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("simulate: two runs give the same JSON and the same trace, also at other addresses") {
  const TemporaryDirectory place;
  const std::string folder = "'" + place.path().string() + "'/";
  const auto arguments = [&](const char* run) {
    return "simulate configs/llama3-70b-64xh100.yaml --quiet --json " + folder + run + ".json --trace " + folder + run + ".trace";
  };
  REQUIRE(run_stepcast(arguments("a")).status == 0);
  REQUIRE(run_stepcast(arguments("b")).status == 0);
  CHECK(without_wall_time(text_of(place.path() / "a.json")) == without_wall_time(text_of(place.path() / "b.json")));
  CHECK(same_content(place.path() / "a.trace", place.path() / "b.trace"));
  // Fixed addresses against random ones; a container may forbid the personality change.
  if (run_shell("setarch -R true").status != 0) {
    MESSAGE("setarch -R is not allowed here: that half is skipped");
    return;
  }
  REQUIRE(run_shell("setarch -R " + std::string{STEPCAST_PROGRAM} + ' ' + arguments("c")).status == 0);
  CHECK(without_wall_time(text_of(place.path() / "a.json")) == without_wall_time(text_of(place.path() / "c.json")));
  CHECK(same_content(place.path() / "a.trace", place.path() / "c.trace"));
}

TEST_CASE("simulate: every worker simulated gives the folded step time") {
  const json folded = forecast_of("simulate " + kQuick);
  const json whole = forecast_of("simulate " + kQuick + " --no-fold");
  CHECK(whole["simulator"]["workers"] == 8);
  CHECK(whole["step_time_s"].get<double>() == doctest::Approx(folded["step_time_s"].get<double>()).epsilon(1e-6));
}

TEST_CASE("simulate: what does not fit exits 1 and names worker, instruction and categories") {
  const Outcome outcome = run_stepcast("simulate " + kQuick + " --set memory.recompute=none --set batch.micro=8");
  CHECK(outcome.status == 1);
  CHECK(outcome.out.find("step time") != std::string::npos);  // the forecast is printed all the same
  CHECK(outcome.out.find("does not fit: worker ") != std::string::npos);
  CHECK(outcome.out.find("at instruction ") != std::string::npos);
  CHECK(outcome.out.find("largest:  activations ") != std::string::npos);
  CHECK(run_stepcast("memory " + kQuick + " --set memory.recompute=none --set batch.micro=8").status == 1);
  CHECK(run_stepcast("memory " + kQuick).status == 0);
}

TEST_CASE("simulate: the trace is JSON whose slices on one track never overlap") {
  const TemporaryDirectory place;
  const std::string file = place.path() / "trace.json";
  REQUIRE(run_stepcast("simulate " + kQuick + " --quiet --trace '" + file + "'").status == 0);
  const json trace = json::parse(text_of(file));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start = event["ts"];
    tracks[{event["pid"], event["tid"]}].emplace_back(start, start + event["dur"].get<double>());
  }
  CHECK_FALSE(tracks.empty());
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i) {
      // Times are decimal microseconds to the picosecond, read back as doubles.
      REQUIRE(slices[i].first >= slices[i - 1].second - 1e-6);
    }
  }
}

TEST_CASE("simulate: --print-scenario prints a file that gives the same forecast") {
  const TemporaryDirectory place;
  const Outcome printed = run_stepcast("simulate " + kQuick + " --set batch.global=32 --print-scenario");
  REQUIRE(printed.status == 0);
  const std::string file = place.path() / "effective.yaml";
  std::ofstream(file) << printed.out;
  CHECK(forecast_of("simulate '" + file + "'")["step_time_s"] ==
        forecast_of("simulate " + kQuick + " --set batch.global=32")["step_time_s"]);
}

TEST_CASE("simulate: --db appends runs") {
  const TemporaryDirectory place;
  const std::string db = "'" + (place.path() / "runs.db").string() + "'";
  REQUIRE(run_stepcast("simulate " + kQuick + " --quiet --db " + db).status == 0);
  const auto once = std::filesystem::file_size(place.path() / "runs.db");
  REQUIRE(run_stepcast("simulate " + kQuick + " --quiet --db " + db).status == 0);
  CHECK(std::filesystem::file_size(place.path() / "runs.db") > once);
}

TEST_CASE("simulate: a missing file, a directory and a scenario that is none are bad input") {
  for (const char* file : {"no-such.yaml", "configs", "configs/hf/llama3-8b.json"}) {
    CAPTURE(file);
    const Outcome outcome = run_stepcast(std::string{"simulate "} + file);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find("error: ") != std::string::npos);
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("compare: variants side by side with the input that differs and the reason") {
  const Outcome outcome = run_stepcast("compare configs/interconnect-70b.yaml");
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("cluster.fabric.nic            eth-10") != std::string::npos);
  CHECK(outcome.out.find("Why they differ") != std::string::npos);
  CHECK(outcome.out.find("eth-10 takes ") != std::string::npos);
  const json result = json::parse(run_stepcast("compare configs/interconnect-70b.yaml --json -").out);
  CHECK(result["forecasts"].size() == 3);
  CHECK(result["inputs_that_differ"].size() == 2);  // the card, and one port a host with 10 GbE
  CHECK(run_stepcast("compare " + kQuick).status == 2);  // one scenario without variants
}

TEST_CASE("topology, plan, list, schema and init print what they promise") {
  const TemporaryDirectory place;
  const json topology = json::parse(run_stepcast("topology configs/llama3-70b-64xh100.yaml --json -").out);
  CHECK(topology["devices"]["gpu"] == 64);
  const Outcome svg = run_stepcast("topology configs/llama3-70b-64xh100.yaml --svg -");
  CHECK(svg.out.find("<svg") != std::string::npos);
  CHECK(run_stepcast("plan " + kQuick + " --summary").out.find("compute gemm") != std::string::npos);
  CHECK(run_stepcast("plan " + kQuick + " --stage 7").status == 2);
  CHECK(run_stepcast("list gpus").out.find("h100-sxm") != std::string::npos);
  CHECK(run_stepcast("list gpu").status == 2);
  CHECK(json::parse(run_stepcast("schema").out).contains("$schema"));
  const std::string starter = "'" + (place.path() / "s.yaml").string() + "'";
  CHECK(run_stepcast("init " + starter).status == 0);
  CHECK(run_stepcast("init " + starter).status == 2);  // never overwrites
  CHECK(run_stepcast("simulate " + starter).status == 0);
}

TEST_SUITE_END();
