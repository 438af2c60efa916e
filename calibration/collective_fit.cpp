#include "calibration/collective_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace stepcast::calibration {
namespace {

using collective::Protocol;

constexpr double kStray = 0.7;       // |ln| from which on a point counts a tenth
constexpr double kTie = 0.002;       // to the prior, per squared log distance
constexpr double kFar = 4.0;         // steps for figures without a prior
constexpr std::array kSteps{10.0, 3.0, 1.6, 1.25, 1.1, 1.04, 1.01};

constexpr std::size_t at(Protocol protocol) { return static_cast<std::size_t>(protocol); }

struct Knob {
  double* value;
  double prior;
  double least;
  double most;
  bool tied = true; // to its prior
};

Knob knob(double& value) { return {&value, value, 0.0, 1e300, true}; }
// An efficiency; far below what links carry it would stand for something that the model lacks.
Knob share(double& value) { return {&value, value, 0.45, 1.0, true}; }
// Volta's trees move 0.6 of what the NICs do, on two clusters of four and eight NICs a host alike.
Knob tree_share(double& value) { return {&value, value, 0.55, 1.0, true}; }
// Any other network's latency beyond InfiniBand's.
Knob free_latency(double& value) { return {&value, value, 1e-8, 2e-3, false}; }

double cost_of(std::span<const CollectivePoint> points, const Figures& figures, std::span<const Knob> knobs) {
  std::map<std::size_t, std::pair<double, double>> logs;  // sum, count
  for (const CollectivePoint& point : points) {
    auto& [sum, count] = logs[point.log];
    const double miss = std::abs(std::log(forecast_s(point, figures) / point.measured_s));
    sum += miss < kStray ? miss : kStray + 0.1 * (miss - kStray);
    count += 1.0;
  }
  double cost = 0.0;
  for (const auto& [log, mean] : logs) cost += mean.first / mean.second;
  cost /= static_cast<double>(logs.size());
  for (const Knob& k : knobs) {
    if (k.tied) cost += kTie * std::pow(std::log(*k.value / k.prior), 2.0);
  }
  return cost;
}

// `follow` copies what hangs on the figures after each change.
template <class Follow>
void search(std::span<const CollectivePoint> points, Figures& figures, std::span<const Knob> knobs, Follow follow) {
  double best = cost_of(points, figures, knobs);
  for (const double step : kSteps) {
    for (bool better = true; better;) {
      better = false;
      for (const Knob& k : knobs) {
        if (k.tied && step > kFar) continue;
        for (const double factor : {step, 1.0 / step}) {
          const double before = *k.value;
          *k.value = std::clamp(before * factor, k.least, k.most);
          follow(figures);
          const double now = cost_of(points, figures, knobs);
          if (now < best - 1e-9) {
            best = now;
            better = true;
            break;
          }
          *k.value = before;
          follow(figures);
        }
      }
    }
  }
}

// A figure that the fit left where it was is NCCL's, or a guess of ours, still.
std::string figure(const char* key, const std::string& value, const std::string& before, const std::string& source, int indent) {
  const bool moved = value != before;
  return fmt::format("{:{}}{}: {{value: {}, basis: {}, source: \"{}\"}}\n", "", indent, key, value, moved ? "measured" : "assumed",
                     moved ? source : "the prior of the fit, which the points do not move");
}
std::string us(double seconds) { return fmt::format("{:.3g} us", seconds * 1e6); }
std::string rate(double bytes_per_s) {
  const double value = bytes_per_s * 1e-9;
  return value < 1000.0 ? fmt::format("{:.3g} GB/s", value) : fmt::format("{:.0f} GB/s", 10.0 * std::round(value / 10.0));  // no exponent
}
std::string number(double value) { return fmt::format("{:.3g}", value); }
std::string bytes(double value) { return fmt::format("{:.0f} B", std::round(value / 1e4) * 1e4); }

// Figures as structs, to as many digits as the text has.
struct Maker {
  const std::string& source;

  static double rounded(double value) {
    const double scale = value == 0.0 ? 1.0 : std::pow(10.0, 2.0 - std::floor(std::log10(std::abs(value))));
    return std::round(value * scale) / scale;
  }
  template <class T>
  topology::Figure<T> figure(T value, bool moved) const {
    if (moved) return {value, topology::Basis::kMeasured, source};
    return {value, topology::Basis::kAssumed, "the prior of the fit, which the points do not move"};
  }
  topology::Figure<Duration> duration(double value, double before) const { return figure(Duration::from_seconds(rounded(value)), value != before); }
  topology::Figure<Bandwidth> rate(double value, double before) const { return figure(Bandwidth::from_si(rounded(value)), value != before); }
  topology::Figure<double> number(double value, double before) const { return figure(rounded(value), value != before); }
  topology::Figure<Bytes> bytes(double value, double before) const {
    return figure(Bytes{std::llround(value / 1e4) * 10000}, value != before);
  }
};

}  // namespace

double forecast_s(const CollectivePoint& point, const Figures& figures) {
  const collective::Choice choice = collective::choose(point.kind, point.bytes, point.layout, point.idle, point.forced, figures.parameters);
  double r = point.idle[static_cast<std::size_t>(choice.algorithm)].whole;
  if (choice.rate_cap) r = std::min(r, *choice.rate_cap);
  const double alone = choice.latency.seconds() + choice.wire_bytes / r;
  const double partners = point.kind == plan::CollectiveKind::kAllToAll      ? static_cast<double>(point.layout.ranks - 1)
                          : point.kind == plan::CollectiveKind::kSendReceive ? 1.0
                                                                             : 0.0;
  const double issuing = static_cast<double>(point.gpus_per_process) * (figures.host.launch_s + 2.0 * partners * figures.host.issue_s);
  return std::max(alone, issuing);
}

double relative_error(const CollectivePoint& point, const Figures& figures) { return forecast_s(point, figures) / point.measured_s - 1.0; }

Figures prior_for_fit(collective::Parameters parameters, bool nvlink) {
  constexpr double kChunks = 16.0 * 512.0 * 1024.0;
  constexpr double kCopy = 50e9;  // [B/s] of a channel, guessed
  parameters.local.efficiency = {1.0, 0.98, 0.96};
  parameters.local.pairwise_efficiency = 0.92;
  parameters.local.own_rate = parameters.local.pairwise_own_rate = (nvlink ? 16.0 : 2.0) * kCopy;
  parameters.local.fill = {.share = 0.4, .bytes = kChunks};
  if (!nvlink) {
    parameters.local.ring_nvlink_s = parameters.local.ring_pcie_s;
    parameters.local.pair_ceiling = 25e9;
    parameters.local.fill.share = 0.05;  // a PCIe hop of a chunk is short beside what follows it
  }
  parameters.network.latency_s = 1e-6;
  parameters.network.ll128_ceiling = 7.5e9;
  parameters.network.fill = {.share = 0.4, .bytes = kChunks / 4.0};
  return {parameters, {}};
}

Figures prior_of_links(Figures prior, std::span<const CollectivePoint> points) {
  double carried = 0.0;
  for (const CollectivePoint& point : points)
    carried = std::max(carried, point.idle[static_cast<std::size_t>(collective::Algorithm::kRing)].whole / prior.parameters.wire_factor[at(Protocol::kLl)]);
  if (carried > 0.0) prior.parameters.network.ll_ceiling = std::min(prior.parameters.network.ll_ceiling, carried);
  return prior;
}

Figures fit_local(std::span<const CollectivePoint> points, Figures prior) {
  Figures figures = prior;
  collective::LocalParameters& p = figures.parameters.local;
  std::vector<Knob> knobs{
      knob(p.ring_base_s[0]), knob(p.ring_base_s[1]), knob(p.ring_base_s[2]), knob(p.ring_nvlink_s[0]), knob(p.ring_nvlink_s[1]),
      knob(p.ring_nvlink_s[2]), knob(p.ll_ceiling), share(p.efficiency[at(Protocol::kLl128)]), share(p.efficiency[at(Protocol::kSimple)]),
      knob(p.nvls_s), share(p.nvls_efficiency), knob(p.pairwise_ll_base_s), knob(p.pairwise_simple_base_s), knob(p.pairwise_ll_ceiling),
      share(p.pairwise_efficiency), knob(p.own_rate), knob(p.pairwise_own_rate), knob(p.fill.share), knob(p.fill.bytes), knob(figures.host.launch_s), knob(figures.host.issue_s)};
  if (p.pair_ceiling < collective::kNoCeiling) knobs.push_back(knob(p.pair_ceiling));
  search(points, figures, knobs, [](Figures& f) {
    f.parameters.local.tree_base_s = f.parameters.local.ring_base_s;
    f.parameters.local.ring_pcie_s = f.parameters.local.ring_nvlink_s;
  });
  return figures;
}

Figures fit_network(std::span<const CollectivePoint> points, Figures prior) {
  Figures figures = prior;
  collective::NetworkParameters& p = figures.parameters.network;
  const bool infiniband = std::all_of(points.begin(), points.end(), [](const CollectivePoint& point) { return point.infiniband; });
  std::vector<Knob> knobs{
      infiniband ? knob(p.latency_s) : free_latency(p.latency_s), knob(p.ring_s[at(Protocol::kSimple)]), knob(p.nvls_tree_s), knob(p.ll_ceiling), knob(p.ll128_ceiling),
      tree_share(p.tree_efficiency), knob(p.fill.share), knob(p.fill.bytes)};
  if (p.simple_ceiling < collective::kNoCeiling) knobs.push_back(knob(p.simple_ceiling));
  search(points, figures, knobs, [](Figures& f) { f.parameters.network.tree_s[2] = f.parameters.network.ring_s[2]; });
  return figures;
}

LocalCollectives local_collectives(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error) {
  const collective::LocalParameters& p = figures.parameters.local;
  const collective::LocalParameters& q = prior.parameters.local;
  const Maker make{source};
  LocalCollectives local;
  local.ll_base = make.duration(p.ring_base_s[0], q.ring_base_s[0]);
  local.ll128_base = make.duration(p.ring_base_s[1], q.ring_base_s[1]);
  local.simple_base = make.duration(p.ring_base_s[2], q.ring_base_s[2]);
  local.ll_hop = make.duration(p.ring_nvlink_s[0], q.ring_nvlink_s[0]);
  local.ll128_hop = make.duration(p.ring_nvlink_s[1], q.ring_nvlink_s[1]);
  local.simple_hop = make.duration(p.ring_nvlink_s[2], q.ring_nvlink_s[2]);
  local.ll_ceiling = make.rate(p.ll_ceiling, q.ll_ceiling);
  local.ll128_efficiency = make.number(p.efficiency[at(Protocol::kLl128)], q.efficiency[at(Protocol::kLl128)]);
  local.simple_efficiency = make.number(p.efficiency[at(Protocol::kSimple)], q.efficiency[at(Protocol::kSimple)]);
  local.nvls_base = make.duration(p.nvls_s, q.nvls_s);
  local.nvls_efficiency = make.number(p.nvls_efficiency, q.nvls_efficiency);
  local.pairwise_ll_base = make.duration(p.pairwise_ll_base_s, q.pairwise_ll_base_s);
  local.pairwise_simple_base = make.duration(p.pairwise_simple_base_s, q.pairwise_simple_base_s);
  local.pairwise_ll_ceiling = make.rate(p.pairwise_ll_ceiling, q.pairwise_ll_ceiling);
  local.pairwise_efficiency = make.number(p.pairwise_efficiency, q.pairwise_efficiency);
  if (p.pair_ceiling < collective::kNoCeiling) local.pair_ceiling = make.rate(p.pair_ceiling, q.pair_ceiling);
  local.own_rate = make.rate(p.own_rate, q.own_rate);
  local.pairwise_own_rate = make.rate(p.pairwise_own_rate, q.pairwise_own_rate);
  local.fill_share = make.number(p.fill.share, q.fill.share);
  local.fill_bytes = make.bytes(p.fill.bytes, q.fill.bytes);
  local.launch = make.duration(figures.host.launch_s, prior.host.launch_s);
  local.issue = make.duration(figures.host.issue_s, prior.host.issue_s);
  local.error = error;
  return local;
}

NetworkCollectives network_collectives(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error) {
  const collective::NetworkParameters& p = figures.parameters.network;
  const collective::NetworkParameters& q = prior.parameters.network;
  const Maker make{source};
  NetworkCollectives network;
  network.latency = make.duration(p.latency_s, q.latency_s);
  network.simple_hop = make.duration(p.ring_s[at(Protocol::kSimple)], q.ring_s[at(Protocol::kSimple)]);
  network.nvls_tree_hop = make.duration(p.nvls_tree_s, q.nvls_tree_s);
  network.ll_ceiling = make.rate(p.ll_ceiling, q.ll_ceiling);
  network.nic_ll128_ceiling = make.rate(p.ll128_ceiling, q.ll128_ceiling);
  if (p.simple_ceiling < collective::kNoCeiling) network.simple_ceiling = make.rate(p.simple_ceiling, q.simple_ceiling);
  network.tree_efficiency = make.number(p.tree_efficiency, q.tree_efficiency);
  network.fill_share = make.number(p.fill.share, q.fill.share);
  network.nic_fill_bytes = make.bytes(p.fill.bytes, q.fill.bytes);
  network.error = error;
  return network;
}

std::string local_yaml(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error) {
  const collective::LocalParameters& p = figures.parameters.local;
  const collective::LocalParameters& q = prior.parameters.local;
  std::string text = "collectives:\n";
  const auto add = [&](const char* key, const std::string& value, const std::string& before) { text += figure(key, value, before, source, 2); };
  add("ll_base", us(p.ring_base_s[0]), us(q.ring_base_s[0]));
  add("ll128_base", us(p.ring_base_s[1]), us(q.ring_base_s[1]));
  add("simple_base", us(p.ring_base_s[2]), us(q.ring_base_s[2]));
  add("ll_hop", us(p.ring_nvlink_s[0]), us(q.ring_nvlink_s[0]));
  add("ll128_hop", us(p.ring_nvlink_s[1]), us(q.ring_nvlink_s[1]));
  add("simple_hop", us(p.ring_nvlink_s[2]), us(q.ring_nvlink_s[2]));
  add("ll_ceiling", rate(p.ll_ceiling), rate(q.ll_ceiling));
  add("ll128_efficiency", number(p.efficiency[at(Protocol::kLl128)]), number(q.efficiency[at(Protocol::kLl128)]));
  add("simple_efficiency", number(p.efficiency[at(Protocol::kSimple)]), number(q.efficiency[at(Protocol::kSimple)]));
  add("nvls_base", us(p.nvls_s), us(q.nvls_s));
  add("nvls_efficiency", number(p.nvls_efficiency), number(q.nvls_efficiency));
  add("pairwise_ll_base", us(p.pairwise_ll_base_s), us(q.pairwise_ll_base_s));
  add("pairwise_simple_base", us(p.pairwise_simple_base_s), us(q.pairwise_simple_base_s));
  add("pairwise_ll_ceiling", rate(p.pairwise_ll_ceiling), rate(q.pairwise_ll_ceiling));
  add("pairwise_efficiency", number(p.pairwise_efficiency), number(q.pairwise_efficiency));
  if (p.pair_ceiling < collective::kNoCeiling) add("pair_ceiling", rate(p.pair_ceiling), rate(q.pair_ceiling));
  add("own_rate", rate(p.own_rate), rate(q.own_rate));
  add("pairwise_own_rate", rate(p.pairwise_own_rate), rate(q.pairwise_own_rate));
  add("fill_share", number(p.fill.share), number(q.fill.share));
  add("fill_bytes", bytes(p.fill.bytes), bytes(q.fill.bytes));
  add("launch", us(figures.host.launch_s), us(prior.host.launch_s));
  add("issue", us(figures.host.issue_s), us(prior.host.issue_s));
  return text + fmt::format("  error: \"{}\"\n", error);
}

std::string network_yaml(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error) {
  const collective::NetworkParameters& p = figures.parameters.network;
  const collective::NetworkParameters& q = prior.parameters.network;
  std::string text;
  const auto add = [&](const char* key, const std::string& value, const std::string& before) { text += figure(key, value, before, source, 0); };
  add("latency", us(p.latency_s), us(q.latency_s));
  add("simple_hop", us(p.ring_s[at(Protocol::kSimple)]), us(q.ring_s[at(Protocol::kSimple)]));
  add("nvls_tree_hop", us(p.nvls_tree_s), us(q.nvls_tree_s));
  add("ll_ceiling", rate(p.ll_ceiling), rate(q.ll_ceiling));
  add("nic_ll128_ceiling", rate(p.ll128_ceiling), rate(q.ll128_ceiling));
  if (p.simple_ceiling < collective::kNoCeiling) add("simple_ceiling", rate(p.simple_ceiling), rate(q.simple_ceiling));
  add("tree_efficiency", number(p.tree_efficiency), number(q.tree_efficiency));
  add("fill_share", number(p.fill.share), number(q.fill.share));
  add("nic_fill_bytes", bytes(p.fill.bytes), bytes(q.fill.bytes));
  return text + fmt::format("error: \"{}\"\n", error);
}

}  // namespace stepcast::calibration
