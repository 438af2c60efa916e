#include "topologies/picture.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "topologies/inventory.hpp"
#include "topologies/svg.hpp"

namespace stepcast::topology {

namespace {

constexpr double kLeft = 20.0;
constexpr double kWidth = 880.0;    // of the drawing
constexpr double kColumn = 930.0;   // of the rates beside it
constexpr double kTotal = 1260.0;
constexpr double kBoxHeight = 28.0;
constexpr double kRow = 84.0;       // from one row's top to the next
constexpr std::uint32_t kMostInRow = 12;

// The items of a row that are drawn: all, or the first ones and a box that counts the rest.
struct Shown {
  std::uint32_t items = 0;
  std::uint32_t more = 0;
  [[nodiscard]] std::uint32_t slots() const { return items + (more > 0 ? 1 : 0); }
};

Shown shown(std::uint32_t count, std::uint32_t most) {
  if (count <= most) return {count, 0};
  return {most - 1, count - (most - 1)};
}

// Equal slots across the drawing.
struct Slots {
  std::uint32_t count = 1;
  [[nodiscard]] double width() const { return kWidth / count; }
  [[nodiscard]] double centre(std::uint32_t slot) const { return kLeft + width() * (slot + 0.5); }
  [[nodiscard]] Box box(std::uint32_t slot, double y) const { return {centre(slot), y, std::min(width() - 8, 110.0), kBoxHeight}; }
};

std::string count_text(std::size_t count, std::string_view what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

std::string link_text(const LinkCount& row) {
  const std::string usable = row.efficiency < 1.0 ? fmt::format(", {:.0f} % usable", 100.0 * row.efficiency) : "";
  return fmt::format("{} - {}: {}{}", device_kind_name(row.from), device_kind_name(row.to), rate_text(row.kind, row.rate), usable);
}

class Picture {
 public:
  explicit Picture(const Fabric& fabric) : fabric_{fabric}, inventory_{take_inventory(fabric)} {}

  std::string draw() {
    svg_.text(kLeft, 26, fabric_.name, "title");
    svg_.text(kLeft, 46, fmt::format("{}, {} of {}", count_text(fabric_.gpus.size(), "GPU"), count_text(fabric_.nodes, "node"),
                                     count_text(fabric_.gpus_per_node, "GPU")), "note");
    y_ = 66;
    if (!fabric_.ports.empty())
      for (const NetworkPart& part : fabric_.networks) network(part);
    host();
    for (const std::string& note : fabric_.notes) {
      y_ += 18;
      svg_.text(kLeft, y_, "Note: " + note, "note");
    }
    return svg_.finish(kTotal, y_ + 24);
  }

 private:
  [[nodiscard]] std::int64_t switches(const NetworkPart& part, DeviceKind kind) const {
    std::int64_t count = 0;
    for (std::uint32_t d = part.first_switch; d < part.first_switch + part.switches; ++d) count += fabric_.devices[d].kind == kind ? 1 : 0;
    return count;
  }

  // The links between two tiers, beside the gap between their rows.
  void rates(const std::vector<LinkCount>& links, double y, DeviceKind from, DeviceKind to) {
    for (const LinkCount& row : links) {
      if (row.from != from || row.to != to) continue;
      svg_.text(kColumn, y, fmt::format("{} x {}", row.count, link_text(row)), "note");
      y += 15;
    }
  }

  // Several networks stand one below the other, each with the nodes that it joins.
  void heading(const NetworkPart& part) {
    if (fabric_.networks.size() == 1) return;
    std::string text = part.name.empty() ? "The cluster's network" : "Network " + part.name;
    if (part.nodes.size() < fabric_.nodes) text += fmt::format(", {} of {} nodes", part.nodes.size(), fabric_.nodes);
    std::vector<std::string> axes;
    for (const auto& [word, axis] : enum_words(scenario::TrafficAxis{}))
      if (std::find(part.carries.begin(), part.carries.end(), axis) != part.carries.end()) axes.emplace_back(word);
    if (!axes.empty()) text += ", for " + join(axes, ", ");
    svg_.text(kLeft, y_ + 12, text, "head");
    y_ += 26;
  }

  void network(const NetworkPart& part) {
    heading(part);
    const std::vector<LinkCount> links = links_of(fabric_, part);
    const std::int64_t core_count = switches(part, DeviceKind::kCore);
    const bool has_cores = core_count > 0;
    const bool has_spines = switches(part, DeviceKind::kSpine) > 0;
    const double core_y = y_;
    const double spine_y = core_y + (has_cores ? kRow : 0.0);
    const double leaf_y = spine_y + (has_spines ? kRow : 0.0);
    const double node_y = leaf_y + kRow + 16;
    if (has_cores) {
      svg_.box({kLeft + kWidth / 2, core_y, kWidth - 8, kBoxHeight}, fmt::format("{} core switch{}", core_count, core_count == 1 ? "" : "es"), "core");
      rates(links, core_y + kBoxHeight + 26, DeviceKind::kSpine, DeviceKind::kCore);
    }
    if (has_spines) rates(links, spine_y + kBoxHeight + 26, DeviceKind::kLeaf, DeviceKind::kSpine);
    rates(links, leaf_y + kBoxHeight + 36, DeviceKind::kNic, DeviceKind::kLeaf);
    if (part.by_search) {  // any shape: tiers as a whole, and the links inside a tier as text
      rates(links, leaf_y - 8, DeviceKind::kLeaf, DeviceKind::kLeaf);
      if (has_cores) svg_.line(kLeft + kWidth / 2, core_y + kBoxHeight, kLeft + kWidth / 2, spine_y, "strong");
      const std::string spines = count_text(static_cast<std::size_t>(switches(part, DeviceKind::kSpine)), "spine");
      if (has_spines) svg_.box({kLeft + kWidth / 2, spine_y, kWidth - 8, kBoxHeight}, spines, "spine");
    }

    std::vector<std::vector<std::uint32_t>> members(part.groups);
    for (std::uint32_t l = part.first_leaf; l < part.first_leaf + part.leaves; ++l) members[fabric_.leaves[l].group - part.first_group].push_back(l);
    const Shown groups = shown(static_cast<std::uint32_t>(members.size()), 6);
    const std::uint32_t per_group = std::max(2U, kMostInRow / std::max(1U, groups.items));
    Slots slots{.count = groups.more > 0 ? 1U : 0U};
    for (std::uint32_t g = 0; g < groups.items; ++g) slots.count += shown(static_cast<std::uint32_t>(members[g].size()), per_group).slots();

    std::map<std::uint32_t, double> leaf_x;
    std::uint32_t slot = 0;
    for (std::uint32_t g = 0; g < groups.items; ++g) {
      const Shown leaves = shown(static_cast<std::uint32_t>(members[g].size()), per_group);
      const double from = slots.centre(slot) - slots.width() / 2;
      const double to = from + slots.width() * leaves.slots();
      const Box spines{(from + to) / 2, spine_y, to - from - 8, kBoxHeight};
      const bool joined = fabric_.leaves[members[g].front()].up.has_value();
      if (joined) {
        const std::size_t count = fabric_.bundles[*fabric_.leaves[members[g].front()].up].links.size();
        const std::string name = part.groups > 1 ? fmt::format("group {}: {}", g, count_text(count, "spine")) : count_text(count, "spine");
        svg_.box(spines, name, "spine");
        if (has_cores) svg_.line(spines.x, core_y + kBoxHeight, spines.x, spine_y, "strong");
      }
      for (std::uint32_t i = 0; i < leaves.slots(); ++i, ++slot) {
        const Box box = slots.box(slot, leaf_y);
        if (joined || (part.by_search && has_spines)) svg_.line(box.x, spine_y + kBoxHeight, box.x, leaf_y, "strong");
        if (i < leaves.items) {
          leaf_x[members[g][i]] = box.x;
          svg_.box(box, fabric_.devices[fabric_.leaves[members[g][i]].device.index()].name.substr(part.prefix().size()), "leaf");
        } else {
          svg_.box(box, fmt::format("+{}\nleaves", leaves.more), "more");
          for (std::size_t hidden = leaves.items; hidden < members[g].size(); ++hidden) leaf_x[members[g][hidden]] = box.x;
        }
      }
    }
    if (groups.more > 0) svg_.box(slots.box(slot, has_spines ? spine_y : leaf_y), fmt::format("+{}\ngroups", groups.more), "more");
    nodes(part, node_y, leaf_y, leaf_x);
    const bool shows_domains = has_domains() && part.name.empty();
    if (shows_domains) domains(node_y);
    y_ = node_y + kBoxHeight + (shows_domains ? 40 + kBoxHeight : 0) + 44;
  }

  [[nodiscard]] bool has_domains() const { return fabric_.nodes_per_domain > 1; }

  // NVLink that joins nodes: a bar below the nodes of a domain.
  void domains(double node_y) {
    const Shown row = shown(fabric_.nodes, kMostInRow);
    const Slots slots{row.slots()};
    const double y = node_y + kBoxHeight + 40;
    const std::uint32_t size = fabric_.nodes_per_domain;
    for (std::uint32_t first = 0; first < row.items; first += size) {
      const std::uint32_t last = std::min(first + size, row.items) - 1;
      for (std::uint32_t n = first; n <= last; ++n) svg_.line(slots.centre(n), node_y + kBoxHeight, slots.centre(n), y, "nvlink");
      const Box bar{(slots.centre(first) + slots.centre(last)) / 2, y, slots.centre(last) - slots.centre(first) + slots.width() - 8, kBoxHeight};
      svg_.box(bar, slots.width() * (last - first + 1) > 200 ? fmt::format("NVLink domain {}: {} nodes", first / size, std::min(size, fabric_.nodes - first))
                                                               : fmt::format("domain {}", first / size), "nvswitch");
    }
    const std::uint32_t drawn = (row.items + size - 1) / size;
    const std::uint32_t all = (fabric_.nodes + size - 1) / size;
    if (row.more == 0) return;
    svg_.line(slots.centre(row.items), node_y + kBoxHeight, slots.centre(row.items), y, "nvlink");
    svg_.box(slots.box(row.items, y), all > drawn ? fmt::format("+{}\ndomain{}", all - drawn, all - drawn == 1 ? "" : "s") : "...", "more");
  }

  void nodes(const NetworkPart& part, double node_y, double leaf_y, const std::map<std::uint32_t, double>& leaf_x) {
    const Shown row = shown(static_cast<std::uint32_t>(part.nodes.size()), kMostInRow);
    const Slots slots{row.slots()};
    for (std::uint32_t n = 0; n < row.items; ++n) {
      const Box box = slots.box(n, node_y);
      std::set<double> drawn;  // a line for each box above, however many NICs go there
      for (std::uint32_t j = part.first_nic; j < part.first_nic + part.nics; ++j) {
        const std::uint32_t leaf = fabric_.ports[std::size_t{part.nodes[n]} * fabric_.nics_per_node() + j].leaf;
        const auto x = leaf_x.find(leaf);
        if (x != leaf_x.end() && drawn.insert(x->second).second) svg_.line(x->second, leaf_y + kBoxHeight, box.x, node_y, "rail");
      }
      svg_.box(box, fmt::format("node{}", part.nodes[n]), "node");
    }
    if (row.more > 0) svg_.box(slots.box(row.items, node_y), fmt::format("+{}\nnodes", row.more), "more");
  }

  // Inside a node: memory and roots on top, PCIe switches, GPUs with their NICs, NVSwitch below.
  void host() {
    const HostShape& host = fabric_.host;
    const bool alike = std::all_of(fabric_.ports.begin(), fabric_.ports.end(), [](const Port& port) { return port.attached; });
    svg_.text(kLeft, y_ + 4, alike ? "Inside a node" : "Inside the first node", "head");
    const double memory_y = y_ + 18;
    const double root_y = memory_y + 52;
    const double pcie_y = root_y + 58;
    const double gpu_y = pcie_y + 62;
    const double hub_y = gpu_y + 76;

    const Shown gpus = shown(fabric_.gpus_per_node, 8);
    struct Item {
      std::uint32_t device = 0;
      std::string label;
      std::string_view style;
    };
    std::vector<Item> items;
    for (std::uint32_t g = 0; g < gpus.items; ++g) {
      items.push_back({host.gpus[g], fmt::format("gpu{}", g), "gpu"});
      std::vector<std::uint32_t> beside;
      for (std::uint32_t j = 0; j < host.nics.size(); ++j)
        if (host.gpu_of_nic[j] == g && (fabric_.ports.empty() || fabric_.ports[j].attached)) beside.push_back(j);  // node 0's
      if (beside.size() == 1) {
        const std::string& name = fabric_.devices[host.nics[beside[0]]].name;
        items.push_back({host.nics[beside[0]], name.substr(name.rfind('/') + 1), "nic"});
      }
      if (beside.size() > 1) items.push_back({host.nics[beside[0]], fmt::format("{} nics", beside.size()), "nic"});
    }
    const Slots slots{static_cast<std::uint32_t>(items.size()) + (gpus.more > 0 ? 1U : 0U)};
    std::map<std::uint32_t, double> at;  // device -> x
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      const Box box = slots.box(i, gpu_y);
      at[items[i].device] = box.x;
      svg_.box(box, items[i].label, items[i].style);
    }
    if (gpus.more > 0) svg_.box(slots.box(static_cast<std::uint32_t>(items.size()), gpu_y), fmt::format("+{}\nGPUs", gpus.more), "more");

    above(at, DeviceKind::kPcieSwitch, pcie_y, gpu_y, slots.width(), "pcie");
    above(at, DeviceKind::kRootComplex, root_y, at_y(at, pcie_y, gpu_y), slots.width(), "root");
    above(at, DeviceKind::kHostMemory, memory_y, root_y, slots.width(), "memory");
    between_roots(at, root_y);
    const double end = scale_up(at, gpu_y, hub_y);

    double y = memory_y + 16;
    svg_.text(kColumn, y - 20, "Each way, inside a node", "head");
    for (const LinkCount& row : inventory_.links) {
      if (row.kind == LinkKind::kNetwork) continue;
      svg_.text(kColumn, y, fmt::format("{} x {}", row.count / std::max(1U, fabric_.nodes), link_text(row)), "note");
      y += 16;
    }
    y_ = std::max(end, y);
  }

  // Row of parents over the children already placed; draws the links between the two rows.
  void above(std::map<std::uint32_t, double>& at, DeviceKind kind, double y, double child_y, double slot, std::string_view style) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> children;
    for (std::uint32_t id = 0; id < fabric_.host.links; ++id) {
      const Link& link = fabric_.links[id];
      if (fabric_.devices[link.to.index()].kind == kind && at.contains(link.from.value()) && link.kind != LinkKind::kSocket)
        children[link.to.value()].push_back(link.from.value());
    }
    for (const auto& [parent, below] : children) {
      double low = at[below.front()];
      double high = low;
      for (const std::uint32_t child : below) {
        low = std::min(low, at[child]);
        high = std::max(high, at[child]);
      }
      const Box box{(low + high) / 2, y, std::clamp(high - low + slot - 8, 44.0, 120.0), kBoxHeight};
      for (const std::uint32_t child : below) svg_.line(box.x, box.bottom(), at[child], child_y, "");
      at[parent] = box.x;
      const Device& device = fabric_.devices[parent];
      svg_.box(box, fmt::format("{}{}", kind == DeviceKind::kPcieSwitch ? "pcie" : kind == DeviceKind::kRootComplex ? "cpu" : "mem", device.index), style);
    }
  }

  // Where the children of the roots stand: PCIe switches, or GPUs where there are none.
  [[nodiscard]] double at_y(const std::map<std::uint32_t, double>& at, double pcie_y, double gpu_y) const {
    for (const auto& [device, x] : at)
      if (fabric_.devices[device].kind == DeviceKind::kPcieSwitch) return pcie_y;
    return gpu_y;
  }

  void between_roots(const std::map<std::uint32_t, double>& at, double root_y) {
    for (std::uint32_t id = 0; id < fabric_.host.links; ++id) {
      const Link& link = fabric_.links[id];
      if (link.kind != LinkKind::kSocket || link.from > link.to) continue;
      if (at.contains(link.from.value()) && at.contains(link.to.value()))
        svg_.line(at.at(link.from.value()), root_y + kBoxHeight / 2, at.at(link.to.value()), root_y + kBoxHeight / 2, "strong");
    }
  }

  // NVSwitch as a bar, or the pairs of a mesh as steps below the GPUs. Returns where the drawing ends.
  double scale_up(const std::map<std::uint32_t, double>& at, double gpu_y, double hub_y) {
    const double bottom = gpu_y + kBoxHeight;
    bool hub = false;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    std::map<std::uint32_t, std::uint32_t> degree;
    for (std::uint32_t id = 0; id < fabric_.host.links; ++id) {
      const Link& link = fabric_.links[id];
      if (link.kind != LinkKind::kNvlink || !at.contains(link.from.value())) continue;
      if (fabric_.devices[link.to.index()].kind == DeviceKind::kNvswitch) {
        svg_.line(at.at(link.from.value()), bottom, at.at(link.from.value()), hub_y, "nvlink");
        hub = true;
      } else if (link.from < link.to && at.contains(link.to.value())) {
        const std::pair pair{link.from.value(), link.to.value()};
        if (!pairs.empty() && pairs.back() == pair) continue;  // parallel links of the pair
        pairs.push_back(pair);
        ++degree[pair.first];
        ++degree[pair.second];
      }
    }
    if (hub) {
      svg_.box({kLeft + kWidth / 2, hub_y, kWidth - 8, kBoxHeight}, has_domains() ? fmt::format("NVSwitch of {} nodes", fabric_.nodes_per_domain) : "NVSwitch", "nvswitch");
      return hub_y + kBoxHeight + 10;
    }
    // Each pair at its own depth, and the ends spread under the GPUs, so that no two lines cover each other.
    constexpr double kApart = 6.0;
    std::map<std::uint32_t, std::uint32_t> used;
    double depth = bottom + 12;
    for (const auto& [a, b] : pairs) {
      const auto end = [&](std::uint32_t gpu) { return at.at(gpu) + kApart * (used[gpu]++ - (degree[gpu] - 1) / 2.0); };
      const double from = end(a);
      const double to = end(b);
      svg_.line(from, bottom, from, depth, "nvlink");
      svg_.line(from, depth, to, depth, "nvlink");
      svg_.line(to, depth, to, bottom, "nvlink");
      depth += kApart;
    }
    return depth + 8;
  }

  const Fabric& fabric_;
  Inventory inventory_;
  Svg svg_;
  double y_ = 0.0;
};

}  // namespace

std::string draw_fabric(const Fabric& fabric) { return Picture{fabric}.draw(); }

}  // namespace stepcast::topology
