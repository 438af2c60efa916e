#include "sim/run/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "sim/base/hash.hpp"
#include "sim/run/calls.hpp"

namespace stepcast::run {
namespace {

// Coefficients are sums of a few fractions; equal ones agree far better than this.
std::int64_t quantised(double coefficient) { return std::llround(coefficient * 1e9); }

// Stages whose programs exchange messages, in both directions.
std::set<std::pair<std::int32_t, std::int32_t>> message_pairs(const plan::Plan& plan) {
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t stage = 0; stage < plan.program_of_stage.size(); ++stage) {
    for (const plan::Instruction& i : plan.programs[plan.program_of_stage[stage].index()].instructions) {
      if (const auto* send = std::get_if<plan::Send>(&i.body)) {
        pairs.emplace(static_cast<std::int32_t>(stage), send->peer_stage);
      }
    }
  }
  return pairs;
}

// Sites that a communicator of `group` whose members run `program` calls.
std::vector<std::uint32_t> sites_called(const CompiledPlan& compiled, const CompiledProgram& program, plan::GroupId group) {
  std::set<std::uint32_t> sites;
  for (const CompiledStream& stream : program.streams) {
    for (const CompiledStep& step : stream.steps) {
      if (step.kind == StepKind::kCollective && compiled.sites[step.site].group == group) sites.insert(step.site);
    }
  }
  return {sites.begin(), sites.end()};
}

struct Member {
  std::uint32_t flow_class = 0;
  std::uint64_t calls = 0;       // fingerprint of how it makes its calls
  std::vector<BundleUse> uses;
};

// Somewhere more sources leave less of a link.
bool counts_sources(const Machine& machine) {
  bool counts = !machine.transports.network.congestion.ideal();
  for (const network::TransportCost& cost : machine.transports.side_networks) counts = counts || !cost.congestion.ideal();
  return counts;
}

class Folder {
 public:
  Folder(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled, const GroupTable& groups,
         CallTable& calls, LinkPaths& paths)
      : plan_{plan}, compiled_{compiled}, groups_{groups}, calls_{calls}, paths_{paths},
        machine_{machine}, counts_sources_{counts_sources(machine)}, fabric_{machine.fabric}, builder_{machine.router, paths} {}

  FoldAttempt run(bool unlike) {
    collect_collectives();
    collect_messages();
    collect_host_work();
    sum_by_class();
    name_links();
    if (network::follows_load(paths_.rules().policy)) return {std::nullopt, "paths follow the load"};
    if (paths_.rules().changes_later()) return {std::nullopt, "links change during the step"};
    if (mixes_gpus()) return {std::nullopt, "GPUs of several kinds do the same work"};
    const std::optional<std::string> difference = find_difference();
    if (difference && !unlike) return {std::nullopt, *difference};
    return {make_links(), difference.value_or("")};
  }

 private:
  // Workers of one stage on GPUs of two kinds.
  bool mixes_gpus() const {
    if (machine_.gpu_kinds() == 1) return false;
    std::vector<std::optional<std::size_t>> of_stage(plan_.program_of_stage.size());
    for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(plan_.world_size()); ++rank) {
      auto& kind = of_stage[static_cast<std::size_t>(plan_.coordinates(RankId{rank})[plan::Axis::kPipeline])];
      if (!kind) kind = machine_.gpu_kind(rank);
      if (*kind != machine_.gpu_kind(rank)) return true;
    }
    return false;
  }

  void add_member(const FlowClass& flow_class, std::uint64_t calls, std::span<const collective::Edge> edges, TrafficOwner owner,
                  double at_once = 1.0) {
    const auto [it, is_new] = class_index_.try_emplace(flow_class, static_cast<std::uint32_t>(classes_.size()));
    if (is_new) classes_.push_back(flow_class);
    members_.push_back({it->second, calls, builder_.build(edges, owner, 0, at_once)});
    const LinkPaths::Placed placed = paths_.take_placed();
    if (network::follows_load(paths_.rules().policy)) paths_.release(placed);  // plans stay reserved
  }

  void collect_collectives() {
    std::map<std::pair<plan::GroupId, std::int32_t>, std::vector<std::uint32_t>> sites;
    for (std::uint32_t index = 0; index < groups_.size(); ++index) {
      const Communicator& communicator = groups_.communicator(index);
      if (communicator.members.size() < 2) continue;
      const auto [it, is_new] = sites.try_emplace({communicator.group, communicator.stage});
      if (is_new) {
        const plan::ProgramId program = plan_.program_of_stage[static_cast<std::size_t>(communicator.stage)];
        it->second = sites_called(compiled_, compiled_.programs[program.index()], communicator.group);
      }
      Fingerprint calls;
      std::set<Way> loading;
      for (const std::uint32_t site : it->second) {
        const Call& call = calls_.call(index, site);
        calls.add(call.choice.latency.count());
        calls.add(call.alone.count());
        if (call.loads_network) loading.insert(call.way);
      }
      for (const Way& way : loading) {
        add_member({.group = communicator.group, .way = way, .stage = communicator.stage}, calls.value(),
                   groups_.edges(index, way), owner_of_collective(groups_, index, way.algorithm),
                   sources_at_once(way.algorithm, communicator.members.size()));
      }
    }
  }

  void collect_messages() {
    for (const auto& [from, to] : message_pairs(plan_)) {
      for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(plan_.world_size()); ++r) {
        const RankId rank{r};
        if (plan_.coordinates(rank)[plan::Axis::kPipeline] != from) continue;
        add_member({.kind = FlowClass::Kind::kMessage, .stage = from, .to_stage = to}, 0,
                   groups_.message_edges(rank, plan_.peer(rank, to)), owner_of_messages(groups_, from, to));
      }
    }
  }

  void collect_host_work() {
    for (std::size_t stage = 0; stage < plan_.program_of_stage.size(); ++stage) {
      std::set<HostWork> works;
      for (const plan::Instruction& i : plan_.programs[plan_.program_of_stage[stage].index()].instructions)
        if (const auto work = host_work(i.body)) works.insert(*work);
      if (works.empty()) continue;
      for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(plan_.world_size()); ++r) {
        if (plan_.coordinates(RankId{r})[plan::Axis::kPipeline] != static_cast<std::int32_t>(stage)) continue;
        for (const HostWork work : works) {
          const FlowClass flow_class{.kind = FlowClass::Kind::kHost, .stage = static_cast<std::int32_t>(stage), .work = work};
          const auto [it, is_new] = class_index_.try_emplace(flow_class, static_cast<std::uint32_t>(classes_.size()));
          if (is_new) classes_.push_back(flow_class);
          members_.push_back({it->second, 0, builder_.build_host(r, work)});
        }
      }
    }
  }

  struct Load {
    std::uint32_t bundle = 0;
    std::uint32_t flow_class = 0;
    double coefficient = 0.0;
    double sources = 0.0;
  };

  void sum_by_class() {
    std::vector<double> sum(paths_.slots().size(), 0.0);
    std::vector<double> sources(paths_.slots().size(), 0.0);
    std::vector<std::uint32_t> touched;
    std::vector<std::vector<std::uint32_t>> of_class(classes_.size());
    for (std::uint32_t m = 0; m < members_.size(); ++m) of_class[members_[m].flow_class].push_back(m);
    for (std::uint32_t c = 0; c < classes_.size(); ++c) {
      for (const std::uint32_t m : of_class[c]) {
        for (const BundleUse& use : members_[m].uses) {
          if (sum[use.bundle] == 0.0) touched.push_back(use.bundle);
          sum[use.bundle] += use.coefficient;
          sources[use.bundle] += use.sources;
        }
      }
      for (const std::uint32_t bundle : touched) {
        loads_.push_back({bundle, c, sum[bundle], sources[bundle]});
        sum[bundle] = sources[bundle] = 0.0;
      }
      touched.clear();
    }
    std::sort(loads_.begin(), loads_.end(), [](const Load& a, const Load& b) {
      return std::pair{a.bundle, a.flow_class} < std::pair{b.bundle, b.flow_class};
    });
  }

  // Bundles with equal capacity and equal class sums share a folded link.
  void name_links() {
    link_of_bundle_.assign(paths_.slots().size(), 0);
    std::unordered_map<std::uint64_t, std::uint32_t> link_of_key;  // lookup only
    for (std::size_t begin = 0; begin < loads_.size();) {
      std::size_t end = begin;
      const std::uint32_t bundle = loads_[begin].bundle;
      Fingerprint key;
      key.add(paths_.capacity(bundle));
      for (; end < loads_.size() && loads_[end].bundle == bundle; ++end) {
        key.add(std::uint64_t{loads_[end].flow_class});
        key.add(quantised(loads_[end].coefficient));
        if (counts_sources_) key.add(quantised(loads_[end].sources));
      }
      // Congestion control of its network.
      if (counts_sources_ && fabric_.networks.size() > 1) key.add(std::uint64_t{network_of(bundle)});
      const auto [it, is_new] = link_of_key.try_emplace(key.value(), static_cast<std::uint32_t>(link_loads_.size()));
      if (is_new) link_loads_.push_back({begin, end});
      link_of_bundle_[bundle] = it->second;
      begin = end;
    }
  }

  std::uint32_t network_of(std::uint32_t slot) const {
    const topology::Link& link = paths_.slots().link(slot);
    return link.kind == topology::LinkKind::kNetwork ? fabric_.network_of(link) : 0;
  }

  std::optional<std::string> find_difference() const {
    std::vector<std::optional<std::uint64_t>> signature(classes_.size());
    for (const Member& member : members_) {
      std::uint64_t sum = member.calls;  // order of the uses does not matter: a multiset
      for (const BundleUse& use : member.uses) {
        Fingerprint part;
        part.add(std::uint64_t{link_of_bundle_[use.bundle]});
        part.add(quantised(use.coefficient));
        sum += part.value();
      }
      std::optional<std::uint64_t>& expected = signature[member.flow_class];
      if (!expected) expected = sum;
      if (*expected != sum) return describe(classes_[member.flow_class]);
    }
    return std::nullopt;
  }

  std::string describe(const FlowClass& c) const {
    if (c.kind == FlowClass::Kind::kMessage) {
      return fmt::format("messages from stage {} to stage {} take unlike paths", c.stage, c.to_stage);
    }
    if (c.kind == FlowClass::Kind::kHost) return fmt::format("GPUs of stage {} lie differently in their hosts", c.stage);
    return fmt::format("communicators '{}' of stage {} lie differently on the fabric", plan_.groups[c.group.index()].name,
                       c.stage);
  }

  FoldedLinks make_links() const {
    FoldedLinks links;
    std::vector<std::vector<BundleUse>> uses(classes_.size());
    for (std::uint32_t link = 0; link < link_loads_.size(); ++link) {
      links.bundle.push_back(loads_[link_loads_[link].begin].bundle);
      for (std::size_t i = link_loads_[link].begin; i < link_loads_[link].end; ++i) {
        uses[loads_[i].flow_class].push_back({link, loads_[i].coefficient, loads_[i].sources});
      }
    }
    for (std::size_t c = 0; c < classes_.size(); ++c) links.uses.emplace(classes_[c], std::move(uses[c]));
    return links;
  }

  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  const plan::Plan& plan_;
  const CompiledPlan& compiled_;
  const GroupTable& groups_;
  CallTable& calls_;
  LinkPaths& paths_;
  const Machine& machine_;
  bool counts_sources_;
  const topology::Fabric& fabric_;
  UseBuilder builder_;
  std::map<FlowClass, std::uint32_t> class_index_;
  std::vector<FlowClass> classes_;
  std::vector<Member> members_;
  std::vector<Load> loads_;                     // sorted by (bundle, class)
  std::vector<std::uint32_t> link_of_bundle_;
  std::vector<Range> link_loads_;               // [folded link]: its loads
};

}  // namespace

TrafficOwner owner_of_collective(const GroupTable& groups, std::uint32_t communicator, collective::Algorithm algorithm) {
  return {std::uint64_t{communicator} * collective::kAlgorithmCount + static_cast<std::uint64_t>(algorithm), groups.communicator(communicator).axis};
}

TrafficOwner owner_of_messages(const GroupTable& groups, std::int32_t from_stage, std::int32_t to_stage) {
  constexpr std::uint64_t kStages = 4096;
  const std::uint64_t pair = static_cast<std::uint64_t>(from_stage) * kStages + static_cast<std::uint64_t>(to_stage);
  return {groups.size() * collective::kAlgorithmCount + pair, scenario::TrafficAxis::kPipeline};
}

UseBuilder::UseBuilder(const topology::Router& router, LinkPaths& paths)
    : router_{router}, paths_{paths}, load_(paths.slots().size(), 0.0), sources_(paths.slots().size(), 0.0) {
  const topology::LinkSlots& slots = paths.slots();
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) meets_.push_back(slots.link(slot).kind == topology::LinkKind::kNetwork);
}

void UseBuilder::add(std::uint32_t slot, double load, double sources) {
  if (load_[slot] == 0.0) touched_.push_back(slot);
  load_[slot] += load;
  if (meets_[slot]) sources_[slot] += sources;
}

void UseBuilder::add_by_link(const collective::Edge& edge, TrafficOwner owner, std::uint64_t messages, double at_once) {
  const topology::Router::Crossing crossing = router_.crossing(edge.from, edge.to, owner.axis);
  for (const topology::Path::Share& share : crossing.inside) add(share.bundle, edge.share * share.share, 0.0);
  for (const topology::Router::Crossing::Way& way : crossing.ways) {
    const Connection connection{.from_port = way.from_port,
                                .to_port = way.to_port,
                                .local_qp = paths_.first_qp(way.from_port, owner.number, flows_at_port_[way.from_port]++),
                                .remote_qp = paths_.first_qp(way.to_port, owner.number, flows_at_port_[way.to_port]++)};
    scratch_.clear();
    paths_.add(connection, edge.share * way.weight, messages, scratch_);
    // One source on every link that it takes, however many QPs go there; spread over all, a part of one on each.
    const bool spreads = network::spreads(paths_.rules().policy);
    std::sort(scratch_.begin(), scratch_.end(), [](const BundleUse& a, const BundleUse& b) { return a.bundle < b.bundle; });
    for (std::size_t i = 0; i < scratch_.size(); ++i) {
      const bool first = i == 0 || scratch_[i].bundle != scratch_[i - 1].bundle;
      const double source = spreads ? scratch_[i].coefficient / (edge.share * way.weight) : first ? 1.0 : 0.0;
      add(scratch_[i].bundle, scratch_[i].coefficient, source * at_once);
    }
  }
}

std::vector<BundleUse> UseBuilder::build(std::span<const collective::Edge> edges, TrafficOwner owner, std::uint64_t messages, double at_once) {
  flows_at_port_.clear();
  for (const collective::Edge& edge : edges) {
    if (paths_.rules().by_link()) {
      add_by_link(edge, owner, messages, at_once);
      continue;
    }
    router_.path(edge.from, edge.to, path_, owner.axis);
    for (const topology::Path::Share& share : path_.shares) add(share.bundle, edge.share * share.share, at_once);
  }
  std::sort(touched_.begin(), touched_.end());
  std::vector<BundleUse> uses;
  uses.reserve(touched_.size());
  for (const std::uint32_t slot : touched_) {
    uses.push_back({slot, load_[slot], sources_[slot] / static_cast<double>(paths_.slots().links(slot))});
    load_[slot] = sources_[slot] = 0.0;
  }
  touched_.clear();
  return uses;
}

std::vector<BundleUse> UseBuilder::build_host(std::uint32_t gpu, HostWork work) {
  const auto memory_only = [&](std::uint32_t slot) { return work != HostWork::kCores || paths_.slots().link(slot).kind == topology::LinkKind::kMemory; };
  std::vector<BundleUse> uses;
  for (const topology::Router::HostWay way : {topology::Router::HostWay::kToHost, topology::Router::HostWay::kFromHost}) {
    const bool to_host = way == topology::Router::HostWay::kToHost;
    if (work == (to_host ? HostWork::kToDevice : HostWork::kToHost)) continue;
    router_.host_path(gpu, way, path_);
    for (const topology::Path::Share& share : path_.shares)
      if (memory_only(share.bundle)) uses.push_back({share.bundle, share.share, 0.0});
  }
  std::sort(uses.begin(), uses.end(), [](const BundleUse& a, const BundleUse& b) { return a.bundle < b.bundle; });
  return uses;
}

std::vector<BundleUse> UseBuilder::ask(std::span<const collective::Edge> edges, TrafficOwner owner) {
  std::vector<BundleUse> uses = build(edges, owner);
  paths_.forget_placed();
  return uses;
}

collective::IdleRate idle_rate(std::vector<collective::Edge> edges, const topology::Fabric& fabric, collective::Algorithm algorithm,
                               TrafficOwner owner, UseBuilder& uses, const LinkPaths& paths) {
  const auto crosses = [&](const collective::Edge& edge) { return fabric.domain_of(edge.from) != fabric.domain_of(edge.to); };
  collective::IdleRate rate;
  rate.whole = rate_alone(uses.ask(edges, owner), paths);
  if (collective::has_steps(algorithm)) {
    std::vector<collective::Edge> between;
    std::copy_if(edges.begin(), edges.end(), std::back_inserter(between), crosses);
    rate.network = rate_alone(uses.ask(between, owner), paths);
  }
  std::erase_if(edges, crosses);
  rate.local = rate_alone(uses.ask(edges, owner), paths);
  return rate;
}

double sources_at_once(collective::Algorithm algorithm, std::size_t ranks) {
  return algorithm == collective::Algorithm::kPairwise ? 1.0 / static_cast<double>(ranks - 1) : 1.0;
}

double rate_alone(std::span<const BundleUse> uses, const LinkPaths& paths) {
  double rate = std::numeric_limits<double>::infinity();
  for (const BundleUse& use : uses) rate = std::min(rate, paths.capacity(use.bundle) / use.coefficient);
  return rate;
}

FoldAttempt fold_links(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled,
                       const GroupTable& groups, CallTable& calls, LinkPaths& paths, bool unlike) {
  return Folder{plan, machine, compiled, groups, calls, paths}.run(unlike);
}

}  // namespace stepcast::run
