// Which algorithms and protocols NCCL has for a collective on a layout (cost.hpp).
#include "models/collective/cost.hpp"

namespace stepcast::collective {

using plan::CollectiveKind;

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing: return "ring";
    case Algorithm::kTree: return "tree";
    case Algorithm::kNvls: return "nvls";
    case Algorithm::kNvlsTree: return "nvls-tree";
    case Algorithm::kCollNet: return "collnet";
    case Algorithm::kPat: return "pat";
    case Algorithm::kPairwise: return "pairwise";
    case Algorithm::kShift: return "shift";
  }
  return "";
}

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl: return "LL";
    case Protocol::kLl128: return "LL128";
    case Protocol::kSimple: return "Simple";
  }
  return "";
}

bool can_make(Algorithm algorithm, CollectiveKind kind, const Layout& layout, const Parameters& parameters) {
  const bool reduces = kind == CollectiveKind::kAllReduce;
  const bool many = layout.hosts > 1;
  // NVLink SHARP wants a switch, and more GPUs than two to pay.
  const bool nvls = parameters.nvls && layout.nvswitch && layout.even() && layout.local() > 2;
  switch (algorithm) {
    case Algorithm::kRing: return kind != CollectiveKind::kAllToAll && kind != CollectiveKind::kSendReceive;
    case Algorithm::kTree: return reduces && many;
    case Algorithm::kNvls: return reduces && nvls && !many;
    case Algorithm::kNvlsTree: return reduces && nvls && many;
    case Algorithm::kCollNet: return reduces && parameters.collnet && many && layout.even();
    case Algorithm::kPat:
      return (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter) && many && layout.ranks == layout.hosts;
    case Algorithm::kPairwise: return kind == CollectiveKind::kAllToAll;
    case Algorithm::kShift: return kind == CollectiveKind::kSendReceive;
  }
  return false;
}

bool has_protocol(Algorithm algorithm, Protocol protocol, const Layout& layout) {
  if (protocol == Protocol::kSimple) return true;
  switch (algorithm) {
    case Algorithm::kRing:
    case Algorithm::kTree: return protocol == Protocol::kLl || layout.nvlink;  // LL128 needs 128-byte atomic stores
    case Algorithm::kPairwise:
    case Algorithm::kShift: return protocol == Protocol::kLl;
    default: return false;
  }
}

std::vector<Algorithm> candidates(CollectiveKind kind, const Layout& layout, const Parameters& parameters,
                                  std::optional<Algorithm> forced) {
  if (forced && can_make(*forced, kind, layout, parameters)) return {*forced};
  std::vector<Algorithm> able;
  for (std::size_t a = 0; a < kAlgorithmCount; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (can_make(algorithm, kind, layout, parameters)) able.push_back(algorithm);
  }
  return able;
}

}  // namespace stepcast::collective
