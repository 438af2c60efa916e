// calibration/collective_profile.hpp — the figures of collectives that a profile may carry: inside a host in
// the profile of its GPU, between hosts in a profile of the NIC. Where there is none, NCCL's own constants
// hold (models/collective/nccl_constants.hpp). Fits: calibration/collective_fit.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/collective/parameters.hpp"
#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct LocalCollectives {
  topology::Figure<Duration> ll_base;
  topology::Figure<Duration> ll128_base;
  topology::Figure<Duration> simple_base;
  topology::Figure<Duration> ll_hop;
  topology::Figure<Duration> ll128_hop;
  topology::Figure<Duration> simple_hop;
  topology::Figure<Bandwidth> ll_ceiling;
  topology::Figure<double> ll128_efficiency;
  topology::Figure<double> simple_efficiency;
  topology::Figure<Duration> nvls_base;
  topology::Figure<double> nvls_efficiency;
  topology::Figure<Duration> pairwise_ll_base;
  topology::Figure<Duration> pairwise_simple_base;
  topology::Figure<Bandwidth> pairwise_ll_ceiling;
  topology::Figure<double> pairwise_efficiency;
  std::optional<topology::Figure<Bandwidth>> pair_ceiling;
  std::optional<topology::Figure<Bandwidth>> own_rate;
  std::optional<topology::Figure<Bandwidth>> pairwise_own_rate;
  topology::Figure<double> fill_share;
  topology::Figure<Bytes> fill_bytes;
  topology::Figure<Duration> launch;
  topology::Figure<Duration> issue;
  std::string error;
  template <class V>
  void visit(V& v) {
    v.key("ll_base", ll_base, "A ring with protocol LL, per call, hops apart.", scenario::required().at_least(0));
    v.key("ll128_base", ll128_base, "The same with LL128.", scenario::required().at_least(0));
    v.key("simple_base", simple_base, "The same with Simple.", scenario::required().at_least(0));
    v.key("ll_hop", ll_hop, "One step of a ring to the next GPU with LL.", scenario::required().at_least(0));
    v.key("ll128_hop", ll128_hop, "The same with LL128.", scenario::required().at_least(0));
    v.key("simple_hop", simple_hop, "The same with Simple.", scenario::required().at_least(0));
    v.key("ll_ceiling", ll_ceiling, "Payload that LL moves whatever the links.", scenario::required().above(0));
    v.key("ll128_efficiency", ll128_efficiency, "Share of the GPU links' rate, flags included, that LL128 reaches.", scenario::required().between(0.05, 1.2));
    v.key("simple_efficiency", simple_efficiency, "Share of the GPU links' rate that Simple reaches.", scenario::required().between(0.05, 1.2));
    v.key("nvls_base", nvls_base, "An all-reduce in the NVSwitch (NVLS), per call.", scenario::required().at_least(0));
    v.key("nvls_efficiency", nvls_efficiency, "Share of the GPU links' rate that NVLS reaches.", scenario::required().between(0.05, 1.2));
    v.key("pairwise_ll_base", pairwise_ll_base, "Grouped sends and receives with LL, per call.", scenario::required().at_least(0));
    v.key("pairwise_simple_base", pairwise_simple_base, "The same with Simple.", scenario::required().at_least(0));
    v.key("pairwise_ll_ceiling", pairwise_ll_ceiling, "Payload of grouped sends with LL whatever the links.", scenario::required().above(0));
    v.key("pairwise_efficiency", pairwise_efficiency, "Share of the GPU links' rate that grouped sends reach.", scenario::required().between(0.05, 1.2));
    v.key("pair_ceiling", pair_ceiling, "Payload that the channels of one pair of GPUs move. Default: no limit but the links.", scenario::above(0));
    v.key("own_rate", own_rate, "Rate at which a ring's channels copy or sum the block that a GPU keeps, with nothing on a link. Default: it takes no time.", scenario::above(0));
    v.key("pairwise_own_rate", pairwise_own_rate, "The same of all-to-all.", scenario::above(0));
    v.key("fill_share", fill_share, "Further bytes' time for each byte while Simple's pipeline fills.", scenario::required().between(0, 3));
    v.key("fill_bytes", fill_bytes, "Bytes after which it is full.", scenario::required().at_least(0));
    v.key("launch", launch, "Host time to issue a collective from C++, without a framework.", scenario::required().at_least(0));
    v.key("issue", issue, "Host time per send or receive of a group.", scenario::required().at_least(0));
    v.key("error", error, "How far forecasts with these figures are from measurements, fitted and held out.", scenario::required().not_empty());
  }
};

struct NetworkCollectives {
  std::int64_t schema = 1;
  std::string name;
  std::vector<std::string> nics;
  std::vector<std::string> nodes;
  std::string note;
  topology::Figure<Duration> latency;
  topology::Figure<Duration> simple_hop;
  topology::Figure<Duration> nvls_tree_hop;
  topology::Figure<Bandwidth> ll_ceiling;
  topology::Figure<Bandwidth> nic_ll128_ceiling;
  std::optional<topology::Figure<Bandwidth>> simple_ceiling;
  topology::Figure<double> tree_efficiency;
  topology::Figure<double> fill_share;
  topology::Figure<Bytes> nic_fill_bytes;
  std::string error;
  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Format version.", scenario::only_version(1));
    v.key("name", name, "Profile name.", scenario::required().not_empty());
    v.key("nics", nics, "Catalogue names of the NICs that it describes.", scenario::required().not_empty());
    v.key("nodes", nodes, "Kinds of node that it is for, by catalogue name. Default: any that has no profile of its own.");
    v.key("note", note, "What to know before use.");
    v.key("latency", latency, "One step over this network beyond one over InfiniBand; twice for Simple.", scenario::required().at_least(0));
    v.key("simple_hop", simple_hop, "A step of a ring or tree over InfiniBand with Simple.", scenario::required().at_least(0));
    v.key("nvls_tree_hop", nvls_tree_hop, "A step of an NVLS tree over InfiniBand.", scenario::required().at_least(0));
    v.key("ll_ceiling", ll_ceiling, "Payload of a host that LL moves between hosts whatever the NICs.", scenario::required().above(0));
    v.key("nic_ll128_ceiling", nic_ll128_ceiling, "The same with LL128, for each NIC that a collective's GPUs stand beside.", scenario::required().above(0));
    v.key("simple_ceiling", simple_ceiling, "Payload of a host that Simple moves, where the host copies each byte. Default: the links are the limit.", scenario::above(0));
    v.key("tree_efficiency", tree_efficiency, "Bandwidth of a tree over that of its links.", scenario::required().between(0.05, 1.2));
    v.key("fill_share", fill_share, "Further bytes' time for each byte while Simple's pipeline fills.", scenario::required().between(0, 3));
    v.key("nic_fill_bytes", nic_fill_bytes, "Bytes after which it is full, for each NIC that a collective's GPUs stand beside, and each hop between hosts of a tree.", scenario::required().at_least(0));
    v.key("error", error, "How far forecasts with these figures are from measurements, fitted and held out.", scenario::required().not_empty());
  }
};

// Reads every *.yaml of a folder, in order of file name; none where there is no folder. Throws UserError.
std::vector<NetworkCollectives> read_network_profiles(const std::string& folder);
// The profile for the NIC that names the node, else the one that names none; null: there is none.
const NetworkCollectives* find_network_profile(const std::vector<NetworkCollectives>& profiles, const std::string& nic, const std::string& node);

// NCCL's constants for the GPU, with what the profiles (null: none) replace.
collective::Parameters collective_parameters(const topology::Gpu& gpu, const LocalCollectives* local, const NetworkCollectives* network);

}  // namespace stepcast::calibration
