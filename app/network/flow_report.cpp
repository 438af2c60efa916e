#include "app/network/flow_report.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "app/forecast/forecast_json.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::size_t kBusiest = 8;

double seconds(TimePoint time) { return (time - TimePoint{}).seconds(); }

double nearest_rank(const std::vector<double>& sorted, double fraction) {
  const auto rank = static_cast<std::size_t>(fraction * static_cast<double>(sorted.size()) + 0.999999);
  return sorted[std::min(std::max<std::size_t>(rank, 1), sorted.size()) - 1];
}

std::vector<TierLoad> tiers_of(const topology::LinkSlots& slots, const std::vector<double>& carried, double makespan_s) {
  std::map<std::pair<topology::DeviceKind, topology::DeviceKind>, TierLoad> tiers;
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (!slots.carries(slot)) continue;
    const auto [from, to] = slots.kinds(slot);
    TierLoad& tier = tiers.try_emplace({from, to}, TierLoad{.from = from, .to = to}).first->second;
    const double utilisation = carried[slot] / (slots.capacity(slot) * makespan_s);
    ++tier.links;
    tier.mean_utilisation += utilisation;
    tier.most_utilisation = std::max(tier.most_utilisation, utilisation);
    tier.imbalance = std::max(tier.imbalance, carried[slot]);
  }
  std::map<std::pair<topology::DeviceKind, topology::DeviceKind>, double> total;
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (slots.carries(slot)) total[slots.kinds(slot)] += carried[slot];
  }
  std::vector<TierLoad> used;
  for (auto& [kinds, tier] : tiers) {
    if (total[kinds] == 0.0) continue;
    tier.mean_utilisation /= static_cast<double>(tier.links);
    tier.imbalance *= static_cast<double>(tier.links) / total[kinds];
    used.push_back(tier);
  }
  return used;
}

std::vector<LinkLoad> busiest_of(const topology::LinkSlots& slots, const std::vector<double>& carried, double makespan_s) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    if (carried[slot] > 0.0) order.push_back(slot);
  }
  const auto utilisation = [&](std::uint32_t slot) { return carried[slot] / (slots.capacity(slot) * makespan_s); };
  const std::size_t count = std::min(kBusiest, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double ua = utilisation(a);
    const double ub = utilisation(b);
    return ua != ub ? ua > ub : a < b;
  });
  std::vector<LinkLoad> busiest;
  for (std::size_t i = 0; i < count; ++i) busiest.push_back({slots.name(order[i]), carried[order[i]], utilisation(order[i])});
  return busiest;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

}  // namespace

FlowReport make_report(std::span<const run::FlowSpec> flows, const run::FlowRunResult& result, const topology::LinkSlots& slots) {
  FlowReport report;
  report.flows = flows.size();
  report.events = result.events;
  std::vector<double> completion;
  double first = flows.front().start.seconds();
  double last = 0.0;
  double rates = 0.0;
  double squares = 0.0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const double start = flows[f].start.seconds();
    const double end = seconds(result.end[f]);
    completion.push_back(end - start);
    first = std::min(first, start);
    last = std::max(last, end);
    report.bytes += flows[f].bytes.si();
    report.mean_s += (end - start) / static_cast<double>(flows.size());
    const double rate = flows[f].bytes.si() / (end - start);
    rates += rate;
    squares += rate * rate;
  }
  std::sort(completion.begin(), completion.end());
  report.makespan_s = last - first;
  report.median_s = nearest_rank(completion, 0.5);
  report.p99_s = nearest_rank(completion, 0.99);
  report.fairness = rates * rates / (static_cast<double>(flows.size()) * squares);
  report.tiers = tiers_of(slots, result.carried, report.makespan_s);
  report.busiest = busiest_of(slots, result.carried, report.makespan_s);
  return report;
}

PacketReport make_packet_report(std::string_view transport, std::span<const run::FlowSpec> flows, std::span<const TimePoint> ends) {
  PacketReport report{.transport = std::string{transport}};
  std::vector<double> completion;
  double first = flows.front().start.seconds();
  double last = 0.0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    completion.push_back(seconds(ends[f]) - flows[f].start.seconds());
    report.mean_s += completion.back() / static_cast<double>(flows.size());
    first = std::min(first, flows[f].start.seconds());
    last = std::max(last, seconds(ends[f]));
  }
  std::sort(completion.begin(), completion.end());
  report.makespan_s = last - first;
  report.p99_s = nearest_rank(completion, 0.99);
  return report;
}

std::string to_text(const FlowReport& report, const Terminal& terminal) {
  std::string text = paint(terminal, Tone::kStrong, report.name) + '\n';
  const auto line = [&](const char* what, const std::string& value) { text += fmt::format("  {:<13} {}\n", what, value); };
  line("fabric", report.fabric);
  if (!report.routing.empty()) line("routing", report.routing);
  if (!report.transport.empty()) line("transport", report.transport);
  line("flows", fmt::format("{}, {} in all", report.flows, human_bytes(Bytes{static_cast<std::int64_t>(report.bytes)})));
  text += '\n';
  line("makespan", human_seconds(report.makespan_s));
  line("completion", fmt::format("mean {}, median {}, 99th percentile {}", human_seconds(report.mean_s), human_seconds(report.median_s),
                                 human_seconds(report.p99_s)));
  line("throughput", human_bit_rate(Bandwidth::from_si(report.bytes / report.makespan_s)) + " over all flows");
  line("fairness", fmt::format("{:.3f} (Jain's index of the flows' mean rates; 1: all alike)", report.fairness));
  if (report.packets) {
    const PacketReport& p = *report.packets;
    Table beside{{"completion", "fluid", "packets (" + p.transport + ")", "packets / fluid"}};
    const auto row = [&](const char* what, double fluid, double packets) {
      beside.add({what, human_seconds(fluid), human_seconds(packets), fmt::format("{:.3f}", packets / fluid)});
    };
    row("mean", report.mean_s, p.mean_s);
    row("99th percentile", report.p99_s, p.p99_s);
    row("makespan", report.makespan_s, p.makespan_s);
    text += "\nThe same flows packet by packet\n" + beside.render(terminal, "  ");
  }
  Table tiers{{"links", "count", "mean use", "most", "imbalance (most / mean)"}};
  for (const TierLoad& tier : report.tiers) {
    tiers.add({fmt::format("{} -> {}", topology::device_kind_name(tier.from), topology::device_kind_name(tier.to)), std::to_string(tier.links),
               percent(tier.mean_utilisation), percent(tier.most_utilisation), fmt::format("{:.2f}", tier.imbalance)});
  }
  text += "\nHow evenly links were used\n" + tiers.render(terminal, "  ");
  Table busiest{{"busiest links", "carried", "use"}};
  for (const LinkLoad& load : report.busiest) {
    busiest.add({load.name, human_bytes(Bytes{static_cast<std::int64_t>(load.bytes)}), percent(load.utilisation)});
  }
  return text + '\n' + busiest.render(terminal, "  ");
}

std::string to_json(const FlowReport& report) {
  nlohmann::ordered_json json{{"name", report.name}, {"fabric", report.fabric}, {"transport", report.transport}, {"flows", report.flows}, {"bytes", report.bytes},
                              {"makespan_s", report.makespan_s}, {"mean_completion_s", report.mean_s},
                              {"median_completion_s", report.median_s}, {"p99_completion_s", report.p99_s},
                              {"throughput_bytes_per_s", report.bytes / report.makespan_s}, {"fairness", report.fairness}};
  for (const TierLoad& tier : report.tiers) {
    json["tiers"].push_back({{"from", topology::device_kind_name(tier.from)}, {"to", topology::device_kind_name(tier.to)}, {"links", tier.links},
                             {"mean_utilisation", tier.mean_utilisation}, {"most_utilisation", tier.most_utilisation}, {"imbalance", tier.imbalance}});
  }
  for (const LinkLoad& load : report.busiest) {
    json["busiest"].push_back({{"name", load.name}, {"bytes", load.bytes}, {"utilisation", load.utilisation}});
  }
  json["events"] = report.events;
  if (report.packets) {
    const PacketReport& p = *report.packets;
    json["packets"] = {{"transport", p.transport}, {"makespan_s", p.makespan_s}, {"mean_completion_s", p.mean_s}, {"p99_completion_s", p.p99_s}};
  }
  return json_text(json);
}

std::string to_csv(std::span<const run::FlowSpec> flows, const run::FlowRunResult& result) {
  std::string text = "flow,from,to,size_bytes,start_s,end_s,completion_s,rate_bytes_per_s\n";
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const double start = flows[f].start.seconds();
    const double end = seconds(result.end[f]);
    text += fmt::format("{},{},{},{},{:.12f},{:.12f},{:.12f},{:.6g}\n", f, flows[f].from, flows[f].to, flows[f].bytes.count(), start, end, end - start,
                        flows[f].bytes.si() / (end - start));
  }
  return text;
}

}  // namespace stepcast::app
