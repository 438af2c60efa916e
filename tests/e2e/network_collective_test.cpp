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
  refused("--collective all_reduce", "no cluster");
}

TEST_SUITE_END();
