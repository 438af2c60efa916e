// bench_congestion — what congestion control leaves of a link that several senders share, by the packet models: the table
// behind models/network/congestion.hpp.
//
//   bench_congestion > calibration/data/congestion.csv
//
// System   four receivers on one leaf; `fan_in` other leaves with four senders each; sender j of every leaf sends
//          `size` bytes to receiver j. Every sending leaf has 4 / oversubscription up-links of the hosts' rate, each to a
//          spine of its own and from there to the receivers' leaf. So a receiver's port has fan_in sources and an up-link
//          `oversubscription` of them, and every flow meets both.
// Column   eta = (T - T0) of the plain fluid / (T - T0) of the packets; T: last byte acknowledged, mean over seeds; T0: the same
//          with a single sender and 1/64 of the bytes, less its bytes' time: what latency takes.
// Rates    400 Gb/s, 1 us a link; 4 MB, and 1 MB and 16 MB as held-out sizes
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "models/network/transport/transport_models.hpp"

using namespace stepcast;
using namespace stepcast::network;

namespace {

constexpr double kRate = 50e9;  // [B/s]
constexpr std::uint32_t kReceivers = 4;

struct Case {
  std::string transport;
  std::uint32_t fan_in = 1;
  std::uint32_t oversubscription = 1;
  double bytes = 4e6;
};

class Builder {
 public:
  explicit Builder(const Case& what) {
    const std::uint32_t uplinks = kReceivers / what.oversubscription;
    const std::uint32_t target_leaf = next_++;
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t j = 0; j < kReceivers; ++j) receivers.push_back(next_++);
    std::vector<std::uint32_t> down;
    std::vector<std::uint32_t> down_back;
    for (const std::uint32_t receiver : receivers) both(target_leaf, receiver, down, down_back);
    for (std::uint32_t i = 0; i < what.fan_in; ++i) {
      const std::uint32_t leaf = next_++;
      std::vector<std::uint32_t> up, up_back, over, over_back;
      for (std::uint32_t u = 0; u < uplinks; ++u) {
        const std::uint32_t spine = next_++;
        both(leaf, spine, up, up_back);
        both(spine, target_leaf, over, over_back);
      }
      for (std::uint32_t j = 0; j < kReceivers; ++j) {
        std::vector<std::uint32_t> out, out_back;
        both(next_++, leaf, out, out_back);
        const std::uint32_t u = j % uplinks;
        const auto route = static_cast<std::uint32_t>(traffic.routes.size());
        traffic.routes.push_back({out[0], up[u], over[u], down[j]});
        traffic.routes.push_back({down_back[j], over_back[u], up_back[u], out_back[0]});
        traffic.messages.push_back({.bytes = what.bytes, .start = {}, .routes = {route}, .back_routes = {route + 1}, .after = {}});
      }
    }
  }

  Traffic traffic;

 private:
  void both(std::uint32_t a, std::uint32_t b, std::vector<std::uint32_t>& there, std::vector<std::uint32_t>& back) {
    there.push_back(wire(a, b));
    back.push_back(wire(b, a));
  }
  std::uint32_t wire(std::uint32_t from, std::uint32_t to) {
    traffic.wires.push_back({kRate, Duration::microseconds(1), from, to});
    return static_cast<std::uint32_t>(traffic.wires.size() - 1);
  }
  std::uint32_t next_ = 0;
};

double makespan_s(const Case& what, std::uint64_t seed) {
  const Builder built{what};
  double last = 0.0;
  for (const Completion& c : find_transport(what.transport)->run(built.traffic, {.seed = seed, .quantum = 1})) last = std::max(last, (c.end - TimePoint{}).seconds());
  return last;
}

// Less what a single short message takes beyond its bytes.
double moving_s(const Case& what, std::uint64_t seed) {
  Case alone = what;
  alone.fan_in = alone.oversubscription = 1;
  Case shorter = alone;
  shorter.bytes = what.bytes / 64.0;
  const double per_byte = (makespan_s(alone, seed) - makespan_s(shorter, seed)) / (alone.bytes - shorter.bytes);
  return makespan_s(what, seed) - (makespan_s(shorter, seed) - per_byte * shorter.bytes);
}

double eta(Case what) {
  constexpr int kSeeds = 3;
  double packets = 0.0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) packets += moving_s(what, seed) / kSeeds;
  what.transport = "plain";
  return moving_s(what, 1) / packets;
}

}  // namespace

int main() {
  std::vector<Case> cases;
  for (const char* transport : {"roce_pfc", "ndp", "eqds", "uec"}) {
    for (const double bytes : {4e6, 1e6, 16e6}) {
      for (const std::uint32_t fan_in : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
        for (const std::uint32_t oversubscription : {1U, 2U, 4U}) {
          if (bytes > 4e6 && fan_in > 16) continue;  // minutes, for what the others show
          cases.push_back({transport, fan_in, oversubscription, bytes});
        }
      }
    }
  }
  std::vector<double> etas(cases.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) etas[i] = eta(cases[i]);
  };
  std::vector<std::jthread> others;
  for (unsigned t = 1; t < std::max(1U, std::thread::hardware_concurrency()); ++t) others.emplace_back(work);
  work();
  others.clear();
  fmt::print("transport,fan_in,oversubscription,size_bytes,eta\n");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    fmt::print("{},{},{},{:.0f},{:.4f}\n", cases[i].transport, cases[i].fan_in, cases[i].oversubscription, cases[i].bytes, etas[i]);
  }
}
