// The incremental solution. Levels are settled from below, as in progressive filling; what a change does
// not move keeps the level of the last solve.
//
// A flow is *open* while its level is not known; a link is *touched* once one of its flows has been opened
// or stopped lower than last time. A touched link is looked at twice: at the level where it would fill by
// what is known now, and at the level where it filled last time. If it no longer fills there, the flows
// that stopped there are opened, which touches their other links. If it fills, it stops all its flows
// that have not stopped before; those that used to stop higher leave room on their other links, which
// are touched at the level where they filled last time: nothing can happen to them before.
// Exactness: by induction over levels. Below the lowest level of the agenda the new filling is settled.
#include "sim/flow/solver.hpp"

#include <functional>

#include "sim/flow/tolerance.hpp"

namespace stepcast::flow {

void Solver::refill() {
  while (!agenda_.empty()) {
    const Entry entry = pop();
    if (entry.is_link) {
      Link& link = links_[entry.index];
      if (link.due != entry.level) continue;  // an earlier entry took its place
      link.due = kNever;
      look_at(entry.index);
    } else {
      Flow& flow = flows_[entry.index];
      if (flow.level == kNever) flow.level = flow.top;
    }
  }
  std::sort(reached_.begin(), reached_.end());
  for (const std::uint32_t index : reached_) set_rate(index, flows_[index].rate_at(flows_[index].level));
}

void Solver::open(std::uint32_t index, double level) {
  Flow& flow = flows_[index];
  if (flow.mark == mark_ && flow.level == kNever) return;
  reach(index);
  flow.level = kNever;
  push({flow.top, index, false});
  for (const Use& use : uses_of(flow)) touch(use.link.value(), level);
}

void Solver::reach(std::uint32_t index) {
  Flow& flow = flows_[index];
  if (flow.mark == mark_) return;
  flow.mark = mark_;
  reached_.push_back(index);
}

// To be looked at when `level` is reached, or earlier.
void Solver::touch(std::uint32_t index, double level) {
  Link& link = links_[index];
  if (link.mark != mark_) {
    link.mark = mark_;
    link.was_full = link.full != kNever;
    link.due = kNever;
  }
  if (level >= link.due || !(can_bind(link) || link.was_full)) return;
  link.due = level;
  push({level, index, true});
}

void Solver::look_at(std::uint32_t index) {
  Link& link = links_[index];
  const double level = can_bind(link) ? fill_level(link) : kNever;
  const double next = link.was_full ? std::min(level, link.full) : level;
  if (next == kNever) {
    link.full = kNever;
  } else if (!agenda_.empty() && agenda_.front().level < next) {
    link.due = next;
    push({next, index, true});
  } else if (next < level) {
    pass_old_level(index);
  } else {
    fill(index, level);
  }
}

// It does not fill where it used to: the flows that it stopped there rise on.
void Solver::pass_old_level(std::uint32_t index) {
  const double level = links_[index].full;
  links_[index].full = kNever;
  links_[index].was_full = false;
  for (const Member& member : members_of(links_[index])) {
    const Flow& flow = flows_[member.flow];
    if (flow.mark != mark_ && flow.level == level) open(member.flow, level);
  }
  touch(index, level);
}

void Solver::fill(std::uint32_t index, double level) {
  links_[index].full = level;
  links_[index].was_full = false;
  for (const Member& member : members_of(links_[index])) {
    Flow& flow = flows_[member.flow];
    if (flow.level <= level) continue;
    const bool kept = flow.mark != mark_;  // until now, the level of the last solve
    reach(member.flow);
    flow.level = level;
    if (!kept) continue;
    for (const Use& use : uses_of(flow)) {
      const Link& other = links_[use.link.index()];
      if (other.mark != mark_ && other.full != kNever) touch(use.link.value(), std::max(level, other.full));
    }
  }
}

// Where the link fills, by what is known now; kNever if all its flows stop before. Sums run in flow order.
double Solver::fill_level(const Link& link) {
  shares_.clear();
  for (const Member& member : members_of(link)) {
    const Flow& flow = flows_[member.flow];
    const bool kept = flow.mark != mark_;
    // A flow that this link stopped last time counts as open until that level has been passed.
    const double level = kept && link.was_full && flow.level == link.full ? kNever : flow.level;
    const double rate = level == kNever ? 0.0 : kept ? flow.rate : flow.rate_at(level);
    shares_.push_back({level, member.coefficient * rate, member.coefficient * flow.weight});
  }
  double level = 0.0;
  std::size_t stopped = 0;
  for (bool first = true;; first = false) {
    const double below = level * (1.0 - tolerance::kSameLevel);
    double load = 0.0;
    double weight = 0.0;
    std::size_t count = 0;
    for (const Share& share : shares_) {
      if (share.level < below) {
        load += share.load;
        ++count;
      } else {
        weight += share.weight;
      }
    }
    if (count == shares_.size()) return kNever;
    if (!first && count == stopped) return level;
    stopped = count;
    level = std::max(0.0, link.capacity - load) / weight;
  }
}

void Solver::push(Entry entry) {
  agenda_.push_back(entry);
  std::push_heap(agenda_.begin(), agenda_.end(), std::greater<>{});
}

Solver::Entry Solver::pop() {
  const Entry entry = agenda_.front();
  std::pop_heap(agenda_.begin(), agenda_.end(), std::greater<>{});
  agenda_.pop_back();
  return entry;
}

}  // namespace stepcast::flow
