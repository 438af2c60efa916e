#include "models/network/transport/path_choice.hpp"

#include <utility>

#include "sim/base/check.hpp"

namespace stepcast::network {

PathChoice::PathChoice(Spreading spreading, std::uint32_t routes, std::uint32_t entropies, Rng& random) : spreading_{spreading} {
  SIM_CHECK(routes > 0 && entropies > 0, routes, entropies);
  const bool hashed = spreading != Spreading::kPermuted && routes > 1;
  const std::uint32_t values = hashed ? entropies : routes;
  for (std::uint32_t value = 0; value < values; ++value) {
    route_of_.push_back(hashed ? static_cast<std::uint32_t>(random.below(routes)) : value);
    order_.push_back(value);
  }
  penalty_.assign(values, 0);
  shuffle(random);
}

PathChoice::Path PathChoice::next(Rng& random) {
  if (order_.size() == 1) return {};
  if (spreading_ == Spreading::kRecycled && !clean_.empty()) {
    const std::uint32_t entropy = clean_.front();
    clean_.pop_front();
    return {route_of_[entropy], entropy};
  }
  for (std::size_t tries = 0; tries < order_.size(); ++tries) {
    if (at_ == order_.size()) shuffle(random);
    const std::uint32_t entropy = order_[at_++];
    if (penalty_[entropy] == 0) return {route_of_[entropy], entropy};
    --penalty_[entropy];
  }
  if (at_ == order_.size()) shuffle(random);
  const std::uint32_t entropy = order_[at_++];
  return {route_of_[entropy], entropy};
}

void PathChoice::good(std::uint32_t entropy) {
  if (spreading_ == Spreading::kRecycled) clean_.push_back(entropy);
}

void PathChoice::bad(std::uint32_t entropy, std::uint32_t penalty) {
  if (spreading_ != Spreading::kPermuted) penalty_[entropy] += penalty;
}

void PathChoice::shuffle(Rng& random) {
  at_ = 0;
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
}

}  // namespace stepcast::network
