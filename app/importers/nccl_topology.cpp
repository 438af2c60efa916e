#include "app/importers/nccl_topology.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "app/importers/xml.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

// PCI device ids of the GPUs in the catalogue (pci.ids, vendor 10de).
constexpr std::array<std::pair<std::string_view, const char*>, 22> kGpuIds{{
    {"0x1db1", "v100-sxm2-16"}, {"0x1db5", "v100-sxm2-32"}, {"0x1db8", "v100-sxm3-32"}, {"0x1eb8", "t4"},
    {"0x20b0", "a100-sxm-40"},  {"0x20b2", "a100-sxm-80"},  {"0x20b5", "a100-pcie-80"}, {"0x20f1", "a100-pcie-40"},
    {"0x20b7", "a30"},          {"0x2235", "a40"},          {"0x2236", "a10"},          {"0x26b9", "l40s"},
    {"0x27b8", "l4"},           {"0x2684", "rtx-4090"},     {"0x2321", "h100-nvl"},     {"0x2330", "h100-sxm"},
    {"0x2331", "h100-pcie"},    {"0x2335", "h200-sxm"},     {"0x2329", "h20"},          {"0x2342", "gh200-96"},
    {"0x2901", "b200-sxm"},     {"0x2b85", "rtx-5090"},
}};

// link_speed to PCIe generation; other text tells nothing.
constexpr std::array<std::pair<std::string_view, std::uint32_t>, 6> kGenerations{{
    {"2.5", 1}, {"5", 2}, {"8", 3}, {"16", 4}, {"32", 5}, {"64", 6}}};

std::optional<std::uint32_t> generation_of(const std::string& speed) {
  for (const auto& [rate, generation] : kGenerations) {
    for (const char* ending : {" GT/s", ".0 GT/s PCIe", " GT/s PCIe"})
      if (speed == std::string{rate} + ending) return generation;
  }
  return std::nullopt;
}

enum class Kind : std::uint8_t { kGpu, kNic, kBridge, kNvswitch, kUnknown };

Kind kind_of(const std::string& pci_class) {
  if (pci_class.starts_with("0x0680")) return Kind::kNvswitch;
  if (pci_class.starts_with("0x0604")) return Kind::kBridge;
  if (pci_class.starts_with("0x03")) return Kind::kGpu;
  if (pci_class.starts_with("0x02")) return Kind::kNic;
  return Kind::kUnknown;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_{file} {}

  NcclTopology run(const XmlElement& root) {
    if (root.name == "graphs") refuse(root, "a file of rings and trees that NCCL searched (NCCL_GRAPH_FILE), not a topology", "<system version=\"1\">, as NCCL_TOPO_DUMP_FILE writes it");
    if (root.name != "system") refuse(root, fmt::format("the root is <{}>", root.name), "<system version=\"1\">");
    if (root.find("version") != "1") refuse(root, "another version of the form", "version=\"1\"", root.find("version").value_or("none"));
    for (const XmlElement& child : root.children) {
      if (child.name != "cpu") {
        unknown(child);
        continue;
      }
      cpu_ = static_cast<std::uint32_t>(out_.cpus++);
      if (child.find("numaid") == "-1") is_vm_ = true;
      children(child, std::nullopt);
    }
    if (out_.cpus == 0) refuse(root, "no <cpu> in it", "<cpu> elements with <pci> devices below");
    links();
    finish();
    return std::move(out_);
  }

 private:
  [[noreturn]] static void refuse(const XmlElement& at, std::string problem, std::string expected, std::string got = {}) {
    throw UserError{Diagnostic{.where = at.at, .path = {}, .problem = std::move(problem), .expected = std::move(expected), .got = std::move(got), .hint = {}}};
  }

  static std::uint64_t whole(const XmlElement& element, const char* attribute) {
    const std::string text = element.find(attribute).value_or("");
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value > 1'000'000'000)
      refuse(element, fmt::format("{} of <{}> is no number", attribute, element.name), "a whole number", text);
    return value;
  }

  void unknown(const XmlElement& element) {
    if (seen_unknown_.insert(element.name).second) out_.facts.remarks.push_back(fmt::format("line {}: <{}> not understood", element.at.line, element.name));
  }

  void children(const XmlElement& parent, std::optional<std::uint32_t> bridge) {
    for (const XmlElement& child : parent.children) {
      if (child.name == "pci") {
        pci(child, bridge);
      } else if (child.name == "nic") {
        nic(child, bridge, std::nullopt);
      } else {
        unknown(child);
      }
    }
  }

  void pci(const XmlElement& element, std::optional<std::uint32_t> bridge) {
    ++out_.pcis;
    const std::optional<std::string> speed = element.find("link_speed");
    ++out_.pci_speeds[speed.value_or("not given")];
    Kind kind = kind_of(element.find("class").value_or(""));
    const auto holds = [&](const char* name) {
      return std::any_of(element.children.begin(), element.children.end(), [&](const XmlElement& c) { return c.name == name; });
    };
    if (holds("gpu")) kind = Kind::kGpu;
    if (holds("nic")) kind = Kind::kNic;
    if (kind == Kind::kUnknown && holds("pci")) kind = Kind::kBridge;
    switch (kind) {
      case Kind::kGpu: return gpu(element, bridge, speed.value_or(""));
      case Kind::kNic: {
        ++out_.nic_devices;
        const auto found = std::find_if(element.children.begin(), element.children.end(), [](const XmlElement& c) { return c.name == "nic"; });
        const bool is_ib = element.find("class").value_or("").starts_with("0x0207");
        if (found != element.children.end()) return nic(*found, bridge, is_ib ? std::optional{topology::Transport::kInfiniBand} : std::nullopt);
        out_.facts.nics.push_back({.name = element.find("busid").value_or("?"), .rate = {},
                                   .transport = is_ib ? std::optional{topology::Transport::kInfiniBand} : std::nullopt, .cpu = cpu_, .pcie_switch = bridge});
        return;
      }
      case Kind::kBridge:
        ++out_.bridges;
        children(element, bridge ? bridge : std::optional{next_bridge_++});
        return;
      case Kind::kNvswitch: return;
      case Kind::kUnknown:
        ++out_.unknown_devices;
        children(element, bridge);
        return;
    }
  }

  void gpu(const XmlElement& element, std::optional<std::uint32_t> bridge, const std::string& speed) {
    ++out_.gpu_devices;
    const std::string busid = element.find("busid").value_or("?");
    GpuFact fact{.name = busid, .model = {}, .cpu = cpu_, .pcie_switch = bridge, .switch_links = 0, .peer_links = {}};
    const std::string device = element.find("device").value_or("");
    for (const auto& [id, name] : kGpuIds)
      if (id == device && element.find("vendor") == "0x10de") fact.model = name;
    if (const auto generation = generation_of(speed); generation && element.find("link_width") == "16") generations_.insert(*generation);
    const std::uint32_t index = static_cast<std::uint32_t>(out_.facts.gpus.size());
    by_busid_.emplace(busid, index);
    for (const XmlElement& child : element.children) {
      if (child.name != "gpu") {
        unknown(child);
        continue;
      }
      ++out_.gpus;
      out_.facts.tells_nvlink = true;
      for (const XmlElement& link : child.children) {
        if (link.name != "nvlink") {
          unknown(link);
          continue;
        }
        ++out_.nvlinks;
        const auto count = static_cast<std::uint32_t>(whole(link, "count"));
        if (out_.gpus == 1) out_.gpu0_nvlinks += count;
        links_.push_back({index, link.find("target").value_or(""), link.find("tclass").value_or(""), count});
      }
    }
    out_.facts.gpus.push_back(std::move(fact));
  }

  void nic(const XmlElement& element, std::optional<std::uint32_t> bridge, std::optional<topology::Transport> transport) {
    ++out_.nics;
    for (const XmlElement& net : element.children) {
      if (net.name != "net") {
        unknown(net);
        continue;
      }
      ++out_.nets;
      const std::string speed = net.find("speed").value_or("not given");
      ++out_.net_speeds[speed];
      NicFact fact{.name = net.find("name").value_or("?"), .rate = {}, .transport = transport, .cpu = cpu_, .pcie_switch = bridge};
      if (speed != "not given") fact.rate = Bandwidth::from_si(static_cast<double>(whole(net, "speed")) * 1e6 / 8);
      out_.facts.nics.push_back(std::move(fact));
    }
  }

  void links() {
    for (const auto& [gpu, target, target_class, count] : links_) {
      const auto peer = by_busid_.find(target);
      if (kind_of(target_class) == Kind::kNvswitch) {
        out_.facts.gpus[gpu].switch_links += count;
      } else if (peer != by_busid_.end() && peer->second != gpu) {
        out_.facts.gpus[gpu].peer_links.emplace_back(peer->second, count);
      } else {
        out_.facts.remarks.push_back(fmt::format("{}: {} NVLink{} to {}: {}, left out", out_.facts.gpus[gpu].name, count, count == 1 ? "" : "s", target,
                                                 peer == by_busid_.end() ? "no device of this file" : "the GPU itself"));
      }
    }
  }

  void finish() {
    out_.facts.cpus = static_cast<std::uint32_t>(out_.cpus);
    if (out_.unknown_devices > 0) {
      out_.facts.remarks.push_back(fmt::format("{} PCI device{} without a class: what {} is not said; NCCL finds out where it runs", out_.unknown_devices,
                                               out_.unknown_devices == 1 ? "" : "s", out_.unknown_devices == 1 ? "it is" : "they are"));
    }
    if (is_vm_) {
      out_.facts.remarks.push_back("a virtual machine (numaid -1): PCIe link speeds are not believed");
    } else if (generations_.size() == 1) {
      out_.facts.pcie_generation = *generations_.begin();
    } else if (!out_.facts.gpus.empty()) {
      out_.facts.remarks.push_back(generations_.empty() ? "no PCIe link of a GPU has a speed that NCCL knows and width 16" : "GPUs on PCIe links of different speed");
    }
  }

  struct NvLink {
    std::uint32_t gpu = 0;
    std::string target;
    std::string target_class;
    std::uint32_t count = 0;
  };

  const std::string& file_;
  NcclTopology out_;
  std::uint32_t cpu_ = 0;
  std::uint32_t next_bridge_ = 0;
  bool is_vm_ = false;
  std::set<std::uint32_t> generations_;
  std::set<std::string> seen_unknown_;
  std::map<std::string, std::uint32_t> by_busid_;
  std::vector<NvLink> links_;
};

}  // namespace

NcclTopology read_nccl_topology(std::string_view text, const std::string& file) {
  const XmlElement root = parse_xml(text, file);
  return Reader{file}.run(root);
}

}  // namespace stepcast::app
