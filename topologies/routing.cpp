#include "topologies/routing.hpp"

#include <algorithm>
#include <span>

#include "sim/base/check.hpp"
#include "topologies/graph_paths.hpp"
#include "topologies/side_networks.hpp"
#include "topologies/spread.hpp"

namespace stepcast::topology {

namespace {

// A piece of a path inside one host; bundles count from the host's first.
struct Leg {
  std::vector<Path::Share> shares;
  Duration latency;
  int switches = 0;
};

// A path under way: shares in travel order, merged and sorted at the end.
void append(Path& path, const Leg& leg, std::uint32_t first_bundle, double weight) {
  for (const Path::Share& share : leg.shares) path.shares.push_back({first_bundle + share.bundle, share.share * weight});
}

void finish(Path& path) {
  std::sort(path.shares.begin(), path.shares.end(), [](const auto& a, const auto& b) { return a.bundle < b.bundle; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < path.shares.size(); ++i) {
    if (kept > 0 && path.shares[kept - 1].bundle == path.shares[i].bundle) {
      path.shares[kept - 1].share += path.shares[i].share;
    } else {
      path.shares[kept++] = path.shares[i];
    }
  }
  path.shares.resize(kept);
}

}  // namespace

struct Router::Impl {
  const Fabric& fabric;
  std::uint32_t gpus;
  std::uint32_t nics;
  // Legs of the host template: [gpu][gpu], [gpu][nic], [nic][gpu].
  std::vector<std::vector<std::optional<Leg>>> between{};
  std::vector<std::vector<PathKind>> between_kind{};
  std::vector<std::optional<Leg>> to_memory{};    // [gpu]
  std::vector<std::optional<Leg>> from_memory{};
  std::vector<std::vector<std::optional<Leg>>> out{};
  std::vector<std::vector<std::optional<Leg>>> in{};
  std::vector<std::optional<GraphPaths>> graphs{};                 // by network
  std::vector<std::vector<std::uint32_t>> preferred{};             // by axis, the last for none: networks
  std::vector<std::vector<bool>> joins{};                          // [network][node]; empty where there is one network

  explicit Impl(const Fabric& f) : fabric{f}, gpus{f.gpus_per_node}, nics{f.nics_per_node()} {
    prepare_host();
    for (const NetworkPart& part : f.networks) {
      graphs.emplace_back();
      if (part.by_search) graphs.back().emplace(f, part);
    }
    if (f.networks.size() > 1) prepare_choice();
  }

  void prepare_choice() {
    for (const auto& [word, axis] : enum_words(scenario::TrafficAxis{})) preferred.push_back(preferred_networks(fabric, axis));
    preferred.push_back(preferred_networks(fabric, std::nullopt));
    for (const NetworkPart& part : fabric.networks) {
      joins.emplace_back(fabric.nodes, false);
      for (const std::uint32_t node : part.nodes) joins.back()[node] = true;
    }
  }

  // The network's index.
  [[nodiscard]] std::uint32_t choose(std::uint32_t node_a, std::uint32_t node_b, Axis axis) const {
    if (joins.empty()) return 0;
    for (const std::uint32_t n : preferred[axis ? static_cast<std::size_t>(*axis) : preferred.size() - 1])
      if (joins[n][node_a] && joins[n][node_b]) return n;
    return 0;  // joins all
  }

  [[nodiscard]] std::optional<Leg> search(std::uint32_t from, std::uint32_t to, LinkSet allowed) const {
    const std::span<const Link> links{fabric.links.data(), fabric.host.links};
    const std::optional<Spread> spread = spread_evenly(fabric, fabric.host.devices, links, allowed, DeviceId{from}, DeviceId{to});
    if (!spread) return std::nullopt;
    // NCCL relays over at most one GPU; farther pairs of a mesh use PCIe.
    if (allowed == LinkSet::kNvlinkOnly && spread->links > 2) return std::nullopt;
    std::vector<double> share(fabric.host.bundles, 0.0);
    for (std::size_t id = 0; id < links.size(); ++id) share[links[id].bundle] += spread->link_share[id];
    Leg leg{.shares = {}, .latency = spread->latency, .switches = spread->switches};
    for (std::uint32_t b = 0; b < share.size(); ++b)
      if (share[b] > 0.0) leg.shares.push_back({b, share[b]});
    return leg;
  }

  static std::optional<Leg> chain(const std::optional<Leg>& first, const std::optional<Leg>& second) {
    if (!first || !second) return std::nullopt;
    Leg leg = *first;
    leg.shares.insert(leg.shares.end(), second->shares.begin(), second->shares.end());
    leg.latency += second->latency;
    leg.switches += second->switches;
    return leg;
  }

  // Without GPUDirect data are copied through the memory of the GPU's socket.
  [[nodiscard]] std::optional<Leg> pcie(std::uint32_t from, std::uint32_t to, std::uint32_t memory, bool bounce) const {
    if (!bounce) return search(from, to, LinkSet::kNotNvlink);
    return chain(search(from, memory, LinkSet::kNotNvlink), search(memory, to, LinkSet::kNotNvlink));
  }

  // Between a GPU and a NIC: copied through host memory where they do not reach each other, and by the cores if sockets do it.
  [[nodiscard]] std::optional<Leg> network(const NetworkPart& part, std::uint32_t from, std::uint32_t to, std::uint32_t gpu) const {
    const std::uint32_t memory = fabric.host.memory_of_gpu[gpu];
    if (!part.through_cores || fabric.host.cpu_of_gpu.empty()) return pcie(from, to, memory, part.through_host);
    const std::uint32_t cpu = fabric.host.cpu_of_gpu[gpu];
    const auto leg = [&](std::uint32_t a, std::uint32_t b) { return search(a, b, LinkSet::kNotNvlink); };
    return chain(chain(leg(from, memory), leg(memory, cpu)), chain(leg(cpu, memory), leg(memory, to)));
  }

  void prepare_host() {
    const HostShape& host = fabric.host;
    between.assign(gpus, std::vector<std::optional<Leg>>(gpus));
    between_kind.assign(gpus, std::vector<PathKind>(gpus, PathKind::kNvlink));
    for (std::uint32_t a = 0; a < gpus; ++a) {
      for (std::uint32_t b = 0; b < gpus; ++b) {
        if (a == b) continue;
        if (!host.to_domain.empty()) {
          between[a][b] = over_domain(a, b);
          continue;
        }
        between[a][b] = search(host.gpus[a], host.gpus[b], LinkSet::kNvlinkOnly);
        if (between[a][b]) continue;
        between[a][b] = pcie(host.gpus[a], host.gpus[b], host.memory_of_gpu[a], fabric.peer_through_host);
        between_kind[a][b] = PathKind::kPcie;
      }
    }
    for (std::uint32_t g = 0; g < gpus; ++g) {
      to_memory.push_back(search(host.gpus[g], host.memory_of_gpu[g], LinkSet::kNotNvlink));
      from_memory.push_back(search(host.memory_of_gpu[g], host.gpus[g], LinkSet::kNotNvlink));
    }
    if (fabric.ports.empty()) return;
    out.assign(gpus, std::vector<std::optional<Leg>>(nics));
    in.assign(nics, std::vector<std::optional<Leg>>(gpus));
    for (const NetworkPart& part : fabric.networks) prepare_nics(part);
  }

  void prepare_nics(const NetworkPart& part) {
    const HostShape& host = fabric.host;
    const bool bounce = part.through_host;
    const auto direct_out = [&](std::uint32_t g, std::uint32_t j) { return network(part, host.gpus[g], host.nics[j], g); };
    const auto direct_in = [&](std::uint32_t j, std::uint32_t g) { return network(part, host.nics[j], host.gpus[g], g); };
    for (std::uint32_t g = 0; g < gpus; ++g) {
      for (std::uint32_t j = part.first_nic; j < part.first_nic + part.nics; ++j) {
        const std::vector<std::uint32_t>& own = part.nics_of_gpu[g];
        const bool is_own = std::find(own.begin(), own.end(), j) != own.end();
        const std::optional<std::uint32_t> beside = host.gpu_of_nic[j];
        const bool relay = beside && *beside != g && between_kind[g][*beside] == PathKind::kNvlink;
        // Data that sit in host memory anyway gain nothing from the other GPU.
        if (relay && !is_own && !bounce) {
          out[g][j] = chain(between[g][*beside], direct_out(*beside, j));
          in[j][g] = chain(direct_in(j, *beside), between[*beside][g]);
          continue;
        }
        out[g][j] = direct_out(g, j);
        in[j][g] = direct_in(j, g);
        if (relay && !out[g][j]) out[g][j] = chain(between[g][*beside], direct_out(*beside, j));
        if (relay && !in[j][g]) in[j][g] = chain(direct_in(j, *beside), between[*beside][g]);
      }
    }
  }

  // Through the NVSwitch that several hosts share.
  [[nodiscard]] Leg over_domain(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t up = fabric.host.to_domain[a];
    const std::uint32_t down = fabric.host.from_domain[b];
    return {.shares = {{up, 1.0}, {down, 1.0}}, .latency = latency_of(up) + latency_of(down), .switches = 1};
  }

  [[nodiscard]] Duration latency_of(std::uint32_t bundle) const { return fabric.links[fabric.bundles[bundle].links.front().index()].latency; }

  // Of ports of one network.
  [[nodiscard]] bool joined(std::uint32_t network, const Port& a, const Port& b) const {
    if (a.leaf == b.leaf) return true;
    const Leaf& from = fabric.leaves[a.leaf];
    const Leaf& to = fabric.leaves[b.leaf];
    if (fabric.networks[network].by_search) return from.group == to.group;
    if (!from.up || !to.down) return false;
    return from.group == to.group || (fabric.groups[from.group].up && fabric.groups[to.group].down);
  }

  struct Reach {
    Duration latency;
    int switches = 0;
  };

  // Adds the way from one NIC to another. Requires: joined(network, a, b).
  Reach cross(Path& path, std::uint32_t network, const Port& a, const Port& b, double weight) const {
    const std::optional<GraphPaths>& graph = graphs[network];
    Reach reach;
    const auto over = [&](std::uint32_t bundle) {
      path.shares.push_back({bundle, weight});
      reach.latency += latency_of(bundle);
      ++reach.switches;
    };
    over(a.up);
    if (graph && a.leaf != b.leaf) {
      const GraphPaths::Reach across = graph->add(a.leaf, b.leaf, weight, path.shares);
      reach.latency += across.latency;
      reach.switches += across.links;
    } else if (a.leaf != b.leaf) {
      const Leaf& from = fabric.leaves[a.leaf];
      const Leaf& to = fabric.leaves[b.leaf];
      over(*from.up);
      if (from.group != to.group) {
        over(*fabric.groups[from.group].up);
        over(*fabric.groups[to.group].down);
      }
      over(*to.down);
    }
    over(b.down);
    --reach.switches;  // n bundles in a row meet n - 1 switches
    if (fabric.devices[fabric.leaves[a.leaf].device.index()].kind == DeviceKind::kCable) --reach.switches;
    return reach;
  }

  struct Ends {
    std::uint32_t node_a, gpu_a, node_b, gpu_b;
    std::uint32_t network;
  };

  // One of the ways that a path is spread over: through NIC `nic_a` of one host to `nic_b` of the other.
  void way(Path& path, const Ends& ends, std::uint32_t nic_a, std::uint32_t nic_b, double weight) const {
    const std::optional<Leg>& leave = out[ends.gpu_a][nic_a];
    const std::optional<Leg>& enter = in[nic_b][ends.gpu_b];
    SIM_CHECK(leave.has_value() && enter.has_value(), ends.gpu_a, nic_a, nic_b, ends.gpu_b);
    append(path, *leave, ends.node_a * fabric.host.bundles, weight);
    const Reach reach = cross(path, ends.network, port(ends.node_a, nic_a), port(ends.node_b, nic_b), weight);
    append(path, *enter, ends.node_b * fabric.host.bundles, weight);
    path.latency = std::max(path.latency, leave->latency + reach.latency + enter->latency);
    path.switch_hops = std::max(path.switch_hops, leave->switches + reach.switches + enter->switches);
  }

  // The pairs of NICs that a path between nodes is spread over, evenly.
  template <class Use>
  void for_each_way(const Ends& ends, Use use) const {
    const NetworkPart& part = fabric.networks[ends.network];
    const std::vector<std::uint32_t>& own_a = part.nics_of_gpu[ends.gpu_a];
    const std::vector<std::uint32_t>& own_b = part.nics_of_gpu[ends.gpu_b];
    const std::size_t ways = std::max(own_a.size(), own_b.size());
    for (std::size_t w = 0; w < ways; ++w) {
      std::uint32_t nic_a = own_a[w % own_a.size()];
      const std::uint32_t nic_b = own_b[w % own_b.size()];
      const double weight = 1.0 / static_cast<double>(ways);
      if (!joined(ends.network, port(ends.node_a, nic_a), port(ends.node_b, nic_b))) {
        // Rails that no spine joins: change rails inside the sending host. Cables from card to card: all that there are.
        if (!joined(ends.network, port(ends.node_a, nic_b), port(ends.node_b, nic_b))) {
          for_each_cable(ends, weight, use);
          continue;
        }
        nic_a = nic_b;
      }
      use(nic_a, nic_b, weight);
    }
  }

  template <class Use>
  void for_each_cable(const Ends& ends, double weight, Use use) const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    const NetworkPart& part = fabric.networks[ends.network];
    for (std::uint32_t i = part.first_nic; i < part.first_nic + part.nics; ++i)
      for (std::uint32_t j = part.first_nic; j < part.first_nic + part.nics; ++j)
        if (joined(ends.network, port(ends.node_a, i), port(ends.node_b, j))) pairs.emplace_back(i, j);
    SIM_CHECK(!pairs.empty(), ends.node_a, ends.node_b);
    for (const auto& [i, j] : pairs) use(i, j, weight / static_cast<double>(pairs.size()));
  }

  [[nodiscard]] const Port& port(std::uint32_t node, std::uint32_t nic) const { return fabric.ports[std::size_t{node} * nics + nic]; }

  // Two hosts whose GPUs meet at an NVSwitch.
  [[nodiscard]] bool share_domain(const Ends& ends) const {
    return !fabric.host.to_domain.empty() && ends.node_a / fabric.nodes_per_domain == ends.node_b / fabric.nodes_per_domain;
  }
  [[nodiscard]] bool need_network(const Ends& ends) const { return ends.node_a != ends.node_b && !share_domain(ends); }

  // Adds the way from one GPU to another of its host or NVLink domain.
  void inside(Path& path, const Ends& ends) const {
    if (ends.node_a != ends.node_b) {
      const Leg leg = over_domain(ends.gpu_a, ends.gpu_b);
      path.kind = PathKind::kNvlink;
      path.latency = leg.latency;
      path.switch_hops = leg.switches;
      path.shares.push_back({ends.node_a * fabric.host.bundles + leg.shares[0].bundle, 1.0});
      path.shares.push_back({ends.node_b * fabric.host.bundles + leg.shares[1].bundle, 1.0});
      return;
    }
    if (ends.gpu_a == ends.gpu_b) return;
    const std::optional<Leg>& leg = between[ends.gpu_a][ends.gpu_b];
    SIM_CHECK(leg.has_value(), ends.gpu_a, ends.gpu_b);
    path.kind = between_kind[ends.gpu_a][ends.gpu_b];
    path.latency = leg->latency;
    path.switch_hops = leg->switches;
    append(path, *leg, ends.node_a * fabric.host.bundles, 1.0);
  }

  [[nodiscard]] Ends ends(std::uint32_t from, std::uint32_t to, Axis axis) const {
    SIM_CHECK(from < fabric.gpus.size() && to < fabric.gpus.size(), from, to, fabric.gpus.size());
    return {from / gpus, from % gpus, to / gpus, to % gpus, choose(from / gpus, to / gpus, axis)};
  }
};

Router::Router(const Fabric& fabric) : impl_{std::make_unique<Impl>(fabric)} {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;

void Router::path(std::uint32_t from_gpu, std::uint32_t to_gpu, Path& path, Axis axis) const {
  const Impl& impl = *impl_;
  const Impl::Ends ends = impl.ends(from_gpu, to_gpu, axis);
  path.kind = PathKind::kSelf;
  path.shares.clear();
  path.latency = {};
  path.switch_hops = 0;
  if (!impl.need_network(ends)) {
    impl.inside(path, ends);
  } else {
    path.kind = PathKind::kNetwork;
    impl.for_each_way(ends, [&](std::uint32_t nic_a, std::uint32_t nic_b, double weight) { impl.way(path, ends, nic_a, nic_b, weight); });
  }
  finish(path);
}

void Router::host_path(std::uint32_t gpu, HostWay way, Path& path) const {
  const Impl& impl = *impl_;
  SIM_CHECK(gpu < impl.fabric.gpus.size(), gpu, impl.fabric.gpus.size());
  const std::optional<Leg>& leg = (way == HostWay::kToHost ? impl.to_memory : impl.from_memory)[gpu % impl.gpus];
  SIM_CHECK(leg.has_value(), gpu);
  path.kind = PathKind::kPcie;
  path.shares.clear();
  path.latency = leg->latency;
  path.switch_hops = leg->switches;
  append(path, *leg, gpu / impl.gpus * impl.fabric.host.bundles, 1.0);
  finish(path);
}

Path Router::path(std::uint32_t from_gpu, std::uint32_t to_gpu, Axis axis) const {
  Path result;
  path(from_gpu, to_gpu, result, axis);
  return result;
}

std::uint32_t Router::network_between(std::uint32_t from_gpu, std::uint32_t to_gpu, Axis axis) const {
  return impl_->ends(from_gpu, to_gpu, axis).network;
}

Router::Crossing Router::crossing(std::uint32_t from_gpu, std::uint32_t to_gpu, Axis axis) const {
  const Impl& impl = *impl_;
  const Impl::Ends ends = impl.ends(from_gpu, to_gpu, axis);
  Path hosts;
  Crossing crossing;
  if (!impl.need_network(ends)) impl.inside(hosts, ends);
  const auto cross = [&](std::uint32_t nic_a, std::uint32_t nic_b, double weight) {
    append(hosts, *impl.out[ends.gpu_a][nic_a], ends.node_a * impl.fabric.host.bundles, weight);
    append(hosts, *impl.in[nic_b][ends.gpu_b], ends.node_b * impl.fabric.host.bundles, weight);
    crossing.ways.push_back({ends.node_a * impl.nics + nic_a, ends.node_b * impl.nics + nic_b, weight});
  };
  if (impl.need_network(ends)) impl.for_each_way(ends, cross);
  finish(hosts);
  crossing.inside = std::move(hosts.shares);
  return crossing;
}

Path Router::path_through_nic(std::uint32_t from_gpu, std::uint32_t to_gpu, std::uint32_t nic_index) const {
  const Impl& impl = *impl_;
  Impl::Ends ends = impl.ends(from_gpu, to_gpu, std::nullopt);
  ends.network = 0;
  if (!impl.need_network(ends)) return path(from_gpu, to_gpu);
  const std::uint32_t nic = nic_index % impl.fabric.networks.front().nics;
  Path path{.kind = PathKind::kNetwork, .shares = {}, .latency = {}, .switch_hops = 0};
  if (impl.joined(0, impl.port(ends.node_a, nic), impl.port(ends.node_b, nic))) {
    impl.way(path, ends, nic, nic, 1.0);
  } else {
    impl.for_each_cable(ends, 1.0, [&](std::uint32_t nic_a, std::uint32_t nic_b, double weight) { impl.way(path, ends, nic_a, nic_b, weight); });
  }
  finish(path);
  return path;
}

std::uint32_t Router::nics_per_node() const { return impl_->nics; }

}  // namespace stepcast::topology
