// sim/scenario/routing_section.hpp — `cluster.fabric.routing` and `cluster.fabric.failures`: how flows get
// their paths, and which links do not work. docs/guide/path_choice.md has the models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"
#include "sim/scenario/words.hpp"

namespace stepcast::scenario {

struct Routing {
  RoutingPolicy policy = RoutingPolicy::kIdeal;
  SwitchHash hash = SwitchHash::kIdeal;
  SwitchSeed seed = SwitchSeed::kPerSwitch;
  std::int64_t tier_offset = 0;
  std::int64_t qps = 1;
  QpUse qp_mode = QpUse::kRoundRobin;
  SourcePortRule source_port = SourcePortRule::kRandom;
  Bytes message = Bytes{512 * 1024};
  Duration flowlet_gap = Duration::microseconds(256);

  template <class V>
  void visit(V& v) {
    v.key("policy", policy,
          "How a flow gets its path: even spreading (ideal), a hash of the 5-tuple (ecmp) or also of the destination QP (e-ecmp), "
          "by the receiver's place (pinned), by a central planner (planned), by load (adaptive, flowlet), packet by packet (spray).");
    v.key("hash", hash, "Hash function of the switches.");
    v.key("seed", seed, "Switches hash with a seed each, or all with the same.");
    v.key("tier_offset", tier_offset, "Bits by which each tier's hash is rotated beyond the tier below; 0 is none.",
          between(0, 63));
    v.key("qps", qps, "Queue pairs of a connection (NCCL_IB_QPS_PER_CONNECTION).", between(1, 128).example("4"));
    v.key("qp_mode", qp_mode, "Each message divided over the QPs, or whole messages in turn (NCCL_IB_SPLIT_DATA_ON_QPS=0).");
    v.key("source_port", source_port,
          "Where the UDP source port of a QP comes from: a flow label, the kernel's label of the QP numbers, a random draw, one for all.");
    v.key("message", message, "Bytes of one message of a long transfer (NCCL: buffer size / 8).", above(0));
    v.key("flowlet_gap", flowlet_gap, "Idle time after which a connection may change its path (flowlet).", at_least(0));
  }
  friend bool operator==(const Routing&, const Routing&) = default;
};

struct Failure {
  std::optional<std::string> link;
  std::optional<std::string> switch_name;
  Duration at;
  double fraction = 0.0;

  template <class V>
  void visit(V& v) {
    v.key("link", link, "Link that fails: 'leaf0 <-> spine3' both ways, 'leaf0 -> spine3' one way.",
          not_empty().example("leaf0 <-> spine3"));
    v.key("switch", switch_name, "Switch that fails, with all its links.", not_empty().example("spine3"));
    v.key("at", at, "Time in the step; 0 s: from the start.", at_least(0));
    v.key("fraction", fraction, "Share of its capacity that is left; 0: down, routing goes around it; 1: repaired.", between(0, 1));
  }
  friend bool operator==(const Failure&, const Failure&) = default;
};

}  // namespace stepcast::scenario
