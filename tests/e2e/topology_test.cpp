// `stepcast topology` of files: a cluster whose network stands in another file, a node's own description.
#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"
#include "tests/support/shared_data.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;

namespace {

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

}  // namespace

TEST_SUITE_BEGIN("e2e");

TEST_CASE("topology: a network in a file of its own, and the same of a whole cluster") {
  const TemporaryDirectory place;
  write(place.path() / "net.yaml",
        "schema: 1\nhosts: [\"tux[0-3]\"]\nswitches: [\"leaf[0-1]\", spine0]\n"
        "links:\n  - {from: \"tux[0-1]\", to: leaf0}\n  - {from: \"tux[2-3]\", to: leaf1}\n  - {from: \"leaf[0-1]\", to: spine0, count: 4}\n");
  write(place.path() / "cluster.yaml", "name: small\ncluster: {nodes: 4, node: dgx-h100, fabric: {file: net.yaml}}\n");
  const Outcome outcome = run_stepcast("topology --json - " + (place.path() / "cluster.yaml").string());
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["devices"]["leaf"] == 2);
  CHECK(json["devices"]["spine"] == 1);
  // 16 NICs of the first half; four links of 400 Gb/s at 96 % between the leaves.
  CHECK(json["bisection_bytes_per_s"].get<double>() == doctest::Approx(4 * 50e9 * 0.96));

  write(place.path() / "bad.yaml", "switches: [leaf0]\nlinks: [{from: \"node[0-1]\", to: laef0}]\n");
  write(place.path() / "cluster2.yaml", "cluster: {nodes: 2, node: dgx-h100, fabric: {file: bad.yaml}}\n");
  const Outcome bad = run_stepcast("topology " + (place.path() / "cluster2.yaml").string());
  CHECK(bad.status == 2);
  CHECK_MESSAGE(bad.err.find("bad.yaml:2:29: error: cluster.fabric.network.links[0].to: no such host or switch") != std::string::npos, bad.err);
  CHECK(bad.err.find("did you mean 'leaf0'?") != std::string::npos);

  write(place.path() / "whole.yaml", "cluster: {nodes: 4, node: dgx-a100, fabric: {file: cluster.yaml}}\n");
  const Outcome nested = run_stepcast("topology " + (place.path() / "whole.yaml").string());
  CHECK(nested.status == 2);
  CHECK_MESSAGE(nested.err.find("no network in this file") != std::string::npos, nested.err);
}

TEST_CASE("topology: racks of trays that share NVLink, and what that is worth") {
  const auto racks = nlohmann::json::parse(run_stepcast("topology configs/nvl72-racks.yaml --json -").out);
  CHECK(racks["gpus"] == 144);
  CHECK(racks["devices"]["nvswitch"] == 2);
  CHECK(racks["devices"]["host-memory"] == 72);
  CHECK(racks["fabric"] == "36 x gb200-nvl72, NVLink domains of 18, rail-clos, ib-ndr-400");
  CHECK(racks["paths"][1]["what"] == "same NVLink domain");
  CHECK(racks["paths"][1]["bundles"].size() == 2);
  const auto compared = nlohmann::json::parse(run_stepcast("compare configs/nvl72-racks.yaml --json -").out);
  REQUIRE(compared["forecasts"].size() == 3);
  // Tensor parallelism over two trays leaves NVLink when that ends at the tray.
  const auto step = [&](std::size_t i) { return compared["forecasts"][i]["step_time_s"].get<double>(); };
  CHECK(step(0) > step(1));
  CHECK(step(1) >= step(2));
}

TEST_CASE("topology: networks side by side, by what they carry and by nodes") {
  const TemporaryDirectory place;
  const std::string picture = (place.path() / "networks.svg").string();
  const Outcome text = run_stepcast("topology configs/infiniband-and-roce.yaml --svg '" + picture + "'");
  CHECK_MESSAGE(text.status == 0, text.err);
  CHECK(text.out.find("bisection of infiniband: ") != std::string::npos);
  CHECK(text.out.find("roce: same leaf: node4/gpu0 to node5/gpu0") != std::string::npos);
  std::ifstream drawn(picture);
  const std::string svg{std::istreambuf_iterator<char>(drawn), {}};
  CHECK(svg.find("Network roce, 4 of 8 nodes") != std::string::npos);
  const auto json = nlohmann::json::parse(run_stepcast("topology configs/infiniband-and-roce.yaml --json -").out);
  CHECK(json["devices"]["nic"] == 8 + 4 * 8 + 4 * 8);
  CHECK(json["networks"][0]["name"] == "infiniband");
  CHECK(json["networks"][1]["nodes"] == 4);

  // Gradients that cross one Ethernet port a node take longer than on the rails, and so do activations between stages.
  const auto compared = nlohmann::json::parse(run_stepcast("compare configs/ethernet-beside-infiniband.yaml --json -").out);
  REQUIRE(compared["forecasts"].size() == 3);
  const auto step = [&](std::size_t i) { return compared["forecasts"][i]["step_time_s"].get<double>(); };
  CHECK(step(0) < step(1));
  CHECK(step(0) < step(2));
}

TEST_CASE("network: flows and collectives on one of several networks") {
  const TemporaryDirectory place;
  const std::string cluster =
      "cluster:\n  nodes: 2\n  node: dgx-h100\n  fabric: {preset: rail-clos, nic: ib-ndr-400}\n"
      "  networks: [{name: eth, carries: [dp], fabric: {file: eth.yaml, nic: eth-100, nics_per_node: 1}}]\n";
  write(place.path() / "eth.yaml", "switches: [leaf]\nlinks: [{from: \"node[0-1]\", to: leaf}]\n");
  const std::string file = (place.path() / "flows.yaml").string();
  write(file, cluster + "traffic: {flows: [{from: 0, to: 8, size: 1 GB}, {from: 1, to: 9, size: 1 GB, axis: dp}]}\n");
  const std::string csv = (place.path() / "flows.csv").string();
  const Outcome flows = run_stepcast("network " + file + " --csv " + csv);
  CHECK_MESSAGE(flows.status == 0, flows.err);
  CHECK(flows.out.find("node0/eth/nic0 -> eth/leaf") != std::string::npos);
  const std::string alone = (place.path() / "cluster.yaml").string();
  write(alone, cluster);
  const auto busbw = [&](const std::string& axis) {
    return nlohmann::json::parse(run_stepcast("network --collective all_reduce --sizes 1G --axis " + axis + " --json - " + alone).out)["rows"][0]["busbw_bytes_per_s"].get<double>();
  };
  CHECK(busbw("dp") < 12.5e9);      // one port of 100 Gb/s a node
  CHECK(busbw("tp") > 100e9);       // eight of 400 Gb/s
  CHECK(run_stepcast("network --collective all_reduce --axis pipeline " + alone).status == 2);

  write(place.path() / "eth.yaml", "switches: [leaf]\nlinks: [{from: \"node[0-2]\", to: leaf}]\n");
  const Outcome bad = run_stepcast("topology " + alone);
  CHECK(bad.status == 2);
  CHECK_MESSAGE(bad.err.find("eth.yaml:2:10: error: cluster.networks[0].fabric.network.links[0].from: no such host or switch") != std::string::npos, bad.err);
}

TEST_CASE("topology: a node's description, as it is and as a scenario's node") {
  const TemporaryDirectory place;
  std::ifstream in(std::string{STEPCAST_SOURCE_DIR} + "/topologies/data/nodes/dgx-h100.yaml");
  write(place.path() / "mine.yaml", std::string{std::istreambuf_iterator<char>(in), {}});
  const Outcome alone = run_stepcast("topology --json - " + (place.path() / "mine.yaml").string());
  CHECK_MESSAGE(alone.status == 0, alone.err);
  CHECK(nlohmann::json::parse(alone.out)["devices"]["nic"] == 8);
  write(place.path() / "cluster.yaml", "cluster: {nodes: 2, node: mine.yaml, fabric: {preset: rail-clos}}\n");
  const Outcome two = run_stepcast("topology --json - " + (place.path() / "cluster.yaml").string());
  CHECK_MESSAGE(two.status == 0, two.err);
  CHECK(nlohmann::json::parse(two.out)["fabric"] == "2 x mine, rail-clos, ib-ndr-400");
}

// Each form to YAML and back: a sample by hand, then every whole sample of the shared data.
TEST_CASE("topology: reads what import writes") {
  const TemporaryDirectory place;
  const auto path = [&](const std::string& name) { return (place.path() / name).string(); };
  write(path("t.conf"), "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=a[3-4]\nSwitchName=top Switches=s[1-2]\n");
  const Outcome import = run_stepcast("import slurm-topology " + path("t.conf") + " -o " + path("t.yaml") + " --json - --node dgx-a100");
  CHECK_MESSAGE(import.status == 0, import.err);
  CHECK(nlohmann::json::parse(import.out)["nodes_on_switches"] == 4);
  const Outcome back = run_stepcast("topology --json - " + path("t.yaml"));
  CHECK_MESSAGE(back.status == 0, back.err);
  CHECK(nlohmann::json::parse(back.out)["bisection_fraction"].get<double>() == doctest::Approx(1.0));
  // The network of that file, in a cluster of other nodes.
  write(path("mine.yaml"), "cluster: {nodes: 4, node: dgx-h100, fabric: {file: t.yaml}}\n");
  CHECK(run_stepcast("topology " + path("mine.yaml")).status == 0);
  const Outcome bad = run_stepcast("import slurm-topology README.md");
  CHECK(bad.status == 2);
  CHECK_MESSAGE(bad.err.starts_with("README.md:"), bad.err);

  const auto shared = stepcast::test::shared_path("formats");
  if (!shared) return;
  std::size_t whole = 0;
  for (const char* folder : {"topo", "fabric"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path{*shared} / folder)) {
      const std::string name = entry.path().filename().string();
      const std::string kind = name.ends_with(".xml")            ? "nccl-topo"
                               : name.starts_with("smi_topo")    ? "nvidia-smi-topo"
                               : name.starts_with("ibnetdiscover") ? "ibnetdiscover"
                               : name.starts_with("slurm")       ? "slurm-topology"
                                                                 : "";
      if (kind.empty()) continue;
      CAPTURE(name);
      const std::string tells = "import " + kind + " " + entry.path().string() + " -o " + path("out.yaml");
      Outcome written = run_stepcast(tells);
      if (written.err.find("--gpu NAME") != std::string::npos) written = run_stepcast(tells + " --gpu a100-sxm-40");
      // A file that is cut, no topology, or tells no GPU or no fabric has one error.
      const bool hopeless = name.starts_with("dump_h200_vm") || name.ends_with("graph.xml") || name.starts_with("aws_g5") || name == "nemo_aws.xml" ||
                            name.find("ports_option") != std::string::npos || name.find("no_links") != std::string::npos;
      CHECK_MESSAGE(written.status == (hopeless ? 2 : 0), written.err);
      if (written.status != 0) continue;
      const Outcome read = run_stepcast("topology " + path("out.yaml"));
      CHECK_MESSAGE(read.status == 0, read.err);
      ++whole;
    }
  }
  CHECK(whole >= 27);
}

TEST_SUITE_END();
