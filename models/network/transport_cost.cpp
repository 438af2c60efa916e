#include "models/network/transport_cost.hpp"

#include <algorithm>

namespace stepcast::network {

double Sockets::rate(std::int64_t connections) const {
  const std::int64_t streams = connections * std::max<std::int64_t>(1, threads * sockets_per_thread);
  const std::int64_t workers = threads == 0 ? 1 : connections * threads;
  return std::min(static_cast<double>(streams) * connection_rate, static_cast<double>(workers) * core_rate);
}

Duration Ahead::copy(Bytes bytes) const { return copy_rate > 0.0 ? Duration::from_seconds(bytes.si() / copy_rate) : Duration{}; }

double TransportCost::message_s(double bytes, double copy_rate) const {
  return per_message.seconds() + static_cast<double>(copies) * std::min(bytes, chunk.si()) / copy_rate;
}

double TransportCost::half_size(double latency_s, double rate, double copy_rate) const {
  return (latency_s + per_message.seconds()) * rate + static_cast<double>(copies) * chunk.si() * rate / copy_rate;
}

}  // namespace stepcast::network
