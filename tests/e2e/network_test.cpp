// `stepcast network`: flows alone; with --replay, the hand-made case in configs/replay, whose recorded times are the plain
// fluid's worked by hand (unit/fluid_transport_test), and the one clear error for each bad file.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;

namespace {

const std::string kCase = "configs/replay/three_flows.csv";
const std::string kTree = "configs/replay/four_hosts.topo";

Outcome replay_row(const std::string& row) {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "flows.csv").string();
  std::ofstream(file) << "flow_id,src,dst,size_bytes,start_us,end_us,fct_us,path\n" << row << '\n';
  return run_stepcast("network --replay " + file + " --topology " + kTree);
}

}  // namespace

TEST_SUITE_BEGIN("e2e");

TEST_CASE("network: the plain fluid gives the times worked by hand") {
  const Outcome outcome = run_stepcast("network --plain --json - --replay " + kCase + " --topology " + kTree);
  REQUIRE(outcome.status == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["flows"] == 3);
  for (const char* key : {"mean_err_pct", "p99_err_pct", "makespan_err_pct", "per_flow_mape_pct"}) {
    CAPTURE(key);
    CHECK(std::abs(json[key].get<double>()) < 1e-4);  // per cent: 1e-6 of the time
  }
}

TEST_CASE("network: prints a table of simulated and recorded times") {
  const Outcome outcome = run_stepcast("network --replay " + kCase + " --topology " + kTree);
  CHECK(outcome.status == 0);
  for (const char* word : {"3 flows, transport plain", "mean", "p99", "makespan", "per flow"}) {
    CHECK_MESSAGE(outcome.out.find(word) != std::string::npos, word);
  }
}

// Worked for RoCE in unit/roce_transport_test; here that every transport runs, says what it did, and always the same.
TEST_CASE("network: every transport replays the case, the same twice") {
  for (const std::string transport : {"eqds", "ndp", "roce_pfc", "uec"}) {
    CAPTURE(transport);
    const std::string line = "network --transport " + transport + " --runs 4 --json - --replay " + kCase + " --topology " + kTree;
    const Outcome outcome = run_stepcast(line);
    REQUIRE(outcome.status == 0);
    CHECK(outcome.out == run_stepcast(line).out);
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(json["transport"] == transport);
    CHECK(json["runs"] == 4);
    // The last to end is alone on the fabric: what the plain fluid says, to a packet time in its 28 us after 100.
    CHECK(std::abs(json["makespan_err_pct"].get<double>()) < 0.1);
  }
}

TEST_CASE("network: a bad recording is refused with its place") {
  const auto refused = [](const std::string& row, const std::string& text) {
    CAPTURE(row);
    const Outcome outcome = replay_row(row);
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, outcome.err);
  };
  refused("1,0,4,1000,0,9,9,", "flows.csv:2:5: error: dst: out of range");
  refused("1,0,0,1000,0,9,9,", "flows.csv:2:5: error: dst: the flow ends where it starts");
  refused("1,0,2,nan,0,9,9,", "flows.csv:2:7: error: size_bytes: not a number");
  refused("1,0,2,1000,0,9,0,", "flows.csv:2:16: error: fct_us: out of range");
  refused("1,0,2,1000,0,9,9,LS0->US9(0)", "flows.csv:2:18: error: path: the fabric has no link 'LS0->US9(0)'");
  refused("1,0,2,1000,0,9,9,LS1->US0(0)|US0->LS_1(0)", "path: hop 1 does not start where the one before it ends");
  refused("1,0,2,1000,0,9,9,LS0->US0(0)", "path: hop 2 does not start");
  // A way down and up again joins up, but could hold itself up under priority flow control.
  refused("1,0,2,1000,0,9,9,LS0->US0(0)|US0->LS_0(0)|LS0->US1(0)|US1->LS_1(0)", "path: not a shortest path");
  refused("1,0,2,1000", "a row of another length than the header");
  refused("", "no flows");
}

// Quanta of more than a queue holds: one at a time passes.
TEST_CASE("network: the coarsest quanta come to an end") {
  for (const std::string transport : {"eqds", "ndp", "roce_pfc", "uec"}) {
    CHECK(run_stepcast("network --quantum 64 --transport " + transport + " --replay " + kCase + " --topology " + kTree).status == 0);
  }
}

// Each flow after the one before it: 28.5621, 48.8746 and 28.5621 us alone, one after the other.
TEST_CASE("network: flows wait for each other as the matrix says") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "chain.cm").string();
  const auto replay_matrix = [&](const std::string& text) {
    std::ofstream(file) << text;
    return run_stepcast("network --json - --replay " + kCase + " --topology " + kTree + " --matrix " + file);
  };
  const std::string good =
      "Nodes 4\nConnections 3\nTriggers 2\n0->2 id 1 start 0 size 1000000 send_done_trigger 1\n"
      "1->3 id 2 trigger 1 size 2000000 send_done_trigger 2\n2->1 id 3 trigger 2 size 1000000\n"
      "trigger id 1 oneshot\ntrigger id 2 oneshot\n";
  const Outcome outcome = replay_matrix(good);
  REQUIRE(outcome.status == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(std::abs(json["simulated_us"]["makespan"].get<double>() - 105.9988) < 1e-3);
  CHECK(std::abs(json["simulated_us"]["mean"].get<double>() - 105.9988 / 3) < 1e-3);

  const auto refused = [&](const std::string& what, const std::string& by, const std::string& text) {
    CAPTURE(by);
    std::string bad = good;
    bad.replace(bad.find(what), what.size(), by);
    const Outcome refusal = replay_matrix(bad);
    CHECK(refusal.status == 2);
    CHECK_MESSAGE(refusal.err.find(text) != std::string::npos, refusal.err);
  };
  refused("id 2 trigger", "id 9 trigger", "chain.cm:5:9: error: the recording has no flow 9");
  refused("1->3", "1->2", "chain.cm:5:1: error: not the recording's flow");
  refused("trigger 1 size", "triger 1 size", "chain.cm:5:11: error: unknown word 'triger'");
  refused("size 2000000", "size two", "chain.cm:5:26: error: 'two' is not a whole number");
  refused("trigger 1 size", "trigger 7 size", "nothing sets off trigger 7");
  refused("send_done_trigger 2", "send_done_trigger 1", "trigger 1 is set off twice");
  refused("start 0", "trigger 2", "waits for itself");
  refused("2->1 id 3", "2->1 id 2", "flow 2 again");
  refused("2->1 id 3 trigger 2 size 1000000\n", "", "flow 3 of the recording is missing");
}

TEST_CASE("network: what is missing or unknown on the command line is named") {
  CHECK(run_stepcast("network").err.find("no flows") != std::string::npos);
  CHECK(run_stepcast("network --replay " + kCase).err.find("--topology is missing") != std::string::npos);
  CHECK(run_stepcast("network --replay " + kCase + " --topology " + kCase).status == 2);
  CHECK(run_stepcast("network --replay none.csv --topology " + kTree).status == 2);
  const Outcome unknown = run_stepcast("network --transport plian --replay " + kCase + " --topology " + kTree);
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean 'plain'?") != std::string::npos);
  const std::string both = "network --plain --transport uec --replay " + kCase + " --topology " + kTree;
  CHECK(run_stepcast(both).err.find("exclude each other") != std::string::npos);
  for (const char* wrong : {"--runs 0", "--runs -1", "--runs 1001", "--quantum 0", "--quantum 65"}) {
    CHECK(run_stepcast("network --replay " + kCase + " --topology " + kTree + " " + wrong).status == 2);
  }
}

namespace {

Outcome run_traffic(const std::string& traffic, const std::string& more = "") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "n.yaml").string();
  std::ofstream(file) << "cluster: {nodes: 4, node: dgx-h100, fabric: {preset: clos, nic: roce-400}}\ntraffic:\n" << traffic;
  return run_stepcast("network " + file + " --json - " + more);
}

}  // namespace

// All GPUs of four nodes send 40 MB each to one: the 24 of other nodes share its NIC. The seven on
// its own node come over NVLink.
TEST_CASE("network: an incast is as long as the receiver's link takes") {
  const Outcome outcome = run_traffic("  patterns: [{kind: incast, size: 40 MB}]\n");
  REQUIRE(outcome.status == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["flows"] == 31);
  bool found = false;
  for (const auto& link : json["busiest"]) {
    if (link["name"] != "leaf0 -> node0/nic0") continue;
    found = true;
    CHECK(link["bytes"].get<double>() == doctest::Approx(24 * 40e6));
    CHECK(link["utilisation"].get<double>() > 0.99);
  }
  CHECK(found);
}

TEST_CASE("network: every shape of traffic, and a row for each flow") {
  const TemporaryDirectory place;
  const std::string list = (place.path() / "list.csv").string();
  std::ofstream(list) << "from,to,size_bytes,start_s\n0,9,1000000,0.001\n";
  const std::string csv = (place.path() / "flows.csv").string();
  const std::string svg = (place.path() / "loads.svg").string();
  const Outcome outcome = run_traffic("  flows: [{from: 0, to: 8, size: 1 MB}]\n  list: " + list +
                                          "\n  patterns:\n"
                                          "    - {kind: permutation, size: 1 MB}\n    - {kind: random, size: 1 MB, flows_per_gpu: 3}\n"
                                          "    - {kind: all-to-all, size: 1 MB, group: 8}\n    - {kind: ring, size: 1 MB, group: 16}\n"
                                          "    - {kind: shift, size: 1 MB, by: 8}\n",
                                      "--csv " + csv + " --svg " + svg);
  REQUIRE(outcome.status == 0);
  CHECK(nlohmann::json::parse(outcome.out)["flows"] == 1 + 32 + 96 + 4 * 56 + 32 + 32 + 1);
  std::ifstream rows(csv);
  std::string line;
  std::size_t count = 0;
  while (std::getline(rows, line)) ++count;
  CHECK(count == 1 + 418);
  std::ifstream picture(svg);
  REQUIRE(std::getline(picture, line));
  CHECK(line.starts_with("<svg"));
}

TEST_CASE("network: one clear error for each mistake in the traffic") {
  const auto refused = [](const std::string& traffic, const char* what) {
    CAPTURE(traffic);
    const Outcome outcome = run_traffic(traffic);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find(what) != std::string::npos);
  };
  refused("  flows: [{from: 0, to: 32, size: 1 MB}]\n", "n.yaml:3:21: error: traffic.flows[0].to: no such GPU");
  refused("  flows: [{from: 3, to: 3, size: 1 MB}]\n", "a flow from a GPU to itself");
  refused("  patterns: [{kind: ring, size: 1 MB, group: 5}]\n", "5 does not divide the cluster");
  refused("  patterns: [{kind: shift, size: 1 MB, by: 64}]\n", "would send to the same GPU");
  refused("  patterns: [{kind: permutation}]\n", "missing key");
  refused("  flows: []\n", "no flows");
  refused("  patterns: [{kind: ring, size: 900 PB}]\n", "may take more than 106 days");
  refused("  list: none.csv\n", "none.csv");
  CHECK(run_stepcast("network").status == 2);
}

TEST_CASE("network: a traffic file runs packet by packet beside the fluid, the same twice") {
  for (const std::string transport : {"roce_pfc", "uec"}) {
    CAPTURE(transport);
    const std::string line = "network configs/network/incast.yaml --json - --transport " + transport;
    const Outcome outcome = run_stepcast(line);
    REQUIRE(outcome.status == 0);
    CHECK(outcome.out == run_stepcast(line).out);
    const auto json = nlohmann::json::parse(outcome.out);
    CHECK(json["packets"]["transport"] == transport);
    // Three more senders than max-min has capacity for at one port: packets end no earlier, and not twice as late.
    const double ratio = json["packets"]["makespan_s"].get<double>() / json["makespan_s"].get<double>();
    CHECK(ratio > 1.0);
    CHECK(ratio < 2.0);
  }
  const Outcome outcome = run_stepcast("network configs/network/incast.yaml --transport roce_pfc");
  CHECK(outcome.out.find("packets (roce_pfc)") != std::string::npos);
}

TEST_CASE("network: a flow alone is as fast by packets as by the fluid, flows inside a host have none") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "one.yaml").string();
  const std::string cluster = "cluster: {nodes: 2, node: dgx-h100, fabric: {preset: clos}}\n";
  std::ofstream(file) << cluster << "traffic: {flows: [{from: 0, to: 8, size: 64 MB}]}\n";
  const auto json = nlohmann::json::parse(run_stepcast("network " + file + " --json - --transport roce_pfc").out);
  CHECK(json["packets"]["makespan_s"].get<double>() / json["makespan_s"].get<double>() == doctest::Approx(1.0).epsilon(0.005));
  std::ofstream(file) << cluster << "traffic: {flows: [{from: 0, to: 1, size: 64 MB}]}\n";
  const Outcome refused = run_stepcast("network " + file + " --transport roce_pfc");
  CHECK(refused.status == 2);
  CHECK(refused.err.find("packets only cross the network") != std::string::npos);
}

TEST_CASE("network: sockets hold flows back, helper threads and jumbo frames help") {
  const auto makespan = [](const std::string& more) {
    const Outcome outcome = run_stepcast("network configs/network/tcp-pairs.yaml --json - " + more);
    REQUIRE(outcome.status == 0);
    return nlohmann::json::parse(outcome.out)["makespan_s"].get<double>();
  };
  const double one_port = makespan("");                       // 8 GB at 0.9 x 12.5 GB/s
  CHECK(one_port == doctest::Approx(8.0 / 11.25).epsilon(0.01));
  CHECK(makespan("--set cluster.fabric.transport.mtu='9000 B'") < one_port);
  const double two_cores = makespan("--set cluster.fabric.transport.socket_cores=2");  // 16 GB through 3.9 GB/s
  CHECK(two_cores == doctest::Approx(16.0 / 3.9).epsilon(0.01));
}

TEST_SUITE_END();
