// sim/scenario/network_section.hpp — `cluster.fabric.network`: switches and links written out, in the
// scenario itself or in a file of its own (`cluster.fabric.file`), which may also hold a whole `cluster:`.
//
//   hosts: ["tux[0-31]"]                                  # in the order of the nodes
//   switches: ["leaf[0-1]", "spine[0-1]"]
//   links:
//     - {from: "tux[0-15]", to: leaf0}                    # every NIC of these hosts
//     - {from: "tux[16-31]/nic[0-7]", to: leaf1}          # the same, NICs named
//     - {from: "leaf[0-1]", to: "spine[0-1]", count: 8}   # every pair, eight parallel links each
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"

namespace stepcast::scenario {

struct NetworkLinks {
  std::string from;
  std::string to;
  std::int64_t count = 1;
  std::optional<Bandwidth> rate;
  std::optional<Duration> latency;

  template <class V>
  void visit(V& v) {
    v.key("from", from, "Hosts, NICs (host/nic0) or switches, with ranges.", required().not_empty().example("tux[0-15]"));
    v.key("to", to, "The other ends: every one of `from` is joined with every one of these.", required().not_empty().example("leaf0"));
    v.key("count", count, "Parallel links of each pair.", between(1, 1e5));
    v.key("rate", rate, "Rate of one link, each way. Default: the NIC's.", above(0).example("400 Gb/s"));
    v.key("latency", latency, "One link, one way, with the switch it leaves. Default: the NIC's figures.", at_least(0).example("500 ns"));
  }
  friend bool operator==(const NetworkLinks&, const NetworkLinks&) = default;
};

struct Network {
  std::vector<std::string> hosts;
  std::vector<std::string> switches;
  std::vector<NetworkLinks> links;

  template <class V>
  void visit(V& v) {
    v.key("hosts", hosts, "Names of the nodes, in order, with ranges. Default: node0, node1, ...", not_empty().example("[\"tux[0-31]\"]"));
    v.key("switches", switches, "Names of the switches, with ranges.", required().not_empty().example("[\"leaf[0-1]\", \"spine[0-7]\"]"));
    v.key("links", links, "What is joined with what. Every NIC meets one switch.",
          required().not_empty().example("[{from: \"tux[0-15]\", to: leaf0}, {from: \"leaf[0-1]\", to: \"spine[0-7]\"}]"));
  }
  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace stepcast::scenario
