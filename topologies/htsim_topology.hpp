// topologies/htsim_topology.hpp — the fat-tree files of the packet simulators of the htsim family, and the
// switches and links that they stand for.
//
// Form      "Key value" a line, blank lines between, # starts a comment line. First Nodes (hosts), Tiers (2 or
//           3) and Podsize (hosts a pod), then a block "Tier i" for each tier: 0 = ToR, 1 = aggregation (the
//           spine where there are two tiers), 2 = core. Keys of a block: Radix_Down, Radix_Up (not on the top
//           tier), Downlink_speed_Gbps, Downlink_Latency_ns, Switch_Latency_ns, Bundle (parallel links
//           towards the tier below), Oversubscribed (stated for people: the radices decide).
//           A tier's Downlink_* describe the links between it and the tier below, hosts below tier 0.
// Wiring    host h hangs on ToR h / Radix_Down; every ToR of a pod meets every aggregation switch of it; core c
//           meets aggregation switch c mod (switches a pod) of every pod.
// Names     LS<tor>->US<agg>(b), US<agg>->CS<core>(b), CS<core>->US<agg>(b), US<agg>->LS_<tor>(b): b counts the
//           links of a bundle. The links of hosts have no name in recordings.
// Source    the recorded files and paths in ../shared/packet_truth; every recorded hop is checked against this
// Tests     unit/htsim_topology_test, diff/packet_replay_test
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::topology {

struct HtsimTier {
  std::uint32_t radix_down = 0;
  std::uint32_t radix_up = 0;  // 0 on the top tier
  std::uint32_t bundle = 1;
  Bandwidth downlink;
  Duration downlink_latency;
  Duration switch_latency;
};

struct HtsimTopology {
  std::uint32_t hosts = 0;
  std::uint32_t pod_hosts = 0;
  std::vector<HtsimTier> tiers;
};

// Throws UserError: unknown, missing or repeated key, a value that is none, radices that do not fit together.
HtsimTopology parse_htsim_topology(std::string_view text, const std::string& file);
HtsimTopology read_htsim_topology(const std::string& file);

// A directed link. Devices are numbered hosts first, then ToRs, aggregation switches, cores.
struct HtsimLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Bandwidth rate;
  Duration latency;  // of the wire and of the switch that it leaves
};

class HtsimFabric {
 public:
  using Path = std::vector<std::uint32_t>;  // links from host to host, in the order of travel

  explicit HtsimFabric(const HtsimTopology& topology);

  [[nodiscard]] std::uint32_t hosts() const { return hosts_; }
  [[nodiscard]] const std::vector<HtsimLink>& links() const { return links_; }
  [[nodiscard]] std::uint32_t host_up(std::uint32_t host) const { return 2 * host; }
  [[nodiscard]] std::uint32_t host_down(std::uint32_t host) const { return 2 * host + 1; }
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;
  // The shortest paths, numbered. Requires: two different hosts, number < path_count().
  [[nodiscard]] std::uint32_t path_count(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] Path path(std::uint32_t from, std::uint32_t to, std::uint32_t number) const;

 private:
  // The link down follows the link up.
  [[nodiscard]] std::uint32_t tor_up(std::uint32_t tor, std::uint32_t agg_in_pod, std::uint32_t member) const;
  [[nodiscard]] std::uint32_t agg_up(std::uint32_t agg, std::uint32_t core_of_agg, std::uint32_t member) const;

  std::uint32_t hosts_;
  std::uint32_t hosts_a_tor_;
  std::uint32_t tors_a_pod_;
  std::uint32_t aggs_a_pod_;
  std::uint32_t pods_;
  std::uint32_t cores_an_agg_ = 0;
  std::uint32_t bundle1_;
  std::uint32_t bundle2_ = 1;
  std::uint32_t first_tor_up_ = 0;
  std::uint32_t first_agg_up_ = 0;
  std::vector<HtsimLink> links_;
  std::unordered_map<std::string, std::uint32_t> by_name_;  // for look-up only
};

}  // namespace stepcast::topology
