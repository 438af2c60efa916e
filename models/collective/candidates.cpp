// Which algorithms and protocols NCCL has for a collective on a layout (cost.hpp).
#include "models/collective/cost.hpp"
#include "models/collective/nccl_releases.hpp"

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
    case Algorithm::kPxn: return "pxn";
    case Algorithm::kPxnShift: return "pxn-shift";
    case Algorithm::kHierarchical: return "hierarchical";
    case Algorithm::kTwoStep: return "two-step";
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
  const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
  const bool many = layout.hosts > 1;
  // PXN goes by way of another GPU of the host, over NVLink.
  const bool relays = many && layout.nvlink && layout.ranks > layout.hosts;
  // NVLink SHARP wants a switch, and more GPUs than two to pay.
  const bool nvls = parameters.nvls && layout.nvswitch && layout.even() && layout.local() > 2;
  switch (algorithm) {
    case Algorithm::kRing: return kind != CollectiveKind::kAllToAll && kind != CollectiveKind::kSendReceive;
    case Algorithm::kTree: return reduces && many;
    case Algorithm::kNvls: return (reduces || gathers) && nvls && !many;
    case Algorithm::kNvlsTree: return reduces && nvls && many;
    case Algorithm::kCollNet: return reduces && parameters.collnet && many && layout.even();
    case Algorithm::kPat: return gathers && many && layout.ranks == layout.hosts;
    case Algorithm::kPairwise: return kind == CollectiveKind::kAllToAll;
    case Algorithm::kShift: return kind == CollectiveKind::kSendReceive;
    case Algorithm::kPxn: return kind == CollectiveKind::kAllToAll && relays;
    case Algorithm::kPxnShift: return kind == CollectiveKind::kSendReceive && relays;
    case Algorithm::kHierarchical: return (reduces || gathers) && relays && layout.even();
    case Algorithm::kTwoStep: return kind == CollectiveKind::kAllToAll && relays && layout.even();
  }
  return false;
}

bool has_steps(Algorithm algorithm) { return algorithm == Algorithm::kHierarchical || algorithm == Algorithm::kTwoStep; }

bool has_protocol(Algorithm algorithm, Protocol protocol, const Layout& layout) {
  if (protocol == Protocol::kSimple) return true;
  switch (algorithm) {
    case Algorithm::kRing:
    case Algorithm::kTree: return protocol == Protocol::kLl || layout.nvlink;  // LL128 needs 128-byte atomic stores
    case Algorithm::kPairwise:
    case Algorithm::kShift:
    case Algorithm::kPxn:
    case Algorithm::kPxnShift: return protocol == Protocol::kLl;
    default: return false;
  }
}

namespace {

// What NCCL takes of its own accord: not the levels, which are other libraries'; PXN wherever it can; NVLS of gathered and
// scattered buffers only where the user has registered them.
bool is_usual(Algorithm algorithm, CollectiveKind kind, const Layout& layout, const Parameters& parameters, std::optional<std::int32_t> nccl) {
  const auto has = [&](Algorithm relayed) { return has_algorithm(nccl, relayed) && can_make(relayed, kind, layout, parameters); };
  if (algorithm == Algorithm::kPairwise) return !has(Algorithm::kPxn);
  if (algorithm == Algorithm::kShift) return !has(Algorithm::kPxnShift);
  if (algorithm == Algorithm::kNvls && kind != CollectiveKind::kAllReduce) return false;
  return !has_steps(algorithm) && has_algorithm(nccl, algorithm);
}

}  // namespace

Algorithm counterpart(Algorithm algorithm, CollectiveKind kind) {
  if (kind == CollectiveKind::kAllToAll && algorithm == Algorithm::kHierarchical) return Algorithm::kTwoStep;
  if (kind == CollectiveKind::kSendReceive && algorithm == Algorithm::kPairwise) return Algorithm::kShift;
  if (kind == CollectiveKind::kSendReceive && algorithm == Algorithm::kPxn) return Algorithm::kPxnShift;
  return algorithm;
}

std::vector<Algorithm> candidates(CollectiveKind kind, const Layout& layout, const Parameters& parameters,
                                  const Forced& forced) {
  if (forced.algorithm) {
    const Algorithm named = counterpart(*forced.algorithm, kind);
    if (can_make(named, kind, layout, parameters)) return {named};
  }
  std::vector<Algorithm> able;
  for (std::size_t a = 0; a < kAlgorithmCount; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    if (can_make(algorithm, kind, layout, parameters) && is_usual(algorithm, kind, layout, parameters, forced.nccl)) able.push_back(algorithm);
  }
  return able;
}

}  // namespace stepcast::collective
