// The flow solver: changes per second. One change is a flow removed, a flow like it added, and a solve.
//
//   private   100,000 flows, each on 20 links of its own: a change must not see the others
//   hosts_N   N flows between N/4 hosts of a fabric with 2:1 oversubscribed leaf uplinks (64 hosts a
//             leaf): nearly everything is one component
//   hosts_N_nonblocking   the same fabric without oversubscription
//   naive_N   Method::kFull on the same changes
// `reach` rows give the mean number of flows that one solve looks at.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness.hpp"
#include "sim/base/random.hpp"
#include "sim/flow/solver.hpp"

using namespace stepcast;
using namespace stepcast::bench;
using namespace stepcast::flow;

namespace {

class Private {
 public:
  Private() {
    for (int f = 0; f < 100'000; ++f) {
      std::vector<Use> uses;
      for (int l = 0; l < 20; ++l) uses.push_back({net_.add_link(50e9 + l), 1.875});
      flows_.push_back(net_.add_flow(uses));
      uses_.push_back(std::move(uses));
    }
    net_.solve();
  }
  std::uint64_t run() {
    constexpr std::uint64_t kChanges = 500'000;
    for (std::uint64_t i = 0; i < kChanges; ++i) {
      const std::size_t victim = rng_.below(flows_.size());
      net_.remove_flow(flows_[victim]);
      net_.solve();
      flows_[victim] = net_.add_flow(uses_[victim]);
      net_.solve();
    }
    return kChanges;
  }

 private:
  Solver net_;
  std::vector<FlowIndex> flows_;
  std::vector<std::vector<Use>> uses_;
  Rng rng_{1, "bench_flow"};
};

class Hosts {
 public:
  Hosts(std::uint32_t flows, double oversubscription, Method method) : net_{method}, hosts_{flows / 4} {
    constexpr double kHost = 50e9;
    const std::uint32_t leaves = (hosts_ + kHostsPerLeaf - 1) / kHostsPerLeaf;
    for (std::uint32_t h = 0; h < hosts_; ++h) out_.push_back(net_.add_link(kHost));
    for (std::uint32_t h = 0; h < hosts_; ++h) in_.push_back(net_.add_link(kHost));
    for (std::uint32_t l = 0; l < leaves * kSpines; ++l) {
      const double uplink = kHost * kHostsPerLeaf / kSpines / oversubscription;
      up_.push_back(net_.add_link(uplink));
      down_.push_back(net_.add_link(uplink));
    }
    for (std::uint32_t f = 0; f < flows; ++f) flows_.push_back(add());
    net_.solve();
  }
  std::uint64_t run(std::uint64_t changes) {
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t victim = rng_.below(flows_.size());
      net_.remove_flow(flows_[victim]);
      flows_[victim] = add();
      net_.solve();
      reached_ += net_.last_reach();
    }
    changes_ += changes;
    return changes;
  }
  [[nodiscard]] double mean_reach() const {
    return static_cast<double>(reached_) / static_cast<double>(changes_);
  }

 private:
  static constexpr std::uint32_t kHostsPerLeaf = 64;
  static constexpr std::uint32_t kSpines = 16;

  FlowIndex add() {
    const auto from = static_cast<std::uint32_t>(rng_.below(hosts_));
    const auto to = static_cast<std::uint32_t>(rng_.below(hosts_));
    const auto spine = static_cast<std::uint32_t>(rng_.below(kSpines));
    std::vector<Use> uses = {{out_[from]}, {in_[to]}};
    if (from / kHostsPerLeaf != to / kHostsPerLeaf) {
      uses.push_back({up_[from / kHostsPerLeaf * kSpines + spine]});
      uses.push_back({down_[to / kHostsPerLeaf * kSpines + spine]});
    }
    return net_.add_flow(uses);
  }

  Solver net_;
  std::uint32_t hosts_;
  std::vector<LinkIndex> out_;
  std::vector<LinkIndex> in_;
  std::vector<LinkIndex> up_;
  std::vector<LinkIndex> down_;
  std::vector<FlowIndex> flows_;
  Rng rng_{1, "bench_flow"};
  std::uint64_t reached_ = 0;
  std::uint64_t changes_ = 0;
};

void hosts(const Options& options, std::uint32_t flows, double oversubscription, const std::string& name,
           std::uint64_t changes, std::uint64_t naive_changes) {
  double baseline = 0.0;
  if (naive_changes > 0) {
    Hosts naive(flows, oversubscription, Method::kFull);
    const Sample sample = measure(options, [&] { return naive.run(naive_changes); });
    print_row(options, "flow_naive", name, "changes/s", sample);
    baseline = sample.median;
  }
  Hosts model(flows, oversubscription, Method::kIncremental);
  const Sample sample = measure(options, [&] { return model.run(changes); });
  print_row(options, "flow", name, "changes/s", sample, baseline > 0.0 ? sample.median / baseline : 0.0);
  const double reach = model.mean_reach();
  print_row(options, "flow_reach", name, "flows", {reach, reach, reach});
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  print_header();
  {
    Private model;
    print_row(options, "flow", "private_100000x20", "changes/s", measure(options, [&] { return model.run(); }));
  }
  hosts(options, 64, 2.0, "small_hosts_64", 20'000, 2'000);
  hosts(options, 1'024, 2.0, "medium_hosts_1024", 2'000, 20);
  hosts(options, 8'192, 2.0, "large_hosts_8192", 200, 2);
  hosts(options, 65'536, 2.0, "huge_hosts_65536", 10, 0);
  hosts(options, 8'192, 1.0, "large_hosts_8192_nonblocking", 200, 0);
}
