// sim/scenario/cluster_section.hpp — the `cluster:` section: the machine it runs on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/key.hpp"
#include "sim/scenario/network_section.hpp"
#include "sim/scenario/routing_section.hpp"
#include "sim/scenario/transport_section.hpp"
#include "sim/scenario/words.hpp"

namespace stepcast::scenario {

struct Fabric {
  std::string preset = "rail-clos";
  std::optional<std::string> nic;             // default: the node's own
  std::optional<std::int64_t> nics_per_node;  // default: the node's own
  double oversubscription = 1.0;
  std::optional<std::int64_t> leaf_ports;
  std::optional<std::int64_t> nodes_per_pod;  // clos-3tier
  std::optional<double> core_oversubscription;  // three tiers: pod to core
  std::vector<std::int64_t> shape;            // torus, mesh
  std::optional<std::int64_t> nodes_per_switch;    // torus, mesh, dragonfly
  std::optional<std::int64_t> neighbour_links;     // torus, mesh, dragonfly
  std::optional<std::int64_t> switches_per_group;  // dragonfly
  std::optional<std::int64_t> global_links;        // dragonfly
  std::optional<std::string> file;            // becomes `network` before reading (include.hpp)
  std::optional<Network> network;             // instead of a preset
  Transport transport;
  Routing routing;
  std::vector<Failure> failures;

  template <class V>
  void visit(V& v) {
    v.key("preset", preset,
          "Shape of the network: rail-clos (GPU i of every node on leaf i), clos (two tiers), clos-3tier, rail-clos-3tier, "
          "rail-only (no spine joins two rails), dual-plane (each card a port on either of two rail-clos planes), meta-rack (racks of 16 "
          "GPUs, zones of full bisection), torus, mesh, dragonfly, direct (boxes joined card to card), none. docs/guide/fabrics.md shows them.",
          words({"rail-clos", "clos", "clos-3tier", "rail-clos-3tier", "rail-only", "dual-plane", "meta-rack", "torus", "mesh", "dragonfly", "direct", "none"}));
    v.key("nic", nic, "Network card of the catalogue. Default: the node's own.", not_empty().example("ib-ndr-400").in_starter());
    v.key("nics_per_node", nics_per_node, "Network cards in a node. Default: the node's own.",
          between(1, 1024).example("8"));
    v.key("oversubscription", oversubscription, "Down-link over up-link capacity of a leaf switch; 1 is none, 0.5 has twice the up-links.",
          between(0.01, 1e4));
    v.key("leaf_ports", leaf_ports, "Down-ports of a leaf switch. Default: from the preset.", between(1, 1e6).example("32"));
    v.key("nodes_per_pod", nodes_per_pod, "Nodes below one set of spines (three tiers), or of a rail's leaf (rail fabrics).",
          between(1, 1e6).example("384"));
    v.key("core_oversubscription", core_oversubscription,
          "Pod-to-core oversubscription (three tiers); 1 is none. Default: 1, meta-rack 7.", between(1, 1e4).example("2"));
    v.key("shape", shape, "Switches in each dimension (torus, mesh).", between(1, 1e6).example("[4, 4, 4]"));
    v.key("nodes_per_switch", nodes_per_switch, "Nodes on a switch (torus, mesh, dragonfly). Default: 1.", between(1, 1e6).example("2"));
    v.key("neighbour_links", neighbour_links,
          "Parallel links of two neighbours (torus, mesh), or of two switches of a group (dragonfly). Default: as many as NICs on a switch.",
          between(1, 1e5).example("4"));
    v.key("switches_per_group", switches_per_group, "Switches in a group (dragonfly).", between(1, 1e6).example("8"));
    v.key("global_links", global_links, "Links of two groups (dragonfly). Default: a group has as many to all others as it has NICs.",
          between(1, 1e5).example("4"));
    v.key("file", file, "File with the switches and links instead of a preset, from this file's folder or the working folder.",
          not_empty().example("my-fabric.yaml"));
    v.key("network", network, "Switches and links written out, instead of a preset.");
    v.key("transport", transport, "How messages travel: InfiniBand, RoCE or TCP, and what of the hosts they need.");
    v.key("routing", routing, "How flows get their paths through the network.");
    v.key("failures", failures, "Links and switches that fail or slow down, at the start or during the step.",
          example("[{link: leaf0 <-> spine3}, {switch: spine0, at: 200 ms}, {link: node0/nic0 <-> leaf0, fraction: 0.5}]"));
  }
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

// A network beside cluster.fabric, with network cards of its own.
struct SideNetwork {
  std::string name;
  Fabric fabric;
  std::vector<TrafficAxis> carries;
  std::optional<std::string> nodes;

  template <class V>
  void visit(V& v) {
    v.key("name", name, "What it is called: its switches and cards are NAME/leaf0, node0/NAME/nic0.", required().not_empty().example("storage"));
    v.key("fabric", fabric, "Its shape and cards, as cluster.fabric; routing and failures stand there for all networks.", required());
    v.key("carries", carries, "Axes whose traffic it takes where it joins both ends: tp, cp, ep, dp, pp. Default: what no other network is for.",
          example("[pp]"));
    v.key("nodes", nodes, "Nodes that it joins, such as 0-7 or 0-3,8. Default: all.", not_empty().example("0-7"));
  }
  friend bool operator==(const SideNetwork&, const SideNetwork&) = default;
};

// GPUs of another kind in some nodes.
struct OtherGpus {
  std::string nodes;
  std::string gpu;

  template <class V>
  void visit(V& v) {
    v.key("nodes", nodes, "Nodes that have them, such as 4-7 or 0-3,8.", required().not_empty().example("4-7"));
    v.key("gpu", gpu, "The GPU: a name of the catalogue.", required().not_empty().example("a100-sxm-80"));
  }
  friend bool operator==(const OtherGpus&, const OtherGpus&) = default;
};

struct Cluster {
  std::int64_t nodes = 1;
  std::string node;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::string> gpu;
  std::vector<OtherGpus> other_gpus;
  std::optional<std::int64_t> nvlink_domain;
  std::optional<Fabric> fabric;  // required when nodes > 1, unless NVLink joins them all
  std::vector<SideNetwork> networks;

  template <class V>
  void visit(V& v) {
    v.key("nodes", nodes, "Number of nodes.", between(1, 1e6));
    v.key("node", node, "Kind of node: a name of the catalogue (stepcast list), or a .yaml file that describes one.",
          required().not_empty().example("dgx-h100"));
    v.key("gpus_per_node", gpus_per_node, "Use this many GPUs of each node. Default: all of them.",
          between(1, 1024).example("8"));
    v.key("gpu", gpu, "Put another GPU of the catalogue in the node. Default: the node's own.",
          not_empty().example("h200-sxm"));
    v.key("other_gpus", other_gpus,
          "GPUs of another kind in some of the nodes; links, cards and hosts stay those of the kind of node. Replicas' batches stay equal; "
          "slower GPUs may hold fewer layers (parallel.layers_per_stage).", example("[{nodes: 4-7, gpu: a100-sxm-80}]"));
    v.key("nvlink_domain", nvlink_domain,
          "Nodes that share one NVLink fabric: 18 in an NVL72 rack, 9 for an NVL36, 1 for none beyond the node. Default: the kind of node's own.",
          between(1, 1024).example("18"));
    v.key("fabric", fabric, "The network between nodes; required for more than one node.");
    v.key("networks", networks, "Further networks beside it: for some of the traffic, or for some of the nodes.",
          example("[{name: ethernet, carries: [pp], fabric: {preset: clos, nic: eth-100, nics_per_node: 1}}]"));
  }
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// `cluster.node` names a file that describes the node, not an entry of the catalogue.
inline bool is_node_file(const std::string& node) { return node.ends_with(".yaml"); }

}  // namespace stepcast::scenario
