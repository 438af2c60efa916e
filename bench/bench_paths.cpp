// bench/bench_paths — path choice: the tables of docs/guide/path_choice.md, and its speed.
//   bench_paths tables    balls in bins, structured headers, polarization, rings under E-ECMP
//   bench_paths           100,000 random connections on a 65,536-NIC clos-3tier, one hashed path each. Floors (one
//                         core of a 2-core cloud machine): 5 us a path with all tables, 10 s in all
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "bench/harness.hpp"
#include "tests/support/hash_statistics.hpp"
#include "tests/support/polarization.hpp"
#include "tests/support/racks.hpp"

namespace {

using namespace stepcast;
using network::HashFunction;
using network::PathPolicy;

constexpr std::pair<const char*, HashFunction> kFunctions[]{
    {"ideal", HashFunction::kIdeal},         {"crc16-bisync", HashFunction::kCrc16Bisync}, {"crc16-ccitt", HashFunction::kCrc16Ccitt},
    {"crc32-low", HashFunction::kCrc32Low},  {"crc32-high", HashFunction::kCrc32High},     {"xor16", HashFunction::kXor16},
    {"xor8", HashFunction::kXor8},           {"xor4", HashFunction::kXor4}};

void print_balls() {
  fmt::print("equal flows on 16 links, random ports: most flows of a link over the mean\n{:>8}{:>9}", "flows", "known");
  for (const auto& [name, function] : kFunctions) fmt::print("{:>14}", name);
  fmt::print("\n");
  constexpr std::pair<std::size_t, double> kKnown[]{{16, 3.075}, {32, 2.410}, {64, 1.972}, {128, 1.671}, {256, 1.468}, {512, 1.325}, {1000, 1.229}, {1024, 1.227}};
  for (const auto& [flows, known] : kKnown) {
    fmt::print("{:>8}{:>9.3f}", flows, known);
    for (const auto& [name, function] : kFunctions)
      fmt::print("{:>14.3f}", network::testing::mean_max_over_mean(function, flows, 16, 2000));
    fmt::print("\n");
  }
}

void print_structured() {
  using network::testing::Pattern;
  fmt::print("\n1024 flows on 16 links, numbers in sequence, one source port: most flows of a link over the mean\n{:>10}", "headers");
  for (const auto& [name, function] : kFunctions) fmt::print("{:>14}", name);
  fmt::print("\n");
  for (const auto& [text, pattern] : {std::pair{"one pair", Pattern::kOnePair}, {"incast", Pattern::kIncast}, {"ring", Pattern::kRing}}) {
    fmt::print("{:>10}", text);
    for (const auto& [name, function] : kFunctions) {
      fmt::print("{:>14.3f}", network::testing::max_over_mean({.function = function}, network::HashFields::kFiveTupleAndQp, 1024, 16,
                                                              [p = pattern](std::size_t f) { return network::testing::structured_header(p, f); }));
    }
    fmt::print("\n");
  }
}

void print_polarization() {
  fmt::print("\nup-links that a spine uses for one leaf's flows, of k2, behind leaves of k1 up-links\n{:>4}{:>4}{:>14}", "k1", "k2", "k2/gcd");
  for (const char* head : {"same seed", "per switch", "crc, same", "crc, per sw.", "crc, offset 4"}) fmt::print("{:>14}", head);
  fmt::print("\n");
  const run::PathRules mixed{.policy = PathPolicy::kEcmp};
  run::PathRules mixed_same = mixed;
  mixed_same.seed_per_switch = false;
  run::PathRules crc = mixed;
  crc.hash = HashFunction::kCrc16Ccitt;
  run::PathRules crc_same = crc;
  crc_same.seed_per_switch = false;
  run::PathRules crc_offset = crc_same;
  crc_offset.tier_offset = 4;
  for (const auto& [k1, k2] : {std::pair{4, 4}, {4, 2}, {4, 6}, {6, 4}, {4, 3}, {8, 4}, {8, 8}, {16, 8}}) {
    fmt::print("{:>4}{:>4}{:>14}", k1, k2, k2 / std::gcd(k1, k2));
    for (const run::PathRules& rules : {mixed_same, mixed, crc_same, crc, crc_offset}) fmt::print("{:>14.2f}", run::testing::core_links_used(k1, k2, rules));
    fmt::print("\n");
  }
}

// The Monte-Carlo shares of ../shared/headlines/ecmp_qp_scaling_montecarlo.csv, rows "ring", by QPs 1, 4, 16, 64.
struct RingCase {
  std::uint32_t racks, uplinks;
  double known[4];
};
constexpr RingCase kRings[]{{2, 16, {0.300, 0.479, 0.653, 0.794}}, {2, 32, {0.401, 0.688, 0.980, 1.0}},
                            {8, 16, {0.245, 0.411, 0.597, 0.753}}, {8, 32, {0.318, 0.594, 0.946, 1.0}}};
constexpr int kSeeds = 200;

void print_rings() {
  fmt::print("\nrate of rings between racks of 16 GPUs over a NIC's, mean of {} seeds (Monte-Carlo table in brackets)\n", kSeeds);
  fmt::print("{:>6}{:>9}{:>12}{:>16}{:>16}{:>16}{:>16}\n", "racks", "uplinks", "1 port", "1 QP", "4 QPs", "16 QPs", "64 QPs");
  for (const RingCase& c : kRings) {
    const run::testing::Racks racks{c.racks, c.uplinks};
    run::PathRules plain = run::testing::e_ecmp(16);
    plain.policy = PathPolicy::kEcmp;
    plain.source_port = network::SourcePort::kFixed;
    fmt::print("{:>6}{:>9}{:>12.3f}", c.racks, c.uplinks, racks.mean_ring_share(plain, kSeeds));
    double share[4];
    for (int i = 0; i < 4; ++i) {
      share[i] = racks.mean_ring_share(run::testing::e_ecmp(1U << (2 * i)), kSeeds);
      fmt::print("{:>8.3f} ({:.3f})", share[i], c.known[i]);
    }
    fmt::print("\n       gain of 4 times the QPs: from 1 {:+.0f} % ({:+.0f} %), from 4 {:+.0f} % ({:+.0f} %), from 16 {:+.0f} % ({:+.0f} %); published: up to 40 %\n",
               100 * (share[1] / share[0] - 1), 100 * (c.known[1] / c.known[0] - 1), 100 * (share[2] / share[1] - 1),
               100 * (c.known[2] / c.known[1] - 1), 100 * (share[3] / share[2] - 1), 100 * (c.known[3] / c.known[2] - 1));
  }
}

void print_policies() {
  constexpr std::pair<const char*, PathPolicy> kPolicies[]{
      {"ideal", PathPolicy::kIdeal},     {"ecmp", PathPolicy::kEcmp},         {"e-ecmp", PathPolicy::kEEcmp},   {"pinned", PathPolicy::kPinned},
      {"planned", PathPolicy::kPlanned}, {"adaptive", PathPolicy::kAdaptive}, {"spray", PathPolicy::kSpray}};
  fmt::print("\nrate of rings between 8 racks over a NIC's by policy, 4 QPs, mean of {} seeds; one of the spines gone\n", kSeeds);
  fmt::print("{:>10}{:>14}{:>14}{:>14}{:>14}\n", "policy", "16 uplinks", "15 left", "32 uplinks", "31 left");
  for (const auto& [name, policy] : kPolicies) {
    fmt::print("{:>10}", name);
    for (const std::uint32_t uplinks : {16U, 32U}) {
      const run::testing::Racks racks{8, uplinks};
      run::PathRules rules = run::testing::e_ecmp(4);
      rules.policy = policy;
      fmt::print("{:>14.3f}", racks.mean_ring_share(rules, kSeeds));
      const scenario::Failure gone{.link = {}, .switch_name = "spine3", .at = {}, .fraction = 0.0};
      rules.changes = topology::find_failures(racks.fabric(), {&gone, 1});
      fmt::print("{:>14.3f}", racks.mean_ring_share(rules, policy == PathPolicy::kIdeal || policy == PathPolicy::kSpray ? 1 : kSeeds));
    }
    fmt::print("\n");
  }
}

void print_speed(const bench::Options& options) {
  constexpr std::uint32_t kNodes = 8192;
  constexpr int kPaths = 100'000;
  scenario::Cluster cluster = topology::test::cluster_of(kNodes, "clos-3tier");
  const topology::Fabric fabric = topology::build_fabric(topology::test::nvswitch_box(), cluster);
  Rng rng{1, "bench-paths"};
  std::vector<run::Connection> connections;
  for (std::uint32_t i = 0; i < kPaths; ++i) {
    const auto port = [&] { return static_cast<std::uint32_t>(rng.below(fabric.ports.size())); };
    connections.push_back({.from_port = port(), .to_port = port(), .local_qp = i, .remote_qp = i});
    if (connections.back().from_port == connections.back().to_port) connections.pop_back();
  }
  const run::PathRules rules{.policy = PathPolicy::kEEcmp, .hash = HashFunction::kCrc16Ccitt};
  std::vector<run::BundleUse> uses;
  const auto lay_all = [&](run::LinkPaths& paths) {
    uses.clear();
    for (const run::Connection& connection : connections) paths.add(connection, 1.0, 0, uses);
    return connections.size();
  };
  std::fprintf(stderr, "%zu NICs, %zu leaves, %zu devices, %zu links\n", fabric.ports.size(), fabric.leaves.size(), fabric.devices.size(), fabric.links.size());
  bench::print_header();
  run::LinkPaths warm{fabric, rules};
  lay_all(warm);
  bench::print_row(options, "paths", "hashed path, tables known", "paths/s", bench::measure(options, [&] { return lay_all(warm); }));
  bench::print_row(options, "paths", "hashed path, tables built on the way", "paths/s", bench::measure(options, [&] {
                     run::LinkPaths cold{fabric, rules};
                     return lay_all(cold);
                   }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "tables") == 0) {
    print_balls();
    print_structured();
    print_polarization();
    print_rings();
    print_policies();
    return 0;
  }
  print_speed(bench::parse(argc, argv));
  return 0;
}
