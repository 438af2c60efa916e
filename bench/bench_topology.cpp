// bench/bench_topology — builds a 16,384-GPU rail-clos fabric and routes 200,000 different pairs; then, once,
// 65,536 hosts under three tiers, and a dragonfly whose paths are found by search; and the most memory held.
// Floors (one core of a 2-core cloud machine): build 0.5 s, paths 0.5 s; 65,536 hosts in 4 GiB. One warm-up, five runs.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

#include "sim/base/random.hpp"
#include "tests/support/topology_hardware.hpp"
#include "topologies/routing.hpp"

namespace {

using namespace stepcast;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_row(const char* name, std::array<double, 5> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf("%s,%.4f,%.4f,%.4f\n", name, seconds[2], seconds.front(), seconds.back());
}

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);  // kB
}

// Builds it and routes pairs, once.
double large(const char* name, const topology::ClusterHardware& box, const scenario::Cluster& cluster, int paths) {
  auto start = std::chrono::steady_clock::now();
  const topology::Fabric fabric = topology::build_fabric(box, cluster);
  const double built = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const topology::Router router{fabric};
  const double prepared = seconds_since(start);
  start = std::chrono::steady_clock::now();
  Rng rng{2, "bench-large"};
  double shares = 0.0;
  for (int i = 0; i < paths; ++i)
    shares += static_cast<double>(router.path(static_cast<std::uint32_t>(rng.below(fabric.gpus.size())), static_cast<std::uint32_t>(rng.below(fabric.gpus.size()))).shares.size());
  std::fprintf(stderr, "%s: %u hosts, %zu GPUs, %zu switches, %zu links; peak %.2f GiB\n", name, fabric.nodes, fabric.gpus.size(),
               fabric.devices.size() - fabric.first_switch, fabric.links.size(), peak_gib());
  std::printf("%s build,%.4f,,\n%s router,%.4f,,\n%s %d paths,%.4f,,\n", name, built, name, prepared, name, paths, seconds_since(start));
  return shares;
}

}  // namespace

int main() {
  constexpr std::uint32_t kNodes = 2048;
  constexpr int kPaths = 200'000;
  const topology::ClusterHardware box = topology::test::nvswitch_box();
  const scenario::Cluster cluster = topology::test::cluster_of(kNodes, "rail-clos");
  std::array<double, 5> build{}, prepare{}, route{};
  double shares = 0.0;
  for (std::size_t run = 0; run <= build.size(); ++run) {
    auto start = std::chrono::steady_clock::now();
    const topology::Fabric fabric = topology::build_fabric(box, cluster);
    const double built = seconds_since(start);
    start = std::chrono::steady_clock::now();
    const topology::Router router{fabric};
    const double prepared = seconds_since(start);
    Rng rng{1, "bench-paths"};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (int i = 0; i < kPaths; ++i) {
      pairs.emplace_back(static_cast<std::uint32_t>(rng.below(fabric.gpus.size())), static_cast<std::uint32_t>(rng.below(fabric.gpus.size())));
    }
    start = std::chrono::steady_clock::now();
    for (const auto& [a, b] : pairs) shares += static_cast<double>(router.path(a, b).shares.size());
    const double routed = seconds_since(start);
    if (run == 0) {
      std::fprintf(stderr, "%zu GPUs, %zu devices, %zu links, %zu bundles\n", fabric.gpus.size(), fabric.devices.size(),
                   fabric.links.size(), fabric.bundles.size());
      continue;
    }
    build[run - 1] = built;
    prepare[run - 1] = prepared;
    route[run - 1] = routed;
  }
  std::printf("what,median_s,min_s,max_s\n");
  print_row("build 16384-GPU rail-clos", build);
  print_row("router preparation", prepare);
  print_row("200000 paths", route);
  scenario::Cluster fly = topology::test::cluster_of(4096, "dragonfly");
  fly.fabric->nodes_per_switch = 4;
  fly.fabric->switches_per_group = 16;
  shares += large("4096-host dragonfly", box, fly, 20'000);
  shares += large("65536-host clos-3tier", box, topology::test::cluster_of(65'536, "clos-3tier"), kPaths);
  const double gib = peak_gib();
  std::printf("peak_GiB,%.2f,,\n", gib);
  return shares > 0.0 && gib < 4.0 ? 0 : 1;
}
