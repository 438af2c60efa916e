// sim/run/traffic.hpp — what a collective or a message puts on the links: edges between GPUs routed
// over the fabric and added up by bundle, or by single link where paths are chosen (link_paths.hpp).
// Also the folded link space, in which all communicators of a class move as one.
//
// Model    Flow f (one communicator, or one message) at rate x_f loads bundle b with a_fb x_f, where
//          a_fb is the sum over its edges of share * path share.                                (1)
//          Folding: if nothing tells the members of a class c apart, all have one rate x_c, and the
//          load of bundle b is x_c sum_{f in c} a_fb. Bundles with the same capacity and the same
//          sums for every class are one link.                                                   (2)
//          A class brings to a link the sources of all its members (models/network/congestion.hpp); bundles that
//          differ in them are not one link.                                                    (3)
//          Members count as alike when each meets the same multiset of (folded link, a_fb) and makes
//          its calls alike. Classes that never load the network (calls.hpp) are left out.
// Cost     O(edges * hops), plus a sort, for the whole cluster
//          Chosen paths tell flows apart by themselves; paths that follow the load, and links that change
//          during the step, are never folded.
// Ignores  what link_paths.hpp ignores
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/collective/cost.hpp"
#include "models/collective/edges.hpp"
#include "sim/flow/solver.hpp"
#include "sim/plan/plan.hpp"
#include "sim/run/compiled_program.hpp"
#include "sim/run/groups.hpp"
#include "sim/run/host_work.hpp"
#include "sim/run/link_paths.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::run {

// Whose connections the edges are: numbers them apart from those of others, and says which network takes them.
struct TrafficOwner {
  std::uint64_t number = 0;
  topology::Router::Axis axis = std::nullopt;
};
TrafficOwner owner_of_collective(const GroupTable& groups, std::uint32_t communicator, collective::Algorithm algorithm);
TrafficOwner owner_of_messages(const GroupTable& groups, std::int32_t from_stage, std::int32_t to_stage);

// Adds routed edges up by slot (1). Keeps its scratch space between calls.
class UseBuilder {
 public:
  UseBuilder(const topology::Router& router, LinkPaths& paths);
  // Sorted by slot. `messages`: of the busiest edge's transfer, 0: many.
  // `at_once`: of its edges, how many a sender has under way (sources_at_once).
  // Paths that follow the load are left placed: LinkPaths::take_placed or forget_placed comes next.
  std::vector<BundleUse> build(std::span<const collective::Edge> edges, TrafficOwner owner, std::uint64_t messages = 0, double at_once = 1.0);
  // What work with the memory of a GPU's host puts on the links (host_work.hpp). Sorted by slot.
  std::vector<BundleUse> build_host(std::uint32_t gpu, HostWork work);
  // Only asks what build() would give.
  std::vector<BundleUse> ask(std::span<const collective::Edge> edges, TrafficOwner owner);

 private:
  void add(std::uint32_t slot, double load, double sources);
  void add_by_link(const collective::Edge& edge, TrafficOwner owner, std::uint64_t messages, double at_once);

  const topology::Router& router_;
  LinkPaths& paths_;
  std::vector<double> load_;           // by slot
  std::vector<double> sources_;        // by slot
  std::vector<bool> meets_;            // by slot: a network link, at which sources meet
  std::vector<std::uint32_t> touched_;
  std::unordered_map<std::uint32_t, std::uint32_t> flows_at_port_;  // of this build; lookup only
  std::vector<BundleUse> scratch_;
  topology::Path path_;                // scratch
};

// All-to-all goes in rounds: a rank sends to one of the others at a time. Other algorithms use all edges at once.
double sources_at_once(collective::Algorithm algorithm, std::size_t ranks);

// [B/s] the fluid moves at when nothing else uses its links; infinite without uses.
double rate_alone(std::span<const BundleUse> uses, const LinkPaths& paths);

// Rates of a collective's edges on idle links: all of them, those inside hosts (or NVLink domains of several), and, where the algorithm's steps follow
// each other, those between hosts.
collective::IdleRate idle_rate(std::vector<collective::Edge> edges, const topology::Fabric& fabric, collective::Algorithm algorithm,
                               TrafficOwner owner, UseBuilder& uses, const LinkPaths& paths);

// A flow class: communicators of one group in one stage under one algorithm, the messages from
// one stage to another, or one kind of work of a stage's workers with their hosts' memory.
struct FlowClass {
  enum class Kind : std::uint8_t { kCollective, kMessage, kHost } kind = Kind::kCollective;
  plan::GroupId group;
  Way way;
  std::int32_t stage = 0;       // collective: of the first member; message: of the sender
  std::int32_t to_stage = 0;    // message
  HostWork work = HostWork::kToDevice;  // host
  friend auto operator<=>(const FlowClass&, const FlowClass&) = default;
};

struct FoldedLinks {
  std::vector<std::uint32_t> bundle;                   // a representative slot of each folded link
  std::map<FlowClass, std::vector<BundleUse>> uses;    // BundleUse::bundle = index of a folded link
};

// Empty, with the reason, when some class's members differ; where `unlike` asks for it, links nevertheless: a class then moves at the
// pace of its slowest member.
struct FoldAttempt {
  std::optional<FoldedLinks> links;
  std::string reason;
};
class CallTable;
FoldAttempt fold_links(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled,
                       const GroupTable& groups, CallTable& calls, LinkPaths& paths, bool unlike = false);

}  // namespace stepcast::run
