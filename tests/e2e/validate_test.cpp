// `stepcast validate S.yaml --db F`: forecast, run for real on CPU workers, compared. Skipped, saying so, where no MPI launcher is installed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/mpi.hpp"
#include "tests/support/program.hpp"

using stepcast::test::has_mpi;
using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;
using stepcast::test::text_of;

TEST_SUITE_BEGIN("e2e");

namespace {

const std::string kScenario = STEPCAST_SOURCE_DIR "/configs/executor/tiny-4-workers.yaml";

void refused(const std::string& arguments, const std::string& text) {
  const Outcome outcome = run_stepcast(arguments);
  CAPTURE(arguments);
  CHECK(outcome.status == 2);
  CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, outcome.err);
}

}  // namespace

TEST_CASE("validate: a run of the plan is compared instruction by instruction") {
  if (!has_mpi()) return;
  const TemporaryDirectory place;
  const std::string db = " --db " + (place.path() / "runs.db").string();
  REQUIRE(run_stepcast("simulate " + kScenario + db).status == 0);
  refused("validate " + kScenario + db, "has no measured run of");
  const Outcome ran = run_stepcast("run " + kScenario + " --steps 3 --warmup 1" + db);
  REQUIRE_MESSAGE(ran.status == 0, ran.err);
  REQUIRE(run_stepcast("run " + kScenario + " --steps 1 --warmup 0 --shrink 2" + db).status == 0);

  // The shrunk run is later, and passed over.
  const std::string trace = (place.path() / "both.json").string();
  const Outcome outcome = run_stepcast("validate " + kScenario + db + " --json - --trace " + trace);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["run"] == 2);
  CHECK(json["alignment"] == "instruction");
  CHECK(json["workers"] == 4);
  CHECK(json["matched"].get<int>() > 1000);
  CHECK(json["matched"] == json["forecast_instructions"]);
  CHECK(json["matched"] == json["measured_instructions"]);
  CHECK(json["worst"].size() == 10);
  double measured = 0.0;
  double forecast = 0.0;
  std::set<std::string> phases;
  for (const auto& row : json["by_phase"]) {
    measured += row["measured_s"].get<double>();
    forecast += row["forecast_s"].get<double>();
    CHECK(row["measured_s"].get<double>() >= 0.0);
    CHECK(row["forecast_s"].get<double>() >= 0.0);
    phases.insert(row["name"].get<std::string>());
  }
  CHECK(measured == doctest::Approx(json["measured_step_s"].get<double>()));
  CHECK(forecast == doctest::Approx(json["forecast_step_s"].get<double>()));
  CHECK(phases == std::set<std::string>{"forward", "recompute", "backward", "optimizer", "communication", "wait"});
  // The forecast is the one that simulate makes.
  const auto simulated = nlohmann::json::parse(run_stepcast("simulate " + kScenario + " --json -").out);
  CHECK(json["forecast_step_s"] == simulated["step_time_s"]);
  std::ifstream in{trace};
  std::set<std::string> origins;
  const auto both = nlohmann::json::parse(in);
  for (const auto& event : both["traceEvents"]) {
    if (event["name"] == "process_name") origins.insert(event["args"]["name"].get<std::string>().substr(0, 8));
  }
  CHECK(origins == std::set<std::string>{"forecast", "measured"});

  // Tolerances on both sides of the error.
  const double error = 100.0 * std::abs(json["step_error"].get<double>());
  CHECK(run_stepcast(fmt::format("validate {}{} --tolerance {:.6f}%", kScenario, db, error + 0.001)).status == 0);
  CHECK(run_stepcast(fmt::format("validate {}{} --tolerance '{:.6f} %'", kScenario, db, std::max(0.0, error - 0.001))).status == 1);
  // Another profile or seed is the same plan.
  CHECK(run_stepcast("validate " + kScenario + db + " --seed 7").status == 0);
  refused("validate " + kScenario + db + " --set batch.micro=1", "has no measured run of");
  refused("validate " + kScenario + db + " --run 1", "run 1 is a forecast");
  refused("validate " + kScenario + db + " --run 3", "shrunk by 2");
  refused("validate " + kScenario + db + " --run 9", "there is no run 9");
  refused("validate " + kScenario + db + " --set batch.micro=1 --run 2", "another plan");
  refused("validate " + kScenario + db + " --tolerance 10", "a number and %");
}

TEST_CASE("validate: a profile is compared by class, and one without steps refused") {
  const TemporaryDirectory place;
  const std::string db = " --db " + (place.path() / "runs.db").string();
  const auto kernel = [](int start, const char* name) {
    return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": 8, "args": {{"device": 0, "stream": 7}}}})", name, start);
  };
  const std::string kernels = kernel(20, "ampere_sgemm_128x64_nn") + "," + kernel(40, "flash_fwd_kernel");
  std::ofstream(place.path() / "plain.json") << "[" + kernels + "]";
  std::ofstream(place.path() / "steps.json") << R"([{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 10, "dur": 90},)" + kernels + "]";
  std::ofstream(place.path() / "smi.csv") << "index, power.draw [W]\n0, 60.00 W\n";
  for (const char* file : {"kineto plain.json", "kineto steps.json", "nvidia-smi smi.csv"}) REQUIRE(run_stepcast(std::string{"import "} + file + db, place.path()).status == 0);
  const Outcome outcome = run_stepcast("validate " + kScenario + db + " --run 2");
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  for (const char* word : {"by class and order", "profile (kineto)", "ProfilerStep#3", "gemm", "attention"}) CHECK_MESSAGE(outcome.out.find(word) != std::string::npos, outcome.out);
  refused("validate " + kScenario + db + " --run 1", "marks no steps");
  refused("validate " + kScenario + db + " --run 3", "run 3 is of nvidia-smi");
  refused("validate " + kScenario + db, "run 2 steps (kineto)");
}

// Eight short runs of one GPU, made up: 0.1 s whatever the model, so that some are far off.
TEST_CASE("validate: the rows of a table that are worse than a share, the worst first") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "runs.csv").string();
  std::ofstream table{file};
  table << "row_id,gpu,n_gpus,gpus_per_node,layers,hidden,heads,seq_len,global_batch,micro_batch,vocab,tp,dp,precision,recompute,step_s\n";
  for (const int hidden : {512, 1024, 2048, 3072}) table << fmt::format("run-{},A100-SXM,2,8,8,{},16,1024,4,2,50304,2,1,bf16,none,0.1\n", hidden, hidden);
  table.close();
  const auto json = nlohmann::json::parse(run_stepcast("validate --table " + file + " --json -").out);
  std::vector<std::pair<double, std::string>> off;
  for (const auto& row : json["rows"]) {
    off.emplace_back(-std::abs(row["error_pct"].get<double>()), row["row_id"].get<std::string>());
    CHECK(row["fitted_profile"].is_null());
  }
  std::sort(off.begin(), off.end());
  const double share = (std::abs(off[1].first) + std::abs(off[2].first)) / 2;  // between the second and the third
  const Outcome shown = run_stepcast(fmt::format("validate --table {} --worse-than {}%", file, share));
  REQUIRE(shown.status == 0);
  CHECK(shown.out.find(off[0].second) < shown.out.find(off[1].second));
  CHECK(shown.out.find(off[2].second) == std::string::npos);
  CHECK(shown.out.find("4 rows, 4 forecast") != std::string::npos);  // the summary is of all
  refused("validate --table " + file + " --worse-than much", "not a share");
  refused("validate " + kScenario + " --db x.db --worse-than 30%", "is for a table of training runs");
  refused("validate --kernels x.csv --fitted", "is for a table of training runs");

  // A file for each GPU, by table and GPU; --family names one.
  const Outcome fitted = run_stepcast("calibrate --table " + file + " --rows 50% --date 2026-11-30 -o " + place.path().string() + "/");
  REQUIRE_MESSAGE(fitted.status == 0, fitted.err);
  const std::string profile = text_of((place.path() / "runs-a100-sxm-80.yaml").string());
  for (const char* word : {"step times of 2 rows of 4 of runs on a100-sxm-80, seed 1", "date: 2026-11-30", "plus_minus:"}) CHECK_MESSAGE(profile.find(word) != std::string::npos, profile);
  refused("calibrate --table " + file + " --date yesterday", "not a day");
  refused("calibrate --table " + file + " --rows much", "not a share of the rows");
}

// Three short runs under the name of a shipped table: its machines' host takes longer, and one of three rows is one that a fit would see.
TEST_CASE("validate: a table with the shipped profile of its machines") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "runs.csv").string();
  std::ofstream table{file};
  table << "row_id,family,gpu,n_gpus,gpus_per_node,layers,hidden,heads,seq_len,global_batch,micro_batch,vocab,tp,dp,precision,recompute,step_s\n";
  for (const int layers : {4, 8, 12}) table << fmt::format("run-{},megatron_core_golden,H100-SXM,2,8,{},512,8,1024,4,2,50304,2,1,bf16,none,0.1\n", layers, layers);
  table.close();
  const auto shipped = nlohmann::json::parse(run_stepcast("validate --table " + file + " --json -").out);
  const auto fitted = nlohmann::json::parse(run_stepcast("validate --table " + file + " --fitted --json -").out);
  int seen = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(fitted["rows"][i]["fitted_profile"] == "megatron_core_golden-h100-sxm");
    CHECK(shipped["rows"][i]["fitted_profile"].is_null());
    CHECK(fitted["rows"][i]["forecast_step_s"].get<double>() > 1.5 * shipped["rows"][i]["forecast_step_s"].get<double>());
    seen += fitted["rows"][i]["seen_by_fit"].get<bool>() ? 1 : 0;
  }
  CHECK(seen == 1);
  const Outcome text = run_stepcast("validate --table " + file + " --fitted");
  CHECK(text.out.find("seen by the profile's fit       1 rows: mean") != std::string::npos);
  CHECK(text.out.find("held out from it                2 rows: mean") != std::string::npos);
}

TEST_CASE("validate: what does not go together is refused") {
  refused("validate", "nothing to validate");
  refused("validate " + kScenario, "--db FILE");
  refused("validate " + kScenario + " --db absent.db", "no such file");
  refused("validate " + kScenario + " --table x.csv", "one scenario or table");
  refused("validate --table x.csv --db runs.db", "--db");
  refused("validate " + kScenario + " --db x --json - --trace -", "two outputs");
}

TEST_SUITE_END();
