#include "sim/flow/filling.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/flow/tolerance.hpp"

namespace stepcast::flow {

std::span<const double> Filling::solve(const System& system) {
  system_ = &system;
  prepare();
  while (!full_.empty()) {
    const Candidate top = full_.front();
    // A level in the heap is never too high, so a cap at or below it comes first for certain.
    while (!capped_.empty() && capped_.front().level <= top.level) {
      const std::uint32_t flow = capped_.front().index;
      std::pop_heap(capped_.begin(), capped_.end(), later);
      capped_.pop_back();
      if (fixed_[flow] == 0) fix(flow, system.cap[flow]);
    }
    std::pop_heap(full_.begin(), full_.end(), later);
    full_.pop_back();
    const Link& link = links_[top.index];
    if (link.unfixed == 0) continue;
    Candidate now{full_level(top.index), top.index};
    if (!link.summed && is_next(now)) {  // running sums say it fills next: make sure
      sum_anew(top.index);
      now.level = full_level(top.index);
    }
    if (is_next(now)) {
      fill_link(now.index, now.level);
    } else {
      full_.push_back(now);
      std::push_heap(full_.begin(), full_.end(), later);
    }
  }
  for (std::uint32_t f = 0; f < system.flows(); ++f) {  // flows on no link
    if (fixed_[f] == 0) rate_[f] = system.cap[f];
  }
  return rate_;
}

void Filling::prepare() {
  const System& system = *system_;
  links_.assign(system.links(), {});
  rate_.assign(system.flows(), 0.0);
  fixed_.assign(system.flows(), 0);
  link_begin_.assign(system.links() + 1, 0);
  link_flow_.resize(system.use_link.size());
  link_coefficient_.resize(system.use_link.size());
  for (const std::uint32_t link : system.use_link) ++links_[link].unfixed;
  for (std::size_t l = 0; l < system.links(); ++l) {
    link_begin_[l + 1] = link_begin_[l] + links_[l].unfixed;
    links_[l].unfixed = 0;
  }
  capped_.clear();
  for (std::uint32_t f = 0; f < system.flows(); ++f) {
    const double weight = system.weight[f];
    for (std::uint32_t u = system.use_begin[f]; u < system.use_begin[f + 1]; ++u) {
      Link& link = links_[system.use_link[u]];
      const std::uint32_t place = link_begin_[system.use_link[u]] + link.unfixed++;
      link_flow_[place] = f;
      link_coefficient_[place] = system.use_coefficient[u];
      link.unfixed_weight += system.use_coefficient[u] * weight;
    }
    capped_.push_back({system.cap[f] / weight, f});
  }
  full_.clear();
  for (std::uint32_t l = 0; l < system.links(); ++l) {
    if (links_[l].unfixed == 0) continue;
    links_[l].exact_weight = links_[l].unfixed_weight;
    full_.push_back({full_level(l), l});
  }
  std::make_heap(full_.begin(), full_.end(), later);
  std::make_heap(capped_.begin(), capped_.end(), later);
}

// Whether nothing in the heaps comes before `link`; at equal levels caps come first.
bool Filling::is_next(const Candidate& link) const {
  return (full_.empty() || !later(link, full_.front())) &&
         (capped_.empty() || link.level < capped_.front().level);
}

double Filling::full_level(std::uint32_t link) const {
  const double room = system_->capacity[link] - links_[link].fixed_load;
  return std::max(0.0, room) / links_[link].unfixed_weight;
}

void Filling::sum_anew(std::uint32_t l) {
  Link& link = links_[l];
  link.fixed_load = 0.0;
  link.unfixed_weight = 0.0;
  for (std::uint32_t i = link_begin_[l]; i < link_begin_[l + 1]; ++i) {
    const std::uint32_t f = link_flow_[i];
    if (fixed_[f] != 0) {
      link.fixed_load += link_coefficient_[i] * rate_[f];
    } else {
      link.unfixed_weight += link_coefficient_[i] * system_->weight[f];
    }
  }
  link.exact_weight = link.unfixed_weight;
  link.summed = true;
}

void Filling::fill_link(std::uint32_t l, double level) {
  links_[l].unfixed = 0;
  for (std::uint32_t i = link_begin_[l]; i < link_begin_[l + 1]; ++i) {
    const std::uint32_t f = link_flow_[i];
    if (fixed_[f] == 0) fix(f, std::min(system_->cap[f], level * system_->weight[f]));
  }
}

void Filling::fix(std::uint32_t flow, double rate) {
  fixed_[flow] = 1;
  rate_[flow] = rate;
  const double weight = system_->weight[flow];
  for (std::uint32_t u = system_->use_begin[flow]; u < system_->use_begin[flow + 1]; ++u) {
    const std::uint32_t l = system_->use_link[u];
    Link& link = links_[l];
    if (link.unfixed == 0) continue;
    link.fixed_load += system_->use_coefficient[u] * rate;
    link.unfixed_weight -= system_->use_coefficient[u] * weight;
    link.summed = false;
    if (--link.unfixed != 0 && link.unfixed_weight < link.exact_weight * tolerance::kResumBelow) {
      sum_anew(l);
    }
  }
}

}  // namespace stepcast::flow
