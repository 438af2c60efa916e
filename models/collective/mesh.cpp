#include "models/collective/mesh.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast::collective {
namespace {

constexpr std::size_t kMostSearched = 8;  // GPUs: 7! orders

class RingSearch {
 public:
  explicit RingSearch(std::vector<std::vector<double>> free) : free_{std::move(free)} {}

  // Takes the widest ring, the first in lexical order among equals; false: there is none.
  bool take(std::vector<std::vector<double>>& load) {
    widest_ = 0.0;
    order_ = {0};
    used_.assign(free_.size(), false);
    used_[0] = true;
    extend(1e300);
    if (widest_ <= 0.0) return false;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      const std::size_t from = best_[i];
      const std::size_t to = best_[(i + 1) % best_.size()];
      free_[from][to] -= widest_;
      load[from][to] += widest_;
    }
    return true;
  }
  [[nodiscard]] double width() const { return widest_; }

 private:
  void extend(double width) {
    if (width <= widest_) return;
    if (order_.size() == free_.size()) {
      const double closed = std::min(width, free_[order_.back()][0]);
      if (closed > widest_) {
        widest_ = closed;
        best_ = order_;
      }
      return;
    }
    for (std::size_t next = 1; next < free_.size(); ++next) {
      if (used_[next]) continue;
      const std::size_t last = order_.back();
      used_[next] = true;
      order_.push_back(next);
      extend(std::min(width, free_[last][next]));
      order_.pop_back();
      used_[next] = false;
    }
  }

  std::vector<std::vector<double>> free_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> best_;
  std::vector<bool> used_;
  double widest_ = 0.0;
};

bool connected(const std::vector<std::vector<double>>& links) {
  std::vector<bool> seen(links.size(), false);
  std::vector<std::size_t> open{0};
  seen[0] = true;
  std::size_t count = 0;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    ++count;
    for (std::size_t to = 0; to < links.size(); ++to) {
      if (links[at][to] <= 0.0 || seen[to]) continue;
      seen[to] = true;
      open.push_back(to);
    }
  }
  return count == links.size();
}

std::vector<MeshShare> shares_of(const std::vector<std::vector<double>>& load, double whole) {
  std::vector<MeshShare> shares;
  for (std::size_t a = 0; a < load.size(); ++a)
    for (std::size_t b = 0; b < load.size(); ++b)
      if (load[a][b] > 0.0) shares.push_back({a, b, load[a][b] / whole});
  return shares;
}

}  // namespace

std::vector<MeshShare> mesh_rings(const HostMesh& mesh, std::span<const std::uint32_t> local) {
  const std::size_t m = local.size();
  if (m < 3) return {};  // two GPUs: a ring is their pair, whatever joins it
  std::vector<std::vector<double>> links(m, std::vector<double>(m, 0.0));
  std::vector<double> degree(m, 0.0);
  for (std::size_t a = 0; a < m; ++a)
    for (std::size_t b = 0; b < m; ++b)
      if (a != b) degree[a] += links[a][b] = mesh.between(local[a], local[b]);
  if (!connected(links)) return {};
  const auto [least, most] = std::minmax_element(degree.begin(), degree.end());
  if (*most - *least <= 1e-9 * *most) return shares_of(links, *most);
  if (m > kMostSearched) return {};
  RingSearch search{links};
  std::vector<std::vector<double>> load(m, std::vector<double>(m, 0.0));
  double whole = 0.0;
  while (search.take(load)) whole += search.width();
  return whole > 0.0 ? shares_of(load, whole) : std::vector<MeshShare>{};
}

}  // namespace stepcast::collective
