#include "topologies/path_dag.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/base/check.hpp"

namespace stepcast::topology {

PathDag build_dag(NextHops& hops, std::uint32_t from_port, std::uint32_t to_port) {
  PathDag dag;
  dag.places.push_back(hops.source(from_port));
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // lookup only
  std::vector<NextHops::Step> steps;
  for (std::uint32_t p = 0; p < dag.places.size(); ++p) {
    const NextHops::Place place = dag.places[p];
    if (p > 0 && hops.arrived(place, to_port)) {
      dag.end = p;
      continue;
    }
    hops.find(place, to_port, steps);
    for (const auto& [link, next] : steps) {
      const std::uint64_t key = std::uint64_t{next.device.value()} * 2 + (next.descending ? 1 : 0);
      const auto [it, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(dag.places.size()));
      if (is_new) dag.places.push_back(next);
      dag.edges.push_back({p, it->second, link});
    }
  }
  return dag;
}

std::vector<LinkShare> even_shares(const PathDag& dag) {
  SIM_CHECK(dag.reaches());
  std::vector<double> arriving(dag.places.size(), 0.0);
  arriving[0] = 1.0;
  std::vector<LinkShare> shares;
  shares.reserve(dag.edges.size());
  for (std::size_t begin = 0; begin < dag.edges.size();) {
    std::size_t end = begin;
    while (end < dag.edges.size() && dag.edges[end].from == dag.edges[begin].from) ++end;
    const double each = arriving[dag.edges[begin].from] / static_cast<double>(end - begin);
    for (; begin < end; ++begin) {
      arriving[dag.edges[begin].to] += each;
      shares.push_back({dag.edges[begin].link, each});
    }
  }
  return shares;
}

std::vector<LinkId> widest_path(const PathDag& dag, const std::function<double(LinkId)>& cost) {
  SIM_CHECK(dag.reaches());
  struct Best {
    double worst = std::numeric_limits<double>::infinity();
    double sum = std::numeric_limits<double>::infinity();
    std::optional<std::uint32_t> edge;
  };
  std::vector<Best> best(dag.places.size());
  best[0] = {-std::numeric_limits<double>::infinity(), 0.0, std::nullopt};
  for (std::uint32_t e = 0; e < dag.edges.size(); ++e) {
    const PathDag::Edge& edge = dag.edges[e];
    const double c = cost(edge.link);
    const Best through{std::max(best[edge.from].worst, c), best[edge.from].sum + c, e};
    Best& now = best[edge.to];
    if (!now.edge || std::pair{through.worst, through.sum} < std::pair{now.worst, now.sum}) now = through;
  }
  std::vector<LinkId> path;
  for (std::uint32_t p = dag.end; p != 0;) {
    const PathDag::Edge& edge = dag.edges[*best[p].edge];
    path.push_back(edge.link);
    p = edge.from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace stepcast::topology
