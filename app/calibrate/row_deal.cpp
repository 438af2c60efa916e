#include "app/calibrate/row_deal.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/base/hash.hpp"
#include "sim/base/random.hpp"

namespace stepcast::app {

std::size_t rows_dealt(std::size_t rows, double share) {
  return std::min(rows, static_cast<std::size_t>(std::ceil(share * static_cast<double>(rows) - 1e-9)));
}

std::vector<bool> deal_rows(std::span<const std::string> names, double share, std::uint64_t seed) {
  struct Place {
    std::uint64_t number;
    std::size_t row;
  };
  std::vector<Place> order;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Fingerprint name;
    name.add(names[i]);
    order.push_back({Rng{seed, "rows to fit", name.value()}.next(), i});
  }
  std::sort(order.begin(), order.end(), [&](const Place& a, const Place& b) { return std::tie(a.number, names[a.row]) < std::tie(b.number, names[b.row]); });
  std::vector<bool> dealt(names.size(), false);
  for (std::size_t i = 0; i < rows_dealt(names.size(), share); ++i) dealt[order[i].row] = true;
  return dealt;
}

}  // namespace stepcast::app
