// What the importers of machines and fabrics read, from samples written by hand in each form.
#include <doctest/doctest.h>

#include <algorithm>

#include "app/importers/ibnetdiscover.hpp"
#include "app/importers/nccl_topology.hpp"
#include "app/importers/slurm_topology.hpp"
#include "app/importers/smi_topology.hpp"
#include "app/importers/xml.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "tests/support/source_dir.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
namespace {

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
bool says(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return says(text, part); });
}

const topology::Catalogue& catalogue() {
  static const topology::Catalogue loaded = topology::load_catalogue(STEPCAST_SOURCE_DIR "/topologies/data");
  return loaded;
}

// Two CPUs, each with a switch, a GPU and a NIC below it; 18 NVLinks to two NVSwitches a GPU.
const char* const kDump =
    "<?xml version=\"1.0\"?>\n<!-- a dump -->\n<system version=\"1\">\n"
    "  <cpu numaid=\"0\">\n"
    "    <pci busid=\"0:1:0.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0:2:0.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"0\" sm=\"90\"><nvlink target=\"0:7:0.0\" count=\"9\" tclass=\"0x068000\"/><nvlink target=\"0:8:0.0\" count=\"9\" tclass=\"0x068000\"/></gpu>\n"
    "      </pci>\n"
    "      <pci busid=\"0:3:0.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <nic><net name=\"mlx5_0\" speed=\"400000\" port=\"1\"/></nic>\n      </pci>\n    </pci>\n  </cpu>\n"
    "  <cpu numaid=\"1\">\n"
    "    <pci busid=\"0:4:0.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0:5:0.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"1\" sm=\"90\"><nvlink target=\"0:7:0.0\" count=\"18\" tclass=\"0x068000\"/></gpu>\n"
    "      </pci>\n"
    "      <pci busid=\"0:6:0.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <nic><net name=\"mlx5_1\" speed=\"400000\" port=\"1\"/></nic>\n      </pci>\n    </pci>\n  </cpu>\n</system>\n";

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("xml: positions of what is wrong") {
  CHECK(parse_xml("<a x='1&lt;2'><b/></a>", "f").children[0].name == "b");
  CHECK(parse_xml("<a x='1&lt;2'/>", "f").find("x") == "1<2");
  const auto wrong = [](const char* text) { return refusal([&] { parse_xml(text, "f.xml"); }); };
  CHECK(says(wrong("<a>\n <b>\n"), "f.xml:3:1: error: the file ends inside <b> of line 2"));
  CHECK(says(wrong("<a>\n</b>"), "f.xml:2:1: error: </b> closes no open element"));
  CHECK(says(wrong("<a x=1/>"), "f.xml:1:6: error: an attribute without a quoted value"));
  CHECK(says(wrong("<a x='1' x='2'/>"), "a second attribute x"));
  CHECK(says(wrong("<a/>\n<b/>"), "f.xml:2:1: error: something after the end"));
  CHECK(says(wrong("hello"), "text outside of tags"));
  CHECK(says(wrong(""), "no XML element in it"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  CHECK(says(wrong(deep.c_str()), "nested too deeply"));
}

TEST_CASE("nccl topology: counts and the node it describes") {
  const NcclTopology read = read_nccl_topology(kDump, "box.xml");
  CHECK(read.cpus == 2);
  CHECK(read.pcis == 6);
  CHECK(read.gpus == 2);
  CHECK(read.nvlinks == 3);
  CHECK(read.gpu0_nvlinks == 18);
  CHECK(read.net_speeds == std::map<std::string, std::size_t>{{"400000", 2}});
  CHECK(read.facts.gpus[1].switch_links == 18);
  CHECK(read.facts.gpus[1].pcie_switch == 1U);
  const ImportedNode imported = describe_node(read.facts, catalogue(), {}, "box.xml");
  CHECK(imported.node.gpu == "h100-sxm");
  CHECK(imported.node.gpus == 2);
  CHECK(imported.node.interconnect == topology::Interconnect::kNvswitch);
  CHECK(imported.node.sockets == 2);
  CHECK(imported.node.gpus_per_pcie_switch == 1);
  CHECK(imported.node.nics == 2);
  CHECK(imported.node.nic == "ib-ndr-400");
  CHECK(says(imported_node_text(imported, "nccl-topo", "box.xml"), "of the catalogue: check it"));
}

// A file as clouds ship it: PCI devices only. The class tells GPUs and NICs; a device without one is counted.
TEST_CASE("nccl topology: bare PCI devices") {
  const char* const text =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"ffff:ff:01.0\" class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"16\">"
      "<pci busid=\"a\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b0\" link_speed=\"8 GT/s\" link_width=\"16\"/>"
      "<pci busid=\"b\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b0\" link_speed=\"8 GT/s\" link_width=\"16\"/>"
      "<pci busid=\"c\" class=\"0x020000\" link_speed=\"8 GT/s\" link_width=\"16\"/></pci><pci busid=\"d\"/></cpu></system>";
  const NcclTopology read = read_nccl_topology(text, "cloud.xml");
  CHECK(read.gpus == 0);
  CHECK(read.gpu_devices == 2);
  CHECK(read.nic_devices == 1);
  CHECK(read.unknown_devices == 1);
  const ImportedNode imported = describe_node(read.facts, catalogue(), {}, "cloud.xml");
  CHECK(imported.node.gpu == "a100-sxm-40");
  CHECK(imported.node.gpus_per_pcie_switch == 2);
  CHECK(imported.node.pcie_generation == 4);
  CHECK(says(imported.remarks, "PCIe generation 3 in the file, 4 in the GPU's data sheet"));
  CHECK(says(imported.remarks, "NVLinks are not in the file"));
  CHECK(says(imported.remarks, "1 PCI device without a class"));
}

TEST_CASE("nccl topology: what it refuses") {
  const auto wrong = [](const std::string& text) { return refusal([&] { read_nccl_topology(text, "f.xml"); }); };
  CHECK(says(wrong("<graphs version=\"1\"/>"), "f.xml:1:1: error: a file of rings and trees"));
  CHECK(says(wrong("<system version=\"2\"/>"), "another version"));
  CHECK(says(wrong("<system version=\"1\"/>"), "no <cpu>"));
  CHECK(says(wrong("<system version=\"1\">\n<cpu><pci class=\"0x030000\"><gpu><nvlink count=\"x\"/></gpu></pci></cpu></system>"), "f.xml:2:33: error: count of <nvlink> is no number"));
  const NcclTopology none = read_nccl_topology("<system version=\"1\"><cpu><pci busid=\"a\"/></cpu></system>", "f.xml");
  CHECK(says(refusal([&] { describe_node(none.facts, catalogue(), {}, "f.xml"); }), "no GPU in it"));
  const NcclTopology nameless = read_nccl_topology("<system version=\"1\"><cpu><pci class=\"0x030200\"/></cpu></system>", "f.xml");
  CHECK(says(refusal([&] { describe_node(nameless.facts, catalogue(), {}, "f.xml"); }), "--gpu NAME"));
  CHECK(says(refusal([&] { describe_node(nameless.facts, catalogue(), {.gpu = "h100-sxn", .nic = {}, .like = {}}, "f.xml"); }), "did you mean 'h100-sxm'?"));
}

// Four GPUs, NV4 between all pairs: 12 links a GPU, a mesh. NIC 0 on the switch of GPUs 2 and 3.
TEST_CASE("smi topology: a mesh, and NICs in another order") {
  const char* const text =
      "\x1b[4m\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
      "GPU0\t X \tNV4\tNV4\tNV4\tSYS\tPXB\t0-15,32-47\t0\n"
      "GPU1\tNV4\t X \tNV4\tNV4\tSYS\tPXB\t0-15\t0\n"
      "GPU2\tNV4\tNV4\t X \tNV4\tPXB\tSYS\t16-31\t1\n"
      "GPU3\tNV4\tNV4\tNV4\t X \tPXB\tSYS\t16-31\t1\n"
      "mlx5_0\tSYS\tSYS\tPXB\tPXB\t X \tSYS\n";
  const SmiTopology read = read_smi_topology(text, "topo.txt");
  CHECK(read.gpus == 4);
  CHECK(read.nics == 2);
  CHECK(read.rows == 5);
  CHECK(read.gpu_links == "NV4 between all pairs");
  CHECK(read.nearest_nic == std::vector<std::size_t>{1, 1, 0, 0});
  CHECK(read.facts.cpus == 2);
  const ImportedNode imported = describe_node(read.facts, catalogue(), {.gpu = "a100-sxm-40", .nic = {}, .like = {}}, "topo.txt");
  CHECK(imported.node.interconnect == topology::Interconnect::kNvlinkMesh);
  CHECK(imported.node.mesh.size() == 6);
  CHECK(imported.node.mesh[0].links == 4);
  CHECK(imported.node.gpus_per_pcie_switch == 2);
  CHECK(imported.node.nics == 2);
}

// NV18 to each of two others cannot be 18 links of its own to each: there is a switch.
TEST_CASE("smi topology: a switch") {
  const SmiTopology read = read_smi_topology("     GPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV18 NV18 0-3\nGPU1 NV18 X NV18 0-3\n", "f");
  CHECK(read.facts.gpus[2].switch_links == 18);
  CHECK(says(read.facts.remarks, "no row for GPU2"));
  const auto wrong = [](const std::string& text) { return refusal([&] { read_smi_topology(text, "f.txt"); }); };
  CHECK(says(wrong("hello\n"), "f.txt: error: no matrix"));
  CHECK(says(wrong("  GPU0 GPU1 CPU Affinity\nGPU0 X FOO\n"), "f.txt:2:8: error: no such connection"));
  CHECK(says(wrong("  GPU0 GPU1 CPU Affinity\nGPU0 X\n"), "row GPU0 is cut off"));
}

// Two leaves and a spine (two links each), two hosts of two NICs, one adapter without a name, one SHARP node.
const char* const kFabric =
    "vendid=0x2c9\nSwitch\t40 \"S-0000000000000001\"\t\t# \"MF0;leaf-1:MQM8700/U1\" enhanced port 0 lid 1 lmc 0\n"
    "[1]\t\"H-00000000000000a1\"[1](a1) \t\t# \"n1 HCA-1\" lid 11 4xHDR\n"
    "[2]\t\"H-00000000000000b1\"[1](b1) \t\t# \"n2 HCA-1\" lid 12 4xHDR\n"
    "[3]\t\"S-0000000000000003\"[1]\t\t# \"MF0;spine-1:MQM8700/U1\" lid 3 4xHDR s=4 w=2 v=4 e=4\n"
    "[4]\t\"S-0000000000000003\"[2]\t\t# \"MF0;spine-1:MQM8700/U1\" lid 3 4xHDR\n"
    "\nSwitch\t40 \"S-0000000000000002\"\t\t# \"MF0;leaf-2:MQM8700/U1\" enhanced port 0 lid 2 lmc 0\n"
    "[1][ext 1]\t\"H-00000000000000a2\"[1](a2) \t\t# \"n1 HCA-2\" lid 13 4xHDR\n"
    "[2]\t\"H-00000000000000b2\"[1](b2) \t\t# \"n2 HCA-2\" lid 14 4xHDR\n"
    "[3]\t\"S-0000000000000003\"[3]\t\t# \"MF0;spine-1:MQM8700/U1\" lid 3 4xHDR\n"
    "[4]\t\"S-0000000000000003\"[4]\t\t# \"MF0;spine-1:MQM8700/U1\" lid 3 4xHDR\n"
    "[5]\t\"H-00000000000000c1\"[1](c1) \t\t# \"MT4123 ConnectX6   Mellanox Technologies\" lid 15 4xHDR\n"
    "[41]\t\"H-00000000000000d1\"[1](d1) \t\t# \"Mellanox Technologies Aggregation Node\" lid 16 4xHDR\n"
    "\nSwitch\t40 \"S-0000000000000003\"\t\t# \"MF0;spine-1:MQM8700/U1\" enhanced port 0 lid 3 lmc 0\n"
    "[1]\t\"S-0000000000000001\"[3]\t\t# \"MF0;leaf-1:MQM8700/U1\" lid 1 4xHDR\n"
    "[2]\t\"S-0000000000000001\"[4]\t\t# \"MF0;leaf-1:MQM8700/U1\" lid 1 4xHDR\n"
    "[3]\t\"S-0000000000000002\"[3]\t\t# \"MF0;leaf-2:MQM8700/U1\" lid 2 4xHDR\n"
    "[4]\t\"S-0000000000000002\"[4]\t\t# \"MF0;leaf-2:MQM8700/U1\" lid 2 4xHDR\n"
    "\nCa\t1 \"H-00000000000000a1\"\t\t# \"n1 HCA-1\"\n[1](a1) \t\"S-0000000000000001\"[1]\t\t# lid 11 lmc 0 \"MF0;leaf-1:MQM8700/U1\" lid 1 4xHDR\n";

TEST_CASE("ibnetdiscover: counts and the network") {
  const IbFabric read = read_ibnetdiscover(kFabric, "ib.txt");
  CHECK(read.switch_blocks == 3);
  CHECK(read.ca_blocks == 1);
  CHECK(read.port_lines == 15);
  CHECK(read.switch_links() == 10);
  CHECK(read.switch_switch_lines == 8);
  CHECK(read.rates_on_switches == std::map<std::string, std::size_t>{{"4xHDR", 14}});
  const ImportedNetwork network = network_of(read);
  CHECK(network.hosts == std::vector<std::string>{"n1", "n2"});
  CHECK(network.nics_per_node == 2);
  CHECK(network.nic == "ib-hdr-200");
  CHECK(network.switches == std::vector<std::string>{"leaf-1", "leaf-2", "spine-1"});
  const std::string text = imported_network_text(network, "dgx-a100", "ibnetdiscover", "ib.txt");
  CHECK(says(text, "{from: \"n[1-2]/nic1\", to: \"leaf-2\"}"));
  CHECK(says(text, "{from: \"leaf-[1-2]\", to: \"spine-1\", count: 2}"));
  CHECK(says(network.remarks, "1 SHARP aggregation nodes"));
  CHECK(says(network.remarks, "1 adapters do not name their host"));
}

TEST_CASE("ibnetdiscover: what it refuses") {
  const auto wrong = [](const std::string& text) { return refusal([&] { read_ibnetdiscover(text, "f.txt"); }); };
  CHECK(says(wrong("nothing\n"), "f.txt: error: no device of ibnetdiscover"));
  CHECK(says(wrong("CA 1 1 0x1 4x EDR - SW 1 1 0x2 ( 'a' - 'b' )\n"), "without -p"));
  CHECK(says(wrong("Switch 40 \"S-1\"\n[x] \"S-2\"[1]\n"), "f.txt:2:4: error: no port number"));
  CHECK(says(wrong("Switch 40 \"S-1\"\n[1] \"Q-2\"[1]\n"), "f.txt:2:5: error: no device of a fabric"));
  CHECK(says(wrong("[1] \"S-2\"[1]\n"), "a port outside of a device"));
  const IbFabric lonely = read_ibnetdiscover("Ca 1 \"H-1\" # \"n1 HCA-1\"\n", "f.txt");
  CHECK(says(refusal([&] { imported_network_text(network_of(lonely), "dgx-h100", "ibnetdiscover", "f.txt"); }), "no switch in this file"));
}

// Two leaves of 3 and 1 hosts below a root: 24 and 8 links upwards with 8 NICs a host.
TEST_CASE("slurm topology: a tree") {
  const SlurmTopology read = read_slurm_topology("# a tree\nswitchname=s1 nodes=a[1-3] LinkSpeed=5\nSwitchName=s2 Nodes=b7\n\nSwitchName=top Switches=s[1-2]\n", "topology.conf");
  CHECK(read.switches.size() == 3);
  CHECK(read.nodes_on_switches() == 4);
  const ImportedNetwork network = network_of(read, 8);
  CHECK(network.hosts == std::vector<std::string>{"a1", "a2", "a3", "b7"});
  const std::string text = imported_network_text(network, "dgx-h100", "slurm-topology", "topology.conf");
  CHECK(says(text, "{from: \"a[1-3]\", to: \"s1\"}"));
  CHECK(says(text, "{from: \"s1\", to: \"top\", count: 24}"));
  CHECK(says(text, "{from: \"s2\", to: \"top\", count: 8}"));
  CHECK(says(network.remarks, "1:1"));
}

TEST_CASE("slurm topology: blocks, and what nothing joins") {
  const SlurmTopology blocks = read_slurm_topology("BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n", "topology.conf");
  CHECK(blocks.nodes_in_blocks() == 4);
  const ImportedNetwork network = network_of(blocks, 4);
  CHECK(network.switches == std::vector<std::string>{"b1", "b2", "between-blocks"});
  CHECK(network.links.back().count == 8);
  CHECK(says(network.remarks, "does not say what joins the blocks"));
  const SlurmTopology two = read_slurm_topology("SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n[2-3]\n", "topology.conf");
  CHECK(network_of(two, 4).hosts == std::vector<std::string>{"n2", "n3"});
  CHECK(says(network_of(two, 4).remarks, "nothing joins s1 to s2: its 1 nodes left out"));
}

TEST_CASE("slurm topology: the YAML form takes the cluster's default") {
  const SlurmTopology read = read_slurm_topology(
      "- topology: flat\n  flat: true\n- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n      - switch: top\n        children: s[1-2]\n"
      "      - {switch: s1, nodes: n1}\n      - {switch: s2, nodes: 'n[2-3]'}\n",
      "topology.yaml");
  CHECK(read.name == "tree");
  CHECK(read.switches.size() == 3);
  CHECK(read.nodes_on_switches() == 3);
  CHECK(says(read.remarks, "topology flat left out"));
  CHECK(says(refusal([] { read_slurm_topology("- {topology: t, flat: true}\n", "t.yaml"); }), "t.yaml:1:3: error: topology t is neither a tree nor blocks"));
}

TEST_CASE("slurm topology: what it refuses") {
  const auto wrong = [](const std::string& text) { return refusal([&] { network_of(read_slurm_topology(text, "f.conf"), 8); }); };
  CHECK(says(wrong("SwitchName=s1 Nodes=a[1-\n"), "f.conf:1:25: error: a number is expected in brackets"));
  CHECK(says(wrong("\nSwitchNam=s1 Nodes=a\n"), "f.conf:2:1: error: no such record"));
  CHECK(says(wrong("SwitchName=s1 Node=a\n"), "f.conf:1:20: error: no such key"));
  CHECK(says(wrong("SwitchName=s1\n"), "'s1' has nothing below it"));
  CHECK(says(wrong("SwitchName=s1 Switches=s2\n"), "no switch s2"));
  CHECK(says(wrong("SwitchName=s1 Switches=s2\nSwitchName=s2 Switches=s1\n"), "is below itself"));
  CHECK(says(wrong("SwitchName=s1 Nodes=a\nSwitchName=s2 Nodes=a\nSwitchName=s3 Switches=s[1-2]\n"), "node a is on two switches"));
  CHECK(says(wrong("# nothing\n"), "no switch and no block"));
}

TEST_SUITE_END();

}  // namespace stepcast::app
