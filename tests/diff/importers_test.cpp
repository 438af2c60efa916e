// Counts that the importers read from other people's files, against counts made independently of them
// (../shared/formats/topo_fabric_expected.csv).
#include <doctest/doctest.h>

#include <cstdio>
#include <map>
#include <optional>

#include "app/importers/ibnetdiscover.hpp"
#include "app/importers/nccl_topology.hpp"
#include "app/importers/slurm_topology.hpp"
#include "app/importers/smi_topology.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/shared_data.hpp"

namespace stepcast::app {
namespace {

using Counts = std::map<std::string, std::size_t>;

// {'16 GT/s': 9, None: 8}, as Python prints it.
Counts parse_counts(const std::string& text) {
  Counts counts;
  for (std::size_t at = 0; (at = text.find(": ", at)) != std::string::npos; at += 2) {
    std::size_t begin = text.find_last_of("{,", at) + 1;
    while (text[begin] == ' ') ++begin;
    std::string key = text.substr(begin, at - begin);
    key = key == "None" ? "not given" : key.substr(1, key.size() - 2);
    counts[key] = std::stoul(text.substr(at + 2));
  }
  return counts;
}

std::optional<std::string> plain_count(const NcclTopology& read, const std::string& what) {
  const std::map<std::string, std::size_t> values{{"cpu", read.cpus}, {"pci", read.pcis}, {"gpu", read.gpus}, {"nvlink", read.nvlinks},
                                                  {"nic", read.nics}, {"net", read.nets}, {"gpu0_nvlink_total", read.gpu0_nvlinks}};
  const auto found = values.find(what);
  return found == values.end() ? std::nullopt : std::optional{std::to_string(found->second)};
}

}  // namespace

TEST_SUITE_BEGIN("diff");

TEST_CASE("importers: counts of every sample are the expected ones") {
  const auto folder = test::shared_path("formats");
  if (!folder) return;
  const std::string file = *folder + "/topo_fabric_expected.csv";
  const CsvTable table = CsvTable::read(file);
  const std::size_t name = table.require_column("file");
  const std::size_t count = table.require_column("count");
  const std::size_t value = table.require_column("value");
  std::size_t checked = 0;
  for (const auto& row : table.rows()) {
    const std::string sample = row.fields[name];
    const std::string path = *folder + "/" + sample;
    const std::string& what = row.fields[count];
    const std::string& want = row.fields[value];
    CAPTURE(sample);
    CAPTURE(what);
    const std::string text = read_file(path);
    ++checked;
    if (sample.starts_with("topo/")) {
      if (what == "xml_parse" || sample == "topo/azure_ncv4_graph.xml") {  // cut off; not a topology
        CHECK_THROWS_AS(read_nccl_topology(text, path), UserError);
        continue;
      }
      const NcclTopology read = read_nccl_topology(text, path);
      if (what == "root") {
        CHECK(want == "system version=1");
      } else if (what == "pci_link_speeds") {
        CHECK(read.pci_speeds == parse_counts(want));
      } else if (what == "net_speeds") {
        CHECK(read.net_speeds == parse_counts(want));
      } else {
        const auto got = plain_count(read, what);
        REQUIRE(got);
        CHECK(*got == want);
      }
    } else if (sample.find("ibnetdiscover") != std::string::npos) {
      if (sample.find("ports_option") != std::string::npos) {  // another report: nothing of it is a device
        CHECK(want == "0");
        CHECK_THROWS_AS(read_ibnetdiscover(text, path), UserError);
        continue;
      }
      const IbFabric read = read_ibnetdiscover(text, path);
      const std::map<std::string, std::size_t> values{{"Switch blocks", read.switch_blocks}, {"Ca blocks", read.ca_blocks}, {"port lines", read.port_lines},
                                                      {"unique links touching a switch", read.switch_links()},
                                                      {"switch-switch port lines (each link twice)", read.switch_switch_lines}};
      if (what.starts_with("rate tags")) {
        CHECK(read.rates_on_switches == parse_counts(want));
      } else {
        REQUIRE(values.contains(what));
        CHECK(std::to_string(values.at(what)) == want);
      }
    } else {
      const SlurmTopology read = read_slurm_topology(text, path);
      const std::map<std::string, std::size_t> values{{"SwitchName records", read.switches.size()}, {"nodes under leaf switches", read.nodes_on_switches()},
                                                      {"BlockName records", read.blocks.size()}, {"nodes in blocks", read.nodes_in_blocks()}};
      REQUIRE(values.contains(what));
      CHECK(std::to_string(values.at(what)) == want);
    }
  }
  CHECK(checked >= 177);
  std::printf("importers: %zu counts checked\n", checked);
}

// Read by eye from the two matrices: GPU i beside NIC 7 - i; seven rows of eight, NICs beside GPUs 0, 2, 4 and 6.
TEST_CASE("importers: two real nvidia-smi matrices") {
  const auto folder = test::shared_path("formats/topo");
  if (!folder) return;
  const auto read = [&](const char* name) { return read_smi_topology(read_file(*folder + name), name); };
  const SmiTopology h20 = read("/smi_topo_h20_8gpu_8nic.txt");
  CHECK(h20.gpus == 8);
  CHECK(h20.nics == 8);
  CHECK(h20.rows == 16);
  CHECK(h20.facts.cpus == 2);
  CHECK(h20.nearest_nic == std::vector<std::size_t>{7, 6, 5, 4, 3, 2, 1, 0});
  CHECK(h20.facts.gpus[0].switch_links == 18);
  const SmiTopology h100 = read("/smi_topo_h100_8gpu_6nic_truncated.txt");
  CHECK(h100.gpus == 8);
  CHECK(h100.nics == 6);
  CHECK(h100.rows == 7);
  CHECK(h100.facts.gpus[4].pcie_switch == h100.facts.nics[2].pcie_switch);
  CHECK_FALSE(h100.facts.gpus[1].pcie_switch.has_value());
}

TEST_SUITE_END();

}  // namespace stepcast::app
