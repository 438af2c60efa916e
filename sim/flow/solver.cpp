#include "sim/flow/solver.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/flow/tolerance.hpp"

namespace stepcast::flow {

LinkIndex Solver::add_link(double capacity) {
  SIM_CHECK(std::isfinite(capacity) && capacity >= 0.0, capacity);
  links_.emplace_back().capacity = capacity;
  return LinkIndex{links_.size() - 1};
}

FlowIndex Solver::add_flow(std::span<const Use> uses, double weight, double cap) {
  SIM_CHECK(std::isfinite(weight) && weight > 0.0, weight);
  SIM_CHECK(cap >= 0.0 && (std::isfinite(cap) || !uses.empty()), cap, uses.size());
  std::uint32_t index = 0;
  if (free_flows_.empty()) {
    index = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    index = free_flows_.back();
    free_flows_.pop_back();
  }
  Flow& flow = flows_[index];
  flow = {.weight = weight, .cap = cap, .alive = true, .fresh = true, .seeded = flow.seeded};
  if (!uses.empty()) flow.uses = uses_.acquire(static_cast<std::uint32_t>(uses.size()));

  const std::uint32_t mark = next_mark();
  Use* own = uses_.data(flow.uses);
  double bound = cap;
  for (const Use& use : uses) {
    SIM_CHECK(std::isfinite(use.coefficient) && use.coefficient > 0.0, use.coefficient);
    SIM_CHECK(use.link.index() < links_.size(), use.link.value(), links_.size());
    Link& link = links_[use.link.index()];
    Use* place = own + flow.use_count;
    if (link.mark == mark) {  // named before
      place = std::find_if(own, place, [&](const Use& other) { return other.link == use.link; });
      place->coefficient += use.coefficient;
    } else {
      link.mark = mark;
      *place = use;
      ++flow.use_count;
    }
    bound = std::min(bound, link.capacity / place->coefficient);
  }
  flow.bound = bound;
  flow.top = bound / weight;
  for (std::uint32_t u = 0; u < flow.use_count; ++u) {
    Link& link = links_[own[u].link.index()];
    link.potential += part(own[u].coefficient, bound, link.capacity);
    attach(link, {index, u, own[u].coefficient});
  }
  seed_flow(index);
  return FlowIndex{index};
}

void Solver::remove_flow(FlowIndex flow_index) {
  const std::uint32_t index = flow_index.value();
  SIM_CHECK(index < flows_.size() && flows_[index].alive, index, flows_.size());
  Flow& flow = flows_[index];
  for (const Use& use : uses_of(flow)) {
    Link& link = links_[use.link.index()];
    if (can_bind(link)) seed_link(use.link.value());
    link.potential -= part(use.coefficient, flow.bound, link.capacity);
    detach(link, index);
  }
  uses_.release(flow.uses);
  flow.alive = false;
  free_flows_.push_back(index);
}

void Solver::set_cap(FlowIndex flow_index, double cap) {
  const std::uint32_t index = flow_index.value();
  SIM_CHECK(index < flows_.size() && flows_[index].alive, index, flows_.size());
  Flow& flow = flows_[index];
  SIM_CHECK(cap >= 0.0 && (std::isfinite(cap) || flow.use_count > 0), cap, flow.use_count);
  if (cap == flow.cap) return;
  flow.cap = cap;
  rebound(index);
}

void Solver::set_capacity(LinkIndex link_index, double capacity) {
  SIM_CHECK(std::isfinite(capacity) && capacity >= 0.0, capacity);
  Link& link = links_[link_index.index()];
  if (capacity == link.capacity) return;
  if (can_bind(link)) seed_link(link_index.value());
  link.capacity = capacity;
  link.potential = 0;  // each member puts its part back in rebound()
  for (const Member& member : members_of(link)) {
    link.potential += part(member.coefficient, flows_[member.flow].bound, capacity);
  }
  for (const Member& member : members_of(link)) rebound(member.flow);
}

// Renews b_f, the parts that follow from it, and seeds whatever that can move.
void Solver::rebound(std::uint32_t index) {
  Flow& flow = flows_[index];
  const double bound = bound_of(flow);
  for (const Use& use : uses_of(flow)) {
    Link& link = links_[use.link.index()];
    if (can_bind(link)) seed_link(use.link.value());
    link.potential += part(use.coefficient, bound, link.capacity) -
                      part(use.coefficient, flow.bound, link.capacity);
  }
  flow.bound = bound;
  flow.top = bound / flow.weight;
  seed_flow(index);
}

std::span<const FlowIndex> Solver::solve() {
  changed_.clear();
  if (!dirty()) {
    reached_.clear();
    return changed_;
  }
  next_mark();
  reached_.clear();
  open_seeds();
  if (method_ == Method::kFull) {
    agenda_.clear();
    solve_naively();
  } else {
    refill();
  }
  return changed_;
}

double Solver::load(LinkIndex link_index) const {
  double sum = 0.0;
  for (const Member& member : members_of(links_[link_index.index()])) {
    sum += member.coefficient * flows_[member.flow].rate;
  }
  return sum;
}

System Solver::system(std::vector<FlowIndex>& flows) const {
  System all;
  flows.clear();
  for (const Link& link : links_) all.capacity.push_back(link.capacity);
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    const Flow& flow = flows_[index];
    if (!flow.alive) continue;
    flows.push_back(FlowIndex{index});
    all.add_flow(flow.weight, flow.cap);
    for (const Use& use : uses_of(flow)) all.add_use(use.link.value(), use.coefficient);
  }
  return all;
}

bool Solver::can_bind(const Link& link) { return link.potential > tolerance::kFullLink; }

// The most a flow can load the link, in units of kFullLink, rounded up.
std::int64_t Solver::part(double coefficient, double bound, double capacity) {
  if (bound == 0.0) return 0;  // also on a link that is down
  // A link that went down while the flow's old bound still stands can carry none of it.
  if (capacity == 0.0) return tolerance::kFullLink;
  const double exact = coefficient * bound / capacity * static_cast<double>(tolerance::kFullLink);
  if (exact >= static_cast<double>(tolerance::kFullLink)) return tolerance::kFullLink;
  const auto whole = static_cast<std::int64_t>(exact);
  return whole + (static_cast<double>(whole) < exact ? 1 : 0);
}

double Solver::bound_of(const Flow& flow) const {
  double bound = flow.cap;
  for (const Use& use : uses_of(flow)) {
    bound = std::min(bound, links_[use.link.index()].capacity / use.coefficient);
  }
  return bound;
}

// Members stay sorted by flow, so sums over them run in id order whatever the history.
void Solver::attach(Link& link, Member member) {
  if (link.member_count == link.members.room()) members_.grow(link.members, link.member_count);
  Member* const begin = members_.data(link.members);
  Member* place = begin + link.member_count;
  if (place != begin && place[-1].flow > member.flow) {
    const auto before = [](const Member& a, std::uint32_t flow) { return a.flow < flow; };
    place = std::lower_bound(begin, place, member.flow, before);
    std::copy_backward(place, begin + link.member_count, begin + link.member_count + 1);
  }
  *place = member;
  ++link.member_count;
}

void Solver::detach(Link& link, std::uint32_t flow) {
  Member* const begin = members_.data(link.members);
  Member* const end = begin + link.member_count;
  const auto before = [](const Member& a, std::uint32_t index) { return a.flow < index; };
  Member* const place = std::lower_bound(begin, end, flow, before);
  std::copy(place + 1, end, place);
  --link.member_count;
}

void Solver::seed_flow(std::uint32_t index) {
  if (flows_[index].seeded) return;
  flows_[index].seeded = true;
  seed_flows_.push_back(index);
}

void Solver::seed_link(std::uint32_t index) {
  if (links_[index].seeded) return;
  links_[index].seeded = true;
  seed_links_.push_back(index);
}

std::uint32_t Solver::next_mark() {
  if (++mark_ == 0) {  // all 2^32 used: forget the old ones
    for (Link& link : links_) link.mark = 0;
    for (Flow& flow : flows_) flow.mark = 0;
    mark_ = 1;
  }
  return mark_;
}

// Opens what changed: the flows themselves, and the links that lost or gained something.
void Solver::open_seeds() {
  for (const std::uint32_t index : seed_links_) {
    links_[index].seeded = false;
    touch(index, links_[index].full);  // it has more room, or its flows are seeds themselves
  }
  for (const std::uint32_t index : seed_flows_) {
    flows_[index].seeded = false;
    if (flows_[index].alive) open(index, 0.0);
  }
  seed_links_.clear();
  seed_flows_.clear();
}

void Solver::solve_naively() {
  std::vector<FlowIndex> all;
  const System everything = system(all);
  const std::vector<double> rates = naive_max_min(everything);
  for (std::size_t i = 0; i < all.size(); ++i) set_rate(all[i].value(), rates[i]);
}

void Solver::set_rate(std::uint32_t index, double rate) {
  Flow& flow = flows_[index];
  if (!flow.fresh && rate == flow.rate) return;
  flow.fresh = false;
  flow.rate = rate;
  changed_.push_back(FlowIndex{index});
}

}  // namespace stepcast::flow
