#include "models/network/path_policy.hpp"

#include <algorithm>

#include "models/network/flow_header.hpp"
#include "sim/base/check.hpp"

namespace stepcast::network {

std::size_t least_loaded(std::span<const std::int64_t> loads, std::uint64_t tie) {
  SIM_CHECK(!loads.empty());
  const std::int64_t least = *std::min_element(loads.begin(), loads.end());
  auto left = tie % static_cast<std::uint64_t>(std::count(loads.begin(), loads.end(), least));
  std::size_t at = 0;
  while (loads[at] != least || left-- > 0) ++at;
  return at;
}

std::vector<double> qp_shares(QpMode mode, std::size_t qps, std::uint64_t messages) {
  SIM_CHECK(qps > 0 && messages > 0, qps, messages);
  std::vector<double> shares(qps, 1.0 / static_cast<double>(qps));
  if (mode == QpMode::kSplit) return shares;
  for (std::size_t j = 0; j < qps; ++j) {
    const std::uint64_t own = messages / qps + (j < messages % qps ? 1 : 0);
    shares[j] = static_cast<double>(own) / static_cast<double>(messages);
  }
  return shares;
}

std::uint16_t source_port(SourcePort rule, std::uint32_t local_qp, std::uint32_t remote_qp, std::uint64_t draw) {
  switch (rule) {
    case SourcePort::kFlowLabel: return source_port_of_label(static_cast<std::uint32_t>(draw & 0xFFFFF));
    case SourcePort::kQp: return source_port_of_label(flow_label_of_qps(local_qp, remote_qp));
    case SourcePort::kRandom: return static_cast<std::uint16_t>(kFirstSourcePort | (draw & 0x3FFF));
    case SourcePort::kFixed: return kFirstSourcePort;
  }
  SIM_CHECK(false, static_cast<int>(rule));
  return kFirstSourcePort;
}

}  // namespace stepcast::network
