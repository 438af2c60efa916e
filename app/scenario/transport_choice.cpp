#include "app/scenario/transport_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "topologies/catalogue_keys.hpp"

namespace stepcast::app {
namespace {

using calibration::TransportProfile;
using scenario::TransportKind;

std::string name_of(topology::Transport kind) {
  for (const auto& [word, value] : topology::enum_words(topology::Transport{}))
    if (value == kind) return word;
  return "?";
}

topology::Transport spoken(TransportKind kind, topology::Transport own) {
  switch (kind) {
    case TransportKind::kOwn: return own;
    case TransportKind::kInfiniBand: return topology::Transport::kInfiniBand;
    case TransportKind::kRoce: return topology::Transport::kRoce;
    case TransportKind::kTcp: return topology::Transport::kTcp;
    case TransportKind::kUec: return topology::Transport::kUec;
  }
  return own;
}

// Of a network by its place in Fabric::networks.
scenario::Transport options_of(const scenario::Cluster& cluster, std::size_t network) {
  if (network > 0) return cluster.networks[network - 1].fabric.transport;
  return cluster.fabric ? cluster.fabric->transport : scenario::Transport{};
}

void check(const scenario::Loaded& loaded, std::size_t network, topology::Transport kind, double least_mtu) {
  const scenario::Transport options = options_of(loaded.scenario.cluster, network);
  const std::string at = network == 0 ? "cluster.fabric.transport." : fmt::format("cluster.networks[{}].fabric.transport.", network - 1);
  Diagnostics problems;
  const auto refuse = [&](const char* key, std::string problem, std::string expected, std::string got) {
    problems.add(loaded.where.error(at + key, std::move(problem), std::move(expected), std::move(got)));
  };
  if (kind != topology::Transport::kTcp) {
    const std::string speaks = fmt::format("the cards speak {}", name_of(kind));
    if (options.socket_threads) refuse("socket_threads", "only tcp has sockets", "kind: tcp, or no such key", speaks);
    if (options.sockets_per_thread) refuse("sockets_per_thread", "only tcp has sockets", "kind: tcp, or no such key", speaks);
    if (options.socket_cores) refuse("socket_cores", "only tcp has sockets", "kind: tcp, or no such key", speaks);
  } else if (options.gpudirect.value_or(false)) {
    refuse("gpudirect", "sockets read and write host memory", "false, or another kind", "true");
  }
  constexpr std::int64_t kMostSockets = 64;  // NCCL's own limit for the product
  const std::int64_t sockets = std::max<std::int64_t>(1, options.socket_threads.value_or(1)) * options.sockets_per_thread.value_or(1);
  if (sockets > kMostSockets) refuse("sockets_per_thread", "too many sockets of one connection", fmt::format("at most {} sockets (threads x sockets)", kMostSockets), std::to_string(sockets));
  if (options.mtu && options.mtu->si() < least_mtu) refuse("mtu", "no room for the headers", fmt::format("at least {:.0f} B", least_mtu), fmt::format("{} B", options.mtu->count()));
  problems.throw_if_any();
}

void apply(const HardwareShelf& shelf, const scenario::Loaded& loaded, std::size_t network, const topology::Node& node, topology::NetworkCards& cards) {
  const scenario::Transport options = options_of(loaded.scenario.cluster, network);
  topology::Nic& nic = cards.nic;
  const topology::Transport own = nic.transport;
  nic.transport = spoken(options.kind, own);
  const TransportProfile& profile = calibration::transport_profile(shelf.transports, name_of(nic.transport));
  network::Framing framing = calibration::framing_of(profile);
  check(loaded, network, nic.transport, framing.inside_bytes + 1.0);
  const double usual = framing.efficiency();
  if (options.mtu) framing.mtu_bytes = options.mtu->si();
  if (nic.transport == own) {
    nic.efficiency.value = std::min(1.0, nic.efficiency.value * framing.efficiency() / usual);
  } else {
    nic.efficiency = {framing.efficiency() * profile.payload_share.value, profile.payload_share.basis, profile.payload_share.source};
    nic.latency = profile.latency;
  }
  cards.gpudirect = options.gpudirect.value_or(true);
  if (nic.transport != topology::Transport::kTcp || !profile.sockets) return;
  const std::int64_t cores = std::min(options.socket_cores.value_or(node.cpu_cores.value), node.cpu_cores.value);
  cards.socket_rate = profile.sockets->core_rate.value * static_cast<double>(cores);
}

network::TransportCost cost_of(const HardwareShelf& shelf, const scenario::Transport& options, const topology::Node& node, const topology::NetworkCards& cards) {
  const TransportProfile& profile = calibration::transport_profile(shelf.transports, name_of(cards.nic.transport));
  network::TransportCost cost{.per_message = profile.per_message.value, .chunk = profile.chunk.value, .copies = 0, .sockets = {}};
  const bool copied = !node.peer_to_peer || !cards.gpudirect || cards.nic.transport == topology::Transport::kTcp;
  if (copied) cost.copies = 2;  // out of one GPU, into the other
  if (options.congestion == scenario::CongestionModel::kModelled && profile.congestion) {
    cost.congestion = {.loss = profile.congestion->loss.value, .per_doubling = profile.congestion->per_doubling.value};
  }
  if (profile.ahead) {
    cost.ahead = {.eager = profile.ahead->eager.value, .buffered = profile.ahead->buffered.value, .copy_rate = profile.ahead->copy_rate.value.si()};
  }
  cost.ahead.eager = options.eager.value_or(cost.ahead.eager);
  cost.ahead.buffered = options.buffered.value_or(cost.ahead.buffered);
  if (cards.socket_rate) {
    const calibration::SocketProfile& sockets = *profile.sockets;
    cost.sockets = network::Sockets{.core_rate = sockets.core_rate.value.si(),
                                    .connection_rate = sockets.connection_rate.value.si(),
                                    .threads = options.socket_threads.value_or(0),
                                    .sockets_per_thread = options.sockets_per_thread.value_or(1),
                                    .channels = sockets.channels.value};
  }
  return cost;
}

}  // namespace

void apply_transport(const HardwareShelf& shelf, const scenario::Loaded& loaded, topology::ClusterHardware& hardware) {
  topology::NetworkCards own = hardware.cards(0);
  apply(shelf, loaded, 0, hardware.node, own);
  hardware.nic = own.nic;
  hardware.gpudirect = own.gpudirect;
  hardware.socket_rate = own.socket_rate;
  for (std::size_t i = 0; i < hardware.side_networks.size(); ++i) apply(shelf, loaded, i + 1, hardware.node, hardware.side_networks[i]);
}

network::TransportCosts pick_transports(const HardwareShelf& shelf, const scenario::Loaded& loaded, const topology::ClusterHardware& hardware) {
  const TransportProfile& shared = calibration::transport_profile(shelf.transports, "shared-memory");
  network::TransportCosts costs;
  costs.network = cost_of(shelf, options_of(loaded.scenario.cluster, 0), hardware.node, hardware.cards(0));
  for (std::size_t i = 0; i < hardware.side_networks.size(); ++i)
    costs.side_networks.push_back(cost_of(shelf, options_of(loaded.scenario.cluster, i + 1), hardware.node, hardware.side_networks[i]));
  costs.shared_memory = {.per_message = shared.per_message.value, .chunk = shared.chunk.value, .copies = 1, .sockets = {}};
  return costs;
}

std::string transport_text(const network::TransportCosts& all, const scenario::Cluster& cluster, const topology::ClusterHardware& hardware, std::uint32_t network) {
  std::vector<std::string> parts{name_of(hardware.cards(network).nic.transport)};
  const scenario::Transport options = options_of(cluster, network);
  const network::TransportCost& costs = all.of(network);
  if (options.mtu) parts.push_back(fmt::format("MTU {} B", options.mtu->count()));
  if (options.eager) parts.push_back(fmt::format("messages up to {} B sent before they are asked for", options.eager->count()));
  if (options.buffered) parts.push_back(fmt::format("senders up to {} B ahead", options.buffered->count()));
  if (costs.copies > 0) parts.emplace_back("copied through host memory at both ends");
  if (const auto& sockets = costs.sockets) {
    parts.push_back(fmt::format("at most {:.3g} GB/s each way at a GPU that enters a host ({})", sockets->rate(sockets->channels) / 1e9,
                                sockets->threads == 0 ? std::string{"one progress thread"}
                                                      : fmt::format("{} connections of {} threads x {} sockets", sockets->channels, sockets->threads, sockets->sockets_per_thread)));
  }
  if (const network::Congestion& c = costs.congestion; !c.ideal()) {
    parts.push_back(fmt::format("{:.1f} % of a link lost where two senders meet{}", 100.0 * c.loss,
                                c.per_doubling > 0.0 ? fmt::format(", {:.1f} % more each time that they double", 100.0 * c.per_doubling) : ""));
  }
  return join(parts, ", ");
}

Duration step_latency(const HardwareShelf& shelf, const topology::Nic& nic) {
  if (nic.transport != topology::Transport::kTcp) return {};
  const TransportProfile& tcp = calibration::transport_profile(shelf.transports, "tcp");
  const TransportProfile& infiniband = calibration::transport_profile(shelf.transports, "infiniband");
  return std::max(Duration{}, nic.latency.value + tcp.per_message.value - infiniband.latency.value - infiniband.per_message.value);
}

}  // namespace stepcast::app
