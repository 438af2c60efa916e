// models/network/path_policy.hpp — how a flow gets its path, in the words of those who run fabrics.
//
// Policies  ideal     every flow spreads evenly over all shortest paths: no collisions
//           ecmp      each switch hashes the 5-tuple (hash.hpp)
//           e-ecmp    the destination QP is hashed as well, so the QPs of a pair take different paths
//           pinned    leaf's up-link = position of the receiving port below its leaf, spine's = position
//                     of the receiving leaf in its pod, modulo the up-links (d-mod-k)                (1)
//           planned   a central planner places flows one after another, each on the path whose most
//                     reserved link is least so, and reserves; e-ecmp where a plan has failed
//           adaptive  each switch takes its least loaded next hop when a flow starts, by local knowledge
//           flowlet   adaptive, but a connection moves only after it was idle for longer than a gap
//           spray     packets spread over all shortest paths: ideal's shares; receivers must reorder  (2)
// Model     (1) i mod k. Even while k divides the ports of a leaf (the leaves of a pod) and all send; else the first links get more.
//           (2) reordering may have to hold (longest - shortest path delay) * rate; no rate is lost
//           QPs: a connection of q QPs carries 1/q of its bytes on each (split), or message m on QP
//           m mod q (round-robin): the share of QP j is the count of its messages over all of them.   (3)
//           A pipelined transfer is as fast as its slowest part allows: all parts are one fluid.
// Source    Gangidi et al., "RDMA over Ethernet for distributed AI training at Meta scale", SIGCOMM 2024
//           (pinning, E-ECMP, QP scaling, central planning); d-mod-k: Zahavi, "D-Mod-K routing providing
//           non-blocking traffic for shift permutations on real life fat trees", 2010; NCCL: NCCL_IB_QPS_PER_CONNECTION,
//           NCCL_IB_SPLIT_DATA_ON_QPS; flowlets: Kandula et al., CCR 37(2), 2007
// Ignores   idle gaps inside a transfer (a fluid has none: RDMA sends at line rate), resilient hashing,
//           the time that a planner takes to react
// Tests     unit/path_policy_test, property/path_choice_test
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::network {

enum class PathPolicy : std::uint8_t { kIdeal, kEcmp, kEEcmp, kPinned, kPlanned, kAdaptive, kFlowlet, kSpray };
enum class QpMode : std::uint8_t { kSplit, kRoundRobin };
enum class SourcePort : std::uint8_t { kFlowLabel, kQp, kRandom, kFixed };

// Even spreading, whether by wish (ideal) or by packet.
constexpr bool spreads(PathPolicy policy) { return policy == PathPolicy::kIdeal || policy == PathPolicy::kSpray; }
// The path depends on what else is on its way when the flow starts.
constexpr bool follows_load(PathPolicy policy) { return policy == PathPolicy::kAdaptive || policy == PathPolicy::kFlowlet; }

// Equation (1). Requires: candidates > 0.
constexpr std::size_t pinned_choice(std::size_t position, std::size_t candidates) { return position % candidates; }

// The least loaded of the candidates; among equals the one that `tie` falls on. Requires: some.
std::size_t least_loaded(std::span<const std::int64_t> loads, std::uint64_t tie);

// Equation (3): shares of a transfer of `messages` messages, sum 1; fewer messages than QPs leave QPs
// without any. Requires: qps, messages > 0.
std::vector<double> qp_shares(QpMode mode, std::size_t qps, std::uint64_t messages);

// The UDP source port of a QP (flow_header.hpp). `draw`: random bits that are the connection's own.
std::uint16_t source_port(SourcePort rule, std::uint32_t local_qp, std::uint32_t remote_qp, std::uint64_t draw);

}  // namespace stepcast::network
