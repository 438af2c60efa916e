// Rings over direct links between the GPUs of a host: loads worked by hand.
#include <doctest/doctest.h>

#include <map>

#include "models/collective/edges.hpp"

using namespace stepcast;
using namespace stepcast::collective;

TEST_SUITE_BEGIN("unit");

namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

HostMesh full_mesh(std::uint32_t gpus) {
  HostMesh mesh{.gpus = gpus, .links = std::vector<double>(gpus * gpus, 1.0)};
  for (std::uint32_t g = 0; g < gpus; ++g) mesh.links[g * gpus + g] = 0.0;
  return mesh;
}

// DGX-1V: six NVLinks a GPU, one or two to each of four others.
HostMesh cube_mesh() {
  HostMesh mesh{.gpus = 8, .links = std::vector<double>(64, 0.0)};
  for (const auto& [a, b, links] : std::initializer_list<std::tuple<int, int, double>>{
           {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
           {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}}) {
    mesh.links[static_cast<std::size_t>(a * 8 + b)] = mesh.links[static_cast<std::size_t>(b * 8 + a)] = links;
  }
  return mesh;
}

std::vector<Member> members_of(std::uint32_t hosts, std::vector<std::uint32_t> local) {
  std::vector<Member> members;
  for (std::uint32_t h = 0; h < hosts; ++h)
    for (const std::uint32_t gpu : local) members.push_back({h * 8 + gpu, h});
  return members;
}

std::map<Pair, double> loads(Algorithm algorithm, const std::vector<Member>& members, const HostMesh& mesh) {
  std::map<Pair, double> load;
  for (const Edge& edge : edges_of(algorithm, members, mesh)) load[{edge.from, edge.to}] += edge.share;
  return load;
}

const std::vector<std::uint32_t> kAll{0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

// Eight GPUs, a link for each pair: seven rings, so each of a GPU's seven links carries a seventh of the traffic. Over two hosts
// eight chains of seven edges on 56 links, so an eighth each; and an eighth over each NIC.
TEST_CASE("collective mesh: rings of a full mesh use all links of a GPU") {
  const auto one = loads(Algorithm::kRing, members_of(1, kAll), full_mesh(8));
  CHECK(one.size() == 56);
  for (const auto& [pair, share] : one) CHECK(share == doctest::Approx(1.0 / 7.0));
  const auto two = loads(Algorithm::kRing, members_of(2, kAll), full_mesh(8));
  CHECK(two.size() == 2 * 56 + 16);
  for (const auto& [pair, share] : two) CHECK(share == doctest::Approx(1.0 / 8.0));
}

// Six rings each way round use every NVLink once: a pair of k links carries k/6.
TEST_CASE("collective mesh: rings of the cube mesh load each link alike") {
  const HostMesh mesh = cube_mesh();
  const auto load = loads(Algorithm::kRing, members_of(1, kAll), mesh);
  CHECK(load.size() == 32);
  for (const auto& [pair, share] : load) CHECK(share == doctest::Approx(mesh.between(pair.first, pair.second) / 6.0));
  // A tree of two hosts goes up and down the same chains, cut once: 2 * 7/8 of k/6.
  const auto tree = loads(Algorithm::kTree, members_of(2, kAll), mesh);
  CHECK(tree.at({0, 3}) == doctest::Approx(2.0 * 7.0 / 8.0 * 2.0 / 6.0));
}

// Four GPUs of the cube mesh have 4, 4, 5 and 5 links among them: rings 0-1-2-3 and 0-2-1-3, both ways, a quarter each.
TEST_CASE("collective mesh: unlike numbers of links, the widest rings first") {
  const auto load = loads(Algorithm::kRing, members_of(1, {0, 1, 2, 3}), cube_mesh());
  CHECK(load.at({0, 1}) == doctest::Approx(0.25));
  CHECK(load.at({0, 2}) == doctest::Approx(0.25));
  CHECK(load.at({0, 3}) == doctest::Approx(0.5));
  CHECK(load.at({1, 2}) == doctest::Approx(0.5));
  std::map<std::uint32_t, double> sent;
  for (const auto& [pair, share] : load) sent[pair.first] += share;
  for (const auto& [gpu, share] : sent) CHECK(share == doctest::Approx(1.0));
}

// GPUs 0, 5 and 6: 0 has a link to neither. The ring is the plain one, whatever path the router finds for it.
TEST_CASE("collective mesh: without a ring over direct links the order of the ranks stands") {
  const auto load = loads(Algorithm::kRing, members_of(1, {0, 5, 6}), cube_mesh());
  CHECK(load == std::map<Pair, double>{{{0, 5}, 1.0}, {{5, 6}, 1.0}, {{6, 0}, 1.0}});
}

TEST_SUITE_END();
