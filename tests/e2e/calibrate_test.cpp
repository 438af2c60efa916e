// `stepcast calibrate`: figures out of tables of single kernels; what it refuses.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/mpi.hpp"
#include "tests/support/program.hpp"
#include "tests/support/shared_data.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;
using stepcast::test::text_of;

TEST_SUITE_BEGIN("e2e");

namespace {

// Products of an A100 at about 230 TFLOP/s and 5 us each, made up; one row takes five times as long.
std::string table() {
  std::string text = "gpu,dtype,m,n,k,latency_us\n";
  for (const int m : {512, 1024, 2048, 4096, 8192})
    for (const int n : {1024, 4096, 8192})
      for (const int k : {1024, 4096}) {
        const double us = 5.0 + 2.0 * m * n * k / 230e12 * 1e6;
        text += "a100_sxm,bf16," + std::to_string(m) + ',' + std::to_string(n) + ',' + std::to_string(k) + ',' + std::to_string(m == 2048 && n == 4096 && k == 4096 ? 5 * us : us) + '\n';
      }
  return text + "h100_sxm,bf16,512,512,512,5.0\n";
}

}  // namespace

TEST_CASE("calibrate: a table of products gives a profile, its deviations and errors on held-out shapes") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "k.csv").string();
  const std::string profile = (place.path() / "p.yaml").string();
  std::ofstream(file) << table();
  const Outcome done = run_stepcast("calibrate --kernels " + file + " --gpu A100-SXM --folds 3 --date 2026-11-30 -o " + profile + " --json -");
  REQUIRE_MESSAGE(done.status == 0, done.err);
  const auto json = nlohmann::json::parse(done.out);
  CHECK(json["points"] == 30);
  CHECK(json["outliers"].get<int>() >= 1);
  CHECK(json["errors"]["folds"]["products"]["n"] == 30);
  CHECK(json["errors"]["fitted"]["products"]["median"].get<double>() < 0.15);
  CHECK(json["errors"]["larger_half"].contains("products"));
  const std::string text = text_of(profile);
  for (const char* word : {"plus_minus:", "date: 2026-11-30", "stepcast calibrate, k.csv"}) CHECK_MESSAGE(text.find(word) != std::string::npos, text);
  CHECK(run_stepcast("profile show " + profile).status == 0);
  // What was fitted forecasts the table better than what was shipped.
  const auto again = run_stepcast("calibrate --kernels " + file + " --gpu a100-sxm --folds 3 --date 2026-11-30 --json -");
  CHECK(again.out == done.out);
}

// The smallest of the shipped fits, of kernels and of collectives: the data give the bytes that are shipped.
TEST_CASE("calibrate: make_profiles.sh makes the shipped A100 again, byte for byte, and its lines of the accuracy tables") {
  if (!stepcast::test::shared_path("kernels") || !stepcast::test::shared_path("nccl_logs")) return;
  const TemporaryDirectory place;
  const std::string shipped = STEPCAST_SOURCE_DIR "/calibration/profiles/a100.yaml";
  const std::string document = STEPCAST_SOURCE_DIR "/docs/accuracy.md";
  const std::string profile = place.path() / "a100.yaml";
  const std::string accuracy = place.path() / "accuracy.md";
  // Figures that a fit is to find again.
  REQUIRE(stepcast::test::run_shell("sed -E 's/^(  (mma_efficiency|tile_overhead|tail_share): \\{value: )[0-9.]+/\\10.7/' " + shipped + " > " + profile).status == 0);
  CHECK(text_of(profile) != text_of(shipped));
  std::ofstream(accuracy) << text_of(document);
  const std::string settings = "STEPCAST=" STEPCAST_PROGRAM " STEPCAST_PROFILES=" + place.path().string() + " STEPCAST_ACCURACY=" + accuracy;
  for (const char* part : {" scripts/make_profiles.sh kernels a100-sxm", " scripts/make_profiles.sh collectives local-a100"}) {
    const Outcome done = stepcast::test::run_shell(settings + part);
    REQUIRE_MESSAGE(done.status == 0, done.err);
  }
  CHECK(text_of(profile) == text_of(shipped));
  CHECK(text_of(accuracy) == text_of(document));
}

TEST_CASE("calibrate: make_profiles.sh without the tables is skipped, with an unknown part refused") {
  const TemporaryDirectory place;
  CHECK(stepcast::test::run_shell("STEPCAST=" STEPCAST_PROGRAM " STEPCAST_SHARED=" + place.path().string() + " scripts/make_profiles.sh").status == 77);
  CHECK(stepcast::test::run_shell("scripts/make_profiles.sh figures").status == 2);
}

TEST_CASE("calibrate: --start and --keep name what there is") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "k.csv").string();
  std::ofstream(file) << table();
  const std::string command = "calibrate --kernels " + file + " --gpu a100-sxm --folds 0 ";
  const Outcome start = run_stepcast(command + "--start nobody");
  CHECK(start.status == 2);
  CHECK(start.err.find("--start") != std::string::npos);
  CHECK(run_stepcast(command + "--keep clock.nothing").status == 2);
  // A kept figure leaves the file's own line; a fitted one replaces it.
  const std::string profile = place.path() / "p.yaml";
  std::ofstream(profile) << text_of(STEPCAST_SOURCE_DIR "/calibration/profiles/a100.yaml");
  REQUIRE(run_stepcast(command + "--start generic --keep clock.sustained_fraction --source test --into " + profile).status == 0);
  const std::string text = text_of(profile);
  CHECK(text.find("stepcast calibrate, test") != std::string::npos);
  const std::string shipped = text_of(STEPCAST_SOURCE_DIR "/calibration/profiles/a100.yaml");
  const std::size_t at = shipped.find("  sustained_fraction: ");
  CHECK(text.find(shipped.substr(at, shipped.find('\n', at) - at)) != std::string::npos);
}

TEST_CASE("calibrate: a database without points, and one that is none, are one error") {
  const TemporaryDirectory place;
  const std::string none = (place.path() / "none.db").string();
  CHECK(run_stepcast("calibrate --db " + none).status == 2);
  std::ofstream(none) << "not a database, but long enough to be looked at as one";
  CHECK(run_stepcast("calibrate --db " + none).status == 2);
  const std::string log = (place.path() / "a.log").string();
  std::ofstream(log) << "# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor)\n        1024           256   float     sum    20.1    0.05    0.05  1e-07    20.0    0.05    0.05  1e-07\n";
  const std::string logs = (place.path() / "logs.db").string();
  CHECK(run_stepcast("import nccl-tests " + log + " --db " + logs).status == 0);
  const Outcome other = run_stepcast("calibrate --db " + logs);
  CHECK(other.status == 2);
  CHECK(other.err.find("no points of stepcast measure") != std::string::npos);
}

TEST_CASE("calibrate: bad input of --kernels is one error") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "k.csv").string();
  std::ofstream(file) << table();
  CHECK(run_stepcast("calibrate --kernels " + file).err.find("--gpu is missing") != std::string::npos);
  const Outcome unknown = run_stepcast("calibrate --kernels " + file + " --gpu h100-sxn");
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean 'h100-sxm'") != std::string::npos);
  CHECK(run_stepcast("calibrate --kernels " + file + " --gpu v100-sxm2-32").status == 2);
  CHECK(run_stepcast("calibrate --kernels " + file + " --gpu a100-sxm --half 2").status == 2);
  CHECK(run_stepcast("calibrate --kernels " + file + " --gpu a100-sxm --folds 1").status == 2);
  CHECK(run_stepcast("calibrate --kernels " + file + " --gpu a100-sxm --date tomorrow").status == 2);
  CHECK(run_stepcast("calibrate --kernels " + file + " --gpu a100-sxm --db x.db").status == 2);
  const std::string none = (place.path() / "none.csv").string();
  std::ofstream(none) << "gpu,dtype,m,n,k,latency_us\n";
  CHECK(run_stepcast("calibrate --kernels " + none + " --gpu a100-sxm").err.find("no row of") != std::string::npos);
  std::ofstream(none) << "gpu,dtype,m,n,k,latency_us\na100_sxm,bf16,512,512,512,0\n";
  const Outcome zero = run_stepcast("calibrate --kernels " + none + " --gpu a100-sxm");
  CHECK(zero.status == 2);
  CHECK(zero.err.find("none.csv:2:") != std::string::npos);
}

// The fit would take minutes: what the table holds has not been read yet.
TEST_CASE("calibrate: a profile that has no place is said before the fit") {
  const TemporaryDirectory place;
  const std::string nowhere = (place.path() / "none" / "p.yaml").string();
  const Outcome refused = run_stepcast("calibrate --table " + (place.path() / "none.csv").string() + " -o " + nowhere);
  CHECK(refused.status == 3);
  CHECK(refused.err.find("none: no such folder") != std::string::npos);
  const Outcome file = run_stepcast("calibrate --table " + (place.path() / "none.csv").string() + " -o /proc/stepcast/");
  CHECK(file.status == 3);
  // A folder that could be made is not made before there is something to put there.
  const Outcome later = run_stepcast("calibrate --table " + (place.path() / "none.csv").string() + " -o " + (place.path() / "a" / "b").string() + "/");
  CHECK(later.status == 2);
  CHECK(later.err.find("none.csv: error: no such file") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(place.path() / "a"));
  const Outcome folder = run_stepcast("calibrate --kernels none.csv --gpu a100-sxm -o " + place.path().string() + "/");
  CHECK(folder.status == 2);
  CHECK(folder.err.find("a folder, where one profile is fitted") != std::string::npos);
}

TEST_CASE("calibrate: collectives that were measured are fitted for the cluster that is named") {
  if (!stepcast::test::has_mpi()) return;
  const TemporaryDirectory place;
  const std::string db = (place.path() / "points.db").string();
  const std::string cluster = (place.path() / "cluster.yaml").string();
  const std::string profile = (place.path() / "p.yaml").string();
  std::ofstream(cluster) << "name: cores\ncluster: {nodes: 1, node: cpu-host, gpus_per_node: 2}\ncommunication: {algorithm: ring, protocol: simple}\n";
  const Outcome measured = run_stepcast("measure --quick --workers 2 --machine here --db " + db);
  REQUIRE_MESSAGE(measured.status == 0, measured.err);
  const Outcome fit = run_stepcast("calibrate --db " + db + " --cluster " + cluster + " --per-size -o " + profile);
  REQUIRE_MESSAGE(fit.status == 0, fit.err);
  CHECK(fit.out.find("here, 2 workers") != std::string::npos);
  CHECK(text_of(profile).find("collectives:") != std::string::npos);
  const Outcome elsewhere = run_stepcast("calibrate --db " + db + " --machine elsewhere --cluster " + cluster);
  CHECK(elsewhere.status == 2);
  CHECK_MESSAGE(elsewhere.err.find("one of here") != std::string::npos, elsewhere.err);
}
