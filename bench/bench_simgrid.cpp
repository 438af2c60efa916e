// Fluid flows on a fat tree, side by side with SimGrid in one run: the same hosts, links, routes, start
// times and sharing rule, finish times compared to 1e-5 (SimGrid's own precision).
//
//   loaded_H_K   H hosts, K flows a host to random others, all at once: at every completion SimGrid
//                solves the whole fabric anew, Stepcast what the completion reaches
//   perm_H       one flow a host along a random cycle. Stepcast builds its own fabric and routes there (pinned
//                paths, which are SimGrid's d-mod-k); both times include building
//   ..._lazy     SimGrid with its default network/optim:Lazy, which gives other finish times where many
//                flows contend (and overloads links: see tests/diff/flow_simgrid_test.cpp); else Full
//   ..._alone    Stepcast only, to see its growth
//
//   bench_simgrid [CASE...]      default: the cases of a few seconds
//
// SimGrid: S4U fat-tree zone, network/model CM02, crosstraffic 0, TCP-gamma 0: max-min where flows share in
// inverse proportion to the latency of their route. Where Stepcast builds nothing, routes are SimGrid's and
// asking for them is in neither time. Each case runs in a child process, so that its peak memory is its own.
#include <simgrid/s4u.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.hpp"
#include "sim/base/random.hpp"
#include "sim/engine/engine.hpp"
#include "sim/flow/solver.hpp"
#include "sim/run/link_paths.hpp"
#include "tests/support/topology_hardware.hpp"

namespace sg4 = simgrid::s4u;
using namespace stepcast;

namespace {

constexpr double kLinkBytesPerSecond = 12.5e9;
constexpr double kLatency_s = 0.5e-6;

struct FatTree {
  std::vector<unsigned> down;
  std::vector<unsigned> up;
  [[nodiscard]] std::uint32_t hosts() const {
    std::uint32_t n = 1;
    for (const unsigned d : down) n *= d;
    return n;
  }
};

// The same tree of ours: hosts of one GPU and one NIC.
topology::Fabric own_fabric(const FatTree& tree) {
  topology::ClusterHardware box = topology::test::pcie_box();
  box.node.gpus = 1;
  box.node.gpus_per_pcie_switch = 1;
  box.node.sockets = 1;
  box.gpus_per_node = 1;
  box.nic.line_rate = topology::test::gigabytes(kLinkBytesPerSecond / 1e9);
  box.nic.efficiency = topology::test::figure(1.0);
  scenario::Cluster cluster = topology::test::cluster_of(tree.hosts(), "clos-3tier");
  cluster.fabric->leaf_ports = tree.down[0];
  cluster.fabric->nodes_per_pod = tree.down[0] * tree.down[1];
  return topology::build_fabric(box, cluster);
}

struct FlowCase {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double bytes = 0.0;
  double latency_s = 0.0;
  std::vector<std::uint32_t> links;
  double finish_s = 0.0;  // SimGrid's
};

std::vector<FlowCase> loaded(std::uint32_t hosts, int flows_per_host) {
  Rng rng{7, "bench_simgrid"};
  std::vector<FlowCase> flows;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    for (int k = 0; k < flows_per_host; ++k) {
      auto to = static_cast<std::uint32_t>(rng.below(hosts - 1));
      if (to >= h) ++to;
      flows.push_back({.from = h, .to = to, .bytes = std::floor(90e6 + rng.uniform(0.0, 20e6))});
    }
  }
  return flows;
}

std::vector<FlowCase> permutation(std::uint32_t hosts) {
  Rng rng{7, "bench_simgrid"};
  std::vector<std::uint32_t> order(hosts);
  for (std::uint32_t h = 0; h < hosts; ++h) order[h] = h;
  for (std::uint32_t h = hosts - 1; h > 0; --h) std::swap(order[h], order[rng.below(h + 1)]);
  std::vector<FlowCase> flows;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    flows.push_back({.from = order[h], .to = order[(h + 1) % hosts], .bytes = std::floor(90e6 + rng.uniform(0.0, 20e6))});
  }
  return flows;
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct Ours : engine::EventTarget {
  Ours(std::vector<FlowCase>& cases, std::size_t links) : cases_{cases}, index_(cases.size()), left_(cases.size()),
        since_(cases.size()), rate_(cases.size(), 0.0), end_(cases.size()), finish_s(cases.size()) {
    for (std::size_t l = 0; l < links; ++l) solver_.add_link(kLinkBytesPerSecond);
    for (std::uint32_t f = 0; f < cases.size(); ++f)
      engine_.at(TimePoint::at(Duration::from_seconds(cases[f].latency_s)), engine::Phase::kDispatch, *this, 0, f);
  }
  void run() { engine_.run(); }
  void on_event(engine::Engine& engine, std::uint32_t kind, std::uint64_t arg) override {
    const auto f = static_cast<std::uint32_t>(arg);
    if (kind == 2) return solve();
    if (kind == 0) {
      uses_.clear();
      for (const std::uint32_t link : cases_[f].links) uses_.push_back({flow::LinkIndex{link}});
      index_[f] = solver_.add_flow(uses_, 1.0 / cases_[f].latency_s);
      if (index_[f].index() >= flow_of_.size()) flow_of_.resize(index_[f].index() + 1);
      flow_of_[index_[f].index()] = f;
      left_[f] = cases_[f].bytes;
      since_[f] = engine.now();
    } else {
      finish_s[f] = engine.now().seconds();
      solver_.remove_flow(index_[f]);
    }
    if (dirty_) return;
    dirty_ = true;
    engine.at(engine.now(), engine::Phase::kSolve, *this, 2);
  }

 private:
  void solve() {
    dirty_ = false;
    ++solves;
    for (const flow::FlowIndex index : solver_.solve()) {
      const std::uint32_t f = flow_of_[index.index()];
      left_[f] = std::max(0.0, left_[f] - rate_[f] * (engine_.now() - since_[f]).seconds());
      since_[f] = engine_.now();
      rate_[f] = solver_.rate(index);
      engine_.cancel(end_[f]);
      end_[f] = engine_.after(Duration::from_seconds(left_[f] / rate_[f]), engine::Phase::kCompletion, *this, 1, f);
    }
    reach += solver_.last_reach();
  }
  std::vector<FlowCase>& cases_;
  engine::Engine engine_;
  flow::Solver solver_;
  std::vector<flow::FlowIndex> index_;
  std::vector<std::uint32_t> flow_of_;
  std::vector<double> left_;
  std::vector<TimePoint> since_;
  std::vector<double> rate_;
  std::vector<engine::EventId> end_;
  std::vector<flow::Use> uses_;
  bool dirty_ = false;

 public:
  std::vector<double> finish_s;
  std::uint64_t solves = 0;
  std::uint64_t reach = 0;
};

// Routes every flow over our own fabric; returns the number of links.
std::size_t route(const topology::Fabric& fabric, std::vector<FlowCase>& flows) {
  const run::PathRules rules{.policy = network::PathPolicy::kPinned};
  run::LinkPaths paths{fabric, rules};
  std::vector<run::BundleUse> uses;
  for (FlowCase& flow : flows) {
    uses.clear();
    paths.add({.from_port = flow.from, .to_port = flow.to, .local_qp = 0, .remote_qp = 0}, 1.0, 0, uses);
    flow.links.clear();
    for (const run::BundleUse& use : uses) flow.links.push_back(use.bundle);
    flow.latency_s = kLatency_s * static_cast<double>(uses.size());
  }
  return paths.slots().size();
}

double run_simgrid(sg4::Engine& simgrid, const std::vector<sg4::Host*>& hosts, std::vector<FlowCase>& flows) {
  const double start = bench::cpu_seconds();
  sg4::Comm::on_completion_cb([&flows](const sg4::Activity& comm) {
    flows[static_cast<std::size_t>(std::stoul(comm.get_name()))].finish_s = sg4::Engine::get_clock();
  });
  std::vector<sg4::CommPtr> running;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    running.push_back(sg4::Comm::sendto_init(hosts[flows[f].from], hosts[flows[f].to]));
    running.back()->set_payload_size(static_cast<std::uint64_t>(flows[f].bytes));
    running.back()->set_name(std::to_string(f));
    running.back()->vetoable_start();
  }
  simgrid.run();
  const double seconds = bench::cpu_seconds() - start;
  for (sg4::CommPtr& comm : running) intrusive_ptr_add_ref(comm.get());  // the engine's shutdown wants them no more
  return seconds;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void run_case(const std::string& name, const FatTree& tree, std::vector<FlowCase> flows) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child != 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  std::string program = "bench_simgrid";
  std::string quiet = "--log=root.thresh:error";
  char* arguments[] = {program.data(), quiet.data(), nullptr};
  int count = 2;
  const double build_start = bench::cpu_seconds();
  sg4::Engine simgrid(&count, arguments);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config(ends_with(name, "_lazy") ? "network/optim:Lazy" : "network/optim:Full");
  const unsigned levels = static_cast<unsigned>(tree.down.size());
  std::vector<sg4::Host*> hosts(tree.hosts());
  const auto make_host = [&hosts](sg4::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    sg4::Host* host = zone->create_host("h" + std::to_string(id), 1e9)->seal();
    hosts[id] = host;
    return std::make_pair(host->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  sg4::NetZone* zone = sg4::create_fatTree_zone(
      "tree", nullptr, sg4::FatTreeParams(levels, tree.down, tree.up, std::vector<unsigned>(levels, 1)),
      sg4::ClusterCallbacks(make_host), kLinkBytesPerSecond, kLatency_s, sg4::Link::SharingPolicy::SPLITDUPLEX);
  zone->seal();
  const double build_s = bench::cpu_seconds() - build_start;

  const bool builds = name.rfind("perm_", 0) == 0;
  std::map<std::string, std::uint32_t> number;
  for (FlowCase& flow : flows) {
    if (builds) break;
    std::vector<sg4::Link*> links;
    flow.latency_s = 0.0;
    hosts[flow.from]->route_to(hosts[flow.to], links, &flow.latency_s);
    for (const sg4::Link* link : links) {
      flow.links.push_back(number.try_emplace(link->get_name(), static_cast<std::uint32_t>(number.size())).first->second);
    }
  }

  const double before_mib = peak_mib();
  const double own_build_start = bench::cpu_seconds();
  const std::size_t link_count = builds ? route(own_fabric(tree), flows) : number.size();
  const double own_build_s = builds ? bench::cpu_seconds() - own_build_start : 0.0;
  const double start = bench::cpu_seconds();
  Ours ours(flows, link_count);
  ours.run();
  const double ours_s = bench::cpu_seconds() - start;
  const double ours_mib = peak_mib() - before_mib;

  const auto solves = static_cast<double>(ours.solves);
  const double us_per_solve = ours_s / solves * 1e6;
  const double reach = static_cast<double>(ours.reach) / solves;
  if (ends_with(name, "_alone")) {
    fmt::print("{},{},{},{:.3f},,{:.3f},{:.3f},,,{:.2f},{:.1f},{:.1f}\n", name, tree.hosts(), flows.size(), build_s, own_build_s,
               ours_s, us_per_solve, reach, ours_mib);
  } else {
    const double peer_s = run_simgrid(simgrid, hosts, flows);
    double worst = 0.0;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      worst = std::max(worst, std::abs(ours.finish_s[f] / flows[f].finish_s - 1.0));
    }
    const double ratio = builds ? (build_s + peer_s) / (own_build_s + ours_s) : peer_s / ours_s;
    fmt::print("{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.1f},{:.1e},{:.2f},{:.1f},{:.1f}\n", name, tree.hosts(), flows.size(), build_s,
               peer_s, own_build_s, ours_s, ratio, worst, us_per_solve, reach, ours_mib);
  }
  std::fflush(stdout);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const FatTree t256{{8, 8, 4}, {1, 8, 8}};
  const FatTree t1024{{16, 8, 8}, {1, 16, 8}};
  const FatTree t4096{{16, 16, 16}, {1, 16, 16}};
  const FatTree t16384{{32, 32, 16}, {1, 32, 32}};
  struct Case {
    std::string name;
    FatTree tree;
    int flows_per_host;  // 0: a permutation
  };
  const std::vector<Case> cases{{"loaded_256_4", t256, 4},        {"loaded_256_4_lazy", t256, 4},
                                {"perm_1024", t1024, 0},          {"loaded_1024_4_alone", t1024, 4},
                                {"loaded_4096_4_alone", t4096, 4}, {"loaded_16384_4_alone", t16384, 4},
                                {"loaded_1024_4", t1024, 4},      {"loaded_1024_4_lazy", t1024, 4},
                                {"perm_16384", t16384, 0},        {"perm_16384_lazy", t16384, 0},
                                {"perm_1024_lazy", t1024, 0}};
  constexpr std::size_t kShort = 4;
  fmt::print("case,hosts,flows,simgrid_build_s,simgrid_s,stepcast_build_s,stepcast_s,ratio,worst_difference,us_per_solve,reach,stepcast_mib\n");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const bool named = std::any_of(argv + 1, argv + argc, [&](const char* word) { return c.name == word; });
    if (argc > 1 ? !named : i >= kShort) continue;
    run_case(c.name, c.tree, c.flows_per_host == 0 ? permutation(c.tree.hosts()) : loaded(c.tree.hosts(), c.flows_per_host));
  }
}
