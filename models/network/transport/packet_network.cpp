#include "models/network/transport/packet_network.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace stepcast::network {
namespace {

enum Event : std::uint32_t { kSent, kArrived, kPause, kResume };

}  // namespace

PacketNetwork::PacketNetwork(engine::Engine& engine, PacketListener& listener, const Traffic& traffic, const SwitchModel& model,
                             std::uint64_t seed)
    : engine_{engine}, listener_{listener}, model_{model}, random_{seed, "packet network"} {
  for (const Wire& wire : traffic.wires) {
    Port port;
    port.ps_a_byte = 1e12 / wire.bytes_per_s;
    port.latency = wire.latency;
    ports_.push_back(port);
  }
  for (const Route& route : traffic.routes) {
    first_hop_.push_back(static_cast<std::uint32_t>(hops_.size()));
    hops_.insert(hops_.end(), route.begin(), route.end());
    hops_.push_back(kNone);
    const std::uint32_t host = traffic.wires[route.front()].from;
    ports_[route.front()].host = host;
    if (host >= host_wire_.size()) host_wire_.resize(host + 1, kNone);
    SIM_CHECK(host_wire_[host] == kNone || host_wire_[host] == route.front(), host, route.front());
    host_wire_[host] = route.front();
  }
}

void PacketNetwork::send_control(const Packet& packet) {
  const std::uint32_t cell = make_cell(packet);
  const std::uint32_t wire = hops_[cells_[cell].at];
  push(ports_[wire].control, cell);
  serve(wire);
}

void PacketNetwork::wake(std::uint32_t host) { serve(host_wire_[host]); }

void PacketNetwork::on_event(engine::Engine&, std::uint32_t kind, std::uint64_t arg) {
  const auto index = static_cast<std::uint32_t>(arg);
  switch (kind) {
    case kSent: return sent(index);
    case kArrived: return arrived(index);
    case kPause: ports_[index].paused = true; return;
    default:
      ports_[index].paused = false;
      serve(index);
  }
}

// The wire takes its next packet in hand, if it may and there is one.
void PacketNetwork::serve(std::uint32_t wire) {
  Port& port = ports_[wire];
  if (port.sending || port.paused) return;
  std::uint32_t index = kNone;
  if (port.control.first != kNone) {
    index = port.control.first;
    remove(port.control, index);
  } else if (port.host != kNone) {
    const std::optional<Packet> packet = listener_.next_packet(port.host);
    if (!packet) return;
    index = make_cell(*packet);
    cells_[index].packet.sent = engine_.now();
  } else if (port.data.first != kNone) {
    index = port.data.first;
    remove(port.data, index);
    if (model_.kind == SwitchModel::Kind::kTrimming && marks(port.data.bytes)) cells_[index].packet.marked = true;
  } else {
    return;
  }
  send(wire, index);
}

void PacketNetwork::send(std::uint32_t wire, std::uint32_t index) {
  Port& port = ports_[wire];
  Cell& cell = cells_[index];
  port.sending = true;
  port.sending_bytes = cell.packet.bytes;
  port.sending_from = cell.ingress;
  cell.ingress = wire;
  ++cell.at;
  const bool last = hops_[cell.at] == kNone;
  const std::uint32_t ahead = last ? cell.packet.bytes : std::min(cell.packet.bytes, model_.packet_bytes);
  const auto time = [&port](std::uint32_t bytes) {
    return Duration::picoseconds(static_cast<std::int64_t>(std::ceil(bytes * port.ps_a_byte)));
  };
  engine_.after(time(cell.packet.bytes), engine::Phase::kCompletion, *this, kSent, wire);
  engine_.after(time(ahead) + port.latency, engine::Phase::kCompletion, *this, kArrived, index);
}

void PacketNetwork::sent(std::uint32_t wire) {
  Port& port = ports_[wire];
  port.sending = false;
  if (port.sending_from != kNone) release(port.sending_from, port.sending_bytes);
  serve(wire);
}

void PacketNetwork::arrived(std::uint32_t index) {
  Cell& cell = cells_[index];
  const std::uint32_t wire = hops_[cell.at];
  if (wire == kNone) {
    const Packet packet = cell.packet;
    free_cell(index);
    listener_.on_packet(packet);
    return;
  }
  if (model_.kind == SwitchModel::Kind::kLossless) {
    hold(cell.ingress, cell.packet.bytes);
    push(ports_[wire].data, index);
  } else {
    cell.ingress = kNone;
    enqueue_trimming(wire, index);
  }
  serve(wire);
}

void PacketNetwork::enqueue_trimming(std::uint32_t wire, std::uint32_t cell) {
  Port& port = ports_[wire];
  if (cells_[cell].packet.kind != PacketKind::kData || cells_[cell].packet.trimmed) return push(port.control, cell);
  if (port.data.first != kNone && port.data.bytes + cells_[cell].packet.bytes > model_.queue_bytes) {
    std::uint32_t cut = cell;
    if (random_.uniform() < 0.5) {
      cut = port.data.last;
      remove(port.data, cut);
      push(port.data, cell);
    }
    cells_[cut].packet.trimmed = true;
    cells_[cut].packet.bytes = cells_[cut].packet.header_bytes;
    return push(port.control, cut);
  }
  push(port.data, cell);
}

void PacketNetwork::hold(std::uint32_t wire, double bytes) {
  Port& port = ports_[wire];
  port.held_bytes += bytes;
  if (port.pausing || port.held_bytes <= model_.xoff_bytes) return;
  port.pausing = true;
  engine_.after(port.latency, engine::Phase::kCompletion, *this, kPause, wire);
}

void PacketNetwork::release(std::uint32_t wire, double bytes) {
  Port& port = ports_[wire];
  if (model_.kind != SwitchModel::Kind::kLossless) return;
  port.held_bytes -= bytes;
  if (!port.pausing || port.held_bytes >= model_.xon_bytes) return;
  port.pausing = false;
  engine_.after(port.latency, engine::Phase::kCompletion, *this, kResume, wire);
}

bool PacketNetwork::marks(double queue_bytes) {
  if (queue_bytes > model_.ecn_high_bytes) return true;
  if (queue_bytes <= model_.ecn_low_bytes) return false;
  return random_.uniform() * (model_.ecn_high_bytes - model_.ecn_low_bytes) < queue_bytes - model_.ecn_low_bytes;
}

std::uint32_t PacketNetwork::make_cell(const Packet& packet) {
  std::uint32_t cell = free_cells_;
  if (cell == kNone) {
    cell = static_cast<std::uint32_t>(cells_.size());
    cells_.emplace_back();
  } else {
    free_cells_ = cells_[cell].next;
  }
  cells_[cell] = {.packet = packet, .at = first_hop_[packet.route]};
  return cell;
}

void PacketNetwork::free_cell(std::uint32_t cell) {
  cells_[cell].next = free_cells_;
  free_cells_ = cell;
}

void PacketNetwork::push(Queue& queue, std::uint32_t cell) {
  cells_[cell].next = kNone;
  cells_[cell].previous = queue.last;
  (queue.last == kNone ? queue.first : cells_[queue.last].next) = cell;
  queue.last = cell;
  queue.bytes += cells_[cell].packet.bytes;
}

void PacketNetwork::remove(Queue& queue, std::uint32_t cell) {
  const Cell& gone = cells_[cell];
  (gone.previous == kNone ? queue.first : cells_[gone.previous].next) = gone.next;
  (gone.next == kNone ? queue.last : cells_[gone.next].previous) = gone.previous;
  queue.bytes -= gone.packet.bytes;
}

}  // namespace stepcast::network
