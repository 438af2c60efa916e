// `stepcast network --collective`: nccl-tests' own table, read back by our own reader of its logs.
#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("e2e");

namespace {

struct Cluster {
  TemporaryDirectory place;
  std::string file = (place.path() / "cluster.yaml").string();
  explicit Cluster(const std::string& text = "cluster: {nodes: 2, node: dgx-h100, fabric: {preset: rail-clos, nic: ib-ndr-400}}\n") { std::ofstream(file) << text; }
};

}  // namespace

TEST_CASE("network: a collective's table is one that import reads, ranks and bandwidths agree") {
  const Cluster cluster;
  const std::string log = (cluster.place.path() / "out.log").string();
  const Outcome table = run_stepcast("network --collective all_reduce " + cluster.file + " --sizes 1K..1G --step-factor 1024 --explain");
  REQUIRE(table.status == 0);
  std::ofstream(log) << table.out;
  const auto json = nlohmann::json::parse(run_stepcast("import nccl-tests --json - " + log).out);
  CHECK(json["runs"][0]["ranks"] == 16);
  CHECK(json["runs"][0]["collective"] == "all_reduce");
  CHECK(json["not_understood"].empty());
  REQUIRE(json["rows"].size() == 3);
  const auto& row = json["rows"][2];
  CHECK(row["size"] == 1 << 30);
  CHECK(row["count"] == 1 << 28);
  CHECK(row["redop"] == "sum");
  CHECK(row["out_of_place"] == row["in_place"]);
  const double algbw = std::stod(row["out_of_place"]["algbw"].get<std::string>());
  const double busbw = std::stod(row["out_of_place"]["busbw"].get<std::string>());
  CHECK(busbw == doctest::Approx(algbw * 1.875).epsilon(1e-4));
  CHECK(algbw == doctest::Approx((1 << 30) / (std::stod(row["out_of_place"]["time"].get<std::string>()) * 1e3)).epsilon(1e-3));
  CHECK(table.out.find("# nvls-tree Simple") != std::string::npos);
}

TEST_CASE("network: sizes of split buffers are cut to 16 B a rank, each collective says what it is") {
  const Cluster cluster;
  const auto json = nlohmann::json::parse(run_stepcast("network --collective all_gather --ranks 3 --sizes 100,1M --json - " + cluster.file).out);
  CHECK(json["rows"][0]["size_bytes"] == 96);
  CHECK(json["rows"][0]["count"] == 8);
  for (const char* name : {"reduce_scatter", "broadcast", "alltoall", "sendrecv"}) {
    CAPTURE(name);
    const auto other = nlohmann::json::parse(run_stepcast("network --collective " + std::string{name} + " --sizes 64M --json - " + cluster.file).out);
    CHECK(other["rows"][0]["time_s"].get<double>() > 1e-4);
    CHECK(other["rows"][0]["busbw_bytes_per_s"].get<double>() < 450e9);
  }
}

// 16 NVLink GPUs of one process: 8 times the launch, however small the message.
TEST_CASE("network: the host of one process bounds small messages") {
  const Cluster cluster{"cluster: {nodes: 1, node: dgx-h100}\n"};
  const auto times = [&](const std::string& options) {
    return nlohmann::json::parse(run_stepcast("network --collective all_reduce --sizes 1K --json - " + options + " " + cluster.file).out)["rows"][0];
  };
  CHECK(times("")["host_bound"] == false);
  CHECK(times("--gpus-per-process 8")["host_bound"] == true);
  CHECK(times("--gpus-per-process 8")["time_s"].get<double>() > 2 * times("")["time_s"].get<double>());
}

TEST_CASE("network: the algorithm and protocol that the user names, or the error that names the able ones") {
  const Cluster cluster;
  const auto choice = [&](const std::string& options) {
    return nlohmann::json::parse(run_stepcast("network --collective all_reduce --sizes 1G --json - " + options + " " + cluster.file).out)["rows"][0];
  };
  CHECK(choice("--algorithm ring")["algorithm"] == "ring");
  CHECK(choice("--algorithm collnet")["algorithm"] == "collnet");
  CHECK(choice("--algorithm tree --protocol ll")["protocol"] == "LL");
  const auto refused = [&](const std::string& options, const std::string& text) {
    const Outcome outcome = run_stepcast("network " + options);
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, outcome.err);
  };
  refused("--collective all_gather --algorithm tree " + cluster.file, "expected: one of ring");
  refused("--collective all_gatherr " + cluster.file, "did you mean 'all_gather'?");
  refused("--collective all_reduce --protocol ll182 " + cluster.file, "did you mean 'll128'?");
  refused("--collective all_reduce --sizes 8Q " + cluster.file, "unknown unit");
  refused("--collective all_reduce --sizes 8M..1K " + cluster.file, "ends below its start");
  refused("--collective all_reduce --ranks 17 " + cluster.file, "2 to 16");
  refused("--collective all_reduce --set cluster.nodez=2", "did you mean 'nodes'?");
}

TEST_CASE("network: without a file a collective runs on one usual node, which --set changes") {
  const auto table = [](const std::string& options) { return run_stepcast("network --collective all_reduce --sizes 1M " + options).out; };
  const std::string usual = table("");
  CHECK_MESSAGE(usual.starts_with("# no FILE given, dgx-h100"), usual);
  CHECK(usual.find("Rank  7") != std::string::npos);
  CHECK(usual.find("Rank  8") == std::string::npos);
  CHECK(table("--set cluster.nodes=2 --set cluster.node=dgx-b200").find("Rank 15") != std::string::npos);
}

// Zipf with s = 1 on 16 ranks: the hottest receives 16 / H(16) = 4.73 times the mean, so the call takes about that much longer.
// A matrix in which only rank 0 sends, 64 MiB to rank 1: a copy over NVLink, 0.19 ms at 360 GB/s, and the pipeline's fill.
TEST_CASE("network: all-to-all of unequal parts, by skew and by matrix") {
  const Cluster cluster;
  const auto run = [&](const std::string& options) {
    return nlohmann::json::parse(run_stepcast("network --collective alltoall --json - " + options + " " + cluster.file).out);
  };
  const double even = run("--sizes 1G")["rows"][0]["time_s"];
  const double skewed = run("--sizes 1G --zipf 1")["rows"][0]["time_s"];
  CHECK(skewed / even > 4.0);
  CHECK(skewed / even < 5.0);
  CHECK(run("--sizes 1G --zipf 0")["rows"][0]["time_s"].get<double>() == doctest::Approx(even));
  const std::string matrix = (cluster.place.path() / "bytes.csv").string();
  {
    std::ofstream out{matrix};
    out << "# bytes from the line's rank to the column's\n";
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j) out << (i == 0 && j == 1 ? 67108864 : 0) << (j == 15 ? "\n" : ",");
  }
  const auto json = run("--volumes " + matrix);
  REQUIRE(json["rows"].size() == 1);
  CHECK(json["rows"][0]["size_bytes"] == 67108864 / 16);
  CHECK(json["rows"][0]["time_s"].get<double>() > 67108864 / 450e9);
  CHECK(json["rows"][0]["time_s"].get<double>() < 67108864 / 150e9);
  const Outcome few = run_stepcast("network --collective alltoall --ranks 8 --volumes " + matrix + " " + cluster.file);
  CHECK(few.status == 2);
  CHECK(few.err.find("bytes.csv:2") != std::string::npos);
  CHECK(few.err.find("8 lines of 8") != std::string::npos);
  CHECK(run_stepcast("network --collective all_reduce --zipf 1 " + cluster.file).status == 2);
}

// A log that the simulator itself writes for a cluster of another latency is imported, fitted and forecast with the profile.
TEST_CASE("calibrate: a log in the database becomes a profile that the forecast takes") {
  const Cluster measured{"cluster: {nodes: 2, node: dgx-a100, fabric: {preset: rail-clos, nic: ib-hdr-200}}\n"};
  const std::string log = (measured.place.path() / "hdr.log").string();
  const std::string database = (measured.place.path() / "logs.db").string();
  const std::string profile = (measured.place.path() / "fitted.yaml").string();
  std::ofstream(log) << run_stepcast("network --collective all_reduce --sizes 8..1G " + measured.file).out;
  REQUIRE(run_stepcast("import nccl-tests --quiet --db " + database + " " + log).status == 0);
  const Outcome fit = run_stepcast("calibrate --db " + database + " --cluster " + measured.file + " -o " + profile);
  CHECK_MESSAGE(fit.status == 0, fit.err);
  CHECK(fit.out.find("hdr") != std::string::npos);
  const std::string ask = "network --collective all_reduce --sizes 64M --json - " + measured.file;
  const double truth = nlohmann::json::parse(run_stepcast(ask).out)["rows"][0]["time_s"];
  const Outcome forecast = run_stepcast(ask + " --profile " + profile);
  REQUIRE_MESSAGE(forecast.status == 0, forecast.err);
  CHECK(nlohmann::json::parse(forecast.out)["rows"][0]["time_s"].get<double>() == doctest::Approx(truth).epsilon(0.03));
  // A log of 16 ranks is none of a cluster of one host; a database without logs has nothing to fit.
  const Cluster one{"cluster: {nodes: 1, node: dgx-a100}\n"};
  const Outcome small = run_stepcast("calibrate --db " + database + " --cluster " + one.file);
  CHECK(small.status == 2);
  CHECK(small.err.find("log 'hdr' has 16 ranks") != std::string::npos);
  CHECK(run_stepcast("calibrate").status == 2);
  CHECK(run_stepcast("import slurm-topology --db " + database + " " + log).status == 2);
}

TEST_SUITE_END();
