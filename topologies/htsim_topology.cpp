#include "topologies/htsim_topology.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::topology {
namespace {

constexpr double kMostHosts = 1 << 20;  // far above any recording; a typing error ends here, not in all of the memory
constexpr double kMostRadix = 1 << 16;

struct Entry {
  double value = 0.0;
  int line = 0;
  int value_column = 0;
};
using Block = std::map<std::string, Entry>;

const std::vector<std::string> kHeadKeys{"Nodes", "Podsize", "Tier", "Tiers"};
const std::vector<std::string> kTierKeys{"Bundle", "Downlink_Latency_ns", "Downlink_speed_Gbps", "Oversubscribed",
                                         "Radix_Down", "Radix_Up", "Switch_Latency_ns", "Tier"};

// The lines of one file: the head, then a block a tier.
class Lines {
 public:
  Lines(std::string_view text, const std::string& file) : file_{file} {
    const std::vector<std::string> lines = split(text, '\n');
    blocks_.emplace_back();
    heads_.push_back({.line = 1});
    for (std::size_t i = 0; i < lines.size(); ++i) read_line(lines[i], static_cast<int>(i) + 1);
    problems_.throw_if_any();
  }

  [[nodiscard]] std::size_t tiers() const { return blocks_.size() - 1; }

  // Block 0 is the head, block i + 1 tier i. Whole numbers in [1, most].
  std::uint32_t count(std::size_t block, const std::string& key, double most, std::optional<std::uint32_t> otherwise = {}) {
    const Entry* entry = find(block, key, otherwise.has_value());
    if (entry == nullptr) return otherwise.value_or(1);
    const auto whole = static_cast<std::uint32_t>(entry->value >= 1.0 && entry->value <= most ? entry->value : 0.0);
    if (whole >= 1 && static_cast<double>(whole) == entry->value) return whole;
    refuse(*entry, key, "not a whole number in range", fmt::format("1 to {:.0f}", most));
    return 1;
  }
  double amount(std::size_t block, const std::string& key, double least, double most, std::optional<double> otherwise = {}) {
    const Entry* entry = find(block, key, otherwise.has_value());
    if (entry == nullptr) return otherwise.value_or(least);
    if (entry->value < least || entry->value > most) {
      refuse(*entry, key, "out of range", fmt::format("{} to {}", least, most));
      return least;
    }
    return entry->value;
  }
  void finish() { problems_.throw_if_any(); }
  void refuse(std::size_t block, const std::string& key, const std::string& problem, const std::string& expected) {
    const auto at = blocks_[block].find(key);
    refuse(at == blocks_[block].end() ? heads_[block] : at->second, key, problem, expected);
  }

 private:
  void read_line(std::string_view line, int number) {
    const std::string_view text = trim(line);
    if (text.empty() || text.starts_with('#')) return;
    const int column = static_cast<int>(line.find(text.front())) + 1;
    const std::size_t blank = text.find_first_of(" \t");
    const std::string key{text.substr(0, blank)};
    const std::string_view word = blank == std::string_view::npos ? "" : trim(text.substr(blank));
    const std::vector<std::string>& keys = blocks_.size() == 1 ? kHeadKeys : kTierKeys;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const auto near = nearest_word(key, keys);
      problems_.add({.where = {file_, number, column}, .path = key, .problem = "unknown key", .expected = one_of(keys),
                     .hint = near ? fmt::format("did you mean '{}'?", *near) : ""});
      return;
    }
    const std::optional<double> value = parse_number(word);
    const int value_column = column + static_cast<int>(word.empty() ? text.size() : static_cast<std::size_t>(word.data() - text.data()));
    if (!value) {
      problems_.add({.where = {file_, number, value_column}, .path = key, .problem = "not a number",
                     .expected = "one number after the key", .got = std::string{word}});
      return;
    }
    add(key, {.value = *value, .line = number, .value_column = value_column});
  }

  void add(const std::string& key, const Entry& entry) {
    if (key == "Tier") {
      if (entry.value != static_cast<double>(tiers())) {
        refuse(entry, key, "tiers are out of order", fmt::format("Tier {}", tiers()));
      }
      blocks_.emplace_back();
      heads_.push_back(entry);
    } else if (!blocks_.back().emplace(key, entry).second) {
      refuse(entry, key, "given twice", fmt::format("once (line {} has it)", blocks_.back().at(key).line));
    }
  }

  const Entry* find(std::size_t block, const std::string& key, bool optional) {
    const auto at = blocks_[block].find(key);
    if (at != blocks_[block].end()) return &at->second;
    if (!optional) refuse(heads_[block], key, "missing", block == 0 ? "before the first Tier" : fmt::format("in the block of Tier {}", block - 1));
    return nullptr;
  }

  void refuse(const Entry& entry, const std::string& key, const std::string& problem, const std::string& expected) {
    problems_.add({.where = {file_, entry.line, std::max(1, entry.value_column)}, .path = key, .problem = problem, .expected = expected,
                   .got = entry.value_column > 0 && problem != "missing" ? fmt::format("{}", entry.value) : ""});
  }

  const std::string& file_;
  Diagnostics problems_;
  std::vector<Block> blocks_;
  std::vector<Entry> heads_;  // where each block starts
};

// To the nearest picosecond.
Duration nanoseconds(double value) { return Duration::picoseconds(std::llround(value * 1e3)); }

HtsimTier read_tier(Lines& lines, std::size_t tier, bool top) {
  constexpr double kMostGbps = 1e6;
  constexpr double kMostNanoseconds = 1e9;
  const std::size_t block = tier + 1;
  HtsimTier read;
  read.radix_down = lines.count(block, "Radix_Down", kMostRadix);
  read.radix_up = top ? 0 : lines.count(block, "Radix_Up", kMostRadix);
  read.bundle = lines.count(block, "Bundle", kMostRadix, 1);
  lines.amount(block, "Oversubscribed", 1.0, kMostRadix, 1.0);
  read.downlink = Bandwidth::from_si(lines.amount(block, "Downlink_speed_Gbps", 1e-3, kMostGbps) * 1e9 / 8);
  read.downlink_latency = nanoseconds(lines.amount(block, "Downlink_Latency_ns", 0.0, kMostNanoseconds));
  read.switch_latency = nanoseconds(lines.amount(block, "Switch_Latency_ns", 0.0, kMostNanoseconds, 0.0));
  return read;
}

void check_fit(Lines& lines, const HtsimTopology& t) {
  const HtsimTier& tor = t.tiers[0];
  const HtsimTier& agg = t.tiers[1];
  if (t.pod_hosts % tor.radix_down != 0) lines.refuse(0, "Podsize", "not a multiple of the ToR's Radix_Down", fmt::format("a multiple of {}", tor.radix_down));
  if (t.hosts % t.pod_hosts != 0) lines.refuse(0, "Nodes", "not a multiple of Podsize", fmt::format("a multiple of {}", t.pod_hosts));
  if (t.tiers.size() == 2 && t.hosts != t.pod_hosts) lines.refuse(0, "Podsize", "two tiers have one pod", fmt::format("{}", t.hosts));
  if (tor.bundle != 1) lines.refuse(1, "Bundle", "a host has one link", "1");
  if (tor.radix_up % agg.bundle != 0) lines.refuse(1, "Radix_Up", "not a multiple of the Bundle above", fmt::format("a multiple of {}", agg.bundle));
  const std::uint32_t agg_down = t.pod_hosts / tor.radix_down * agg.bundle;
  if (agg.radix_down != agg_down) lines.refuse(2, "Radix_Down", "does not meet the ToRs of a pod", fmt::format("{}", agg_down));
  if (t.tiers.size() == 2) return;
  const HtsimTier& core = t.tiers[2];
  if (agg.radix_up % core.bundle != 0) lines.refuse(2, "Radix_Up", "not a multiple of the Bundle above", fmt::format("a multiple of {}", core.bundle));
  const std::uint32_t core_down = t.hosts / t.pod_hosts * core.bundle;
  if (core.radix_down != core_down) lines.refuse(3, "Radix_Down", "does not meet every pod", fmt::format("{}", core_down));
}

}  // namespace

HtsimTopology parse_htsim_topology(std::string_view text, const std::string& file) {
  Lines lines{text, file};
  HtsimTopology topology;
  topology.hosts = lines.count(0, "Nodes", kMostHosts);
  topology.pod_hosts = lines.count(0, "Podsize", kMostHosts);
  const std::uint32_t tiers = lines.count(0, "Tiers", 3);
  lines.finish();
  if (tiers < 2) lines.refuse(0, "Tiers", "out of range", "2 or 3");
  if (lines.tiers() != tiers) lines.refuse(0, "Tiers", fmt::format("{} blocks of tiers follow", lines.tiers()), "one block a tier");
  lines.finish();
  for (std::size_t tier = 0; tier < tiers; ++tier) topology.tiers.push_back(read_tier(lines, tier, tier + 1 == tiers));
  lines.finish();
  check_fit(lines, topology);
  lines.finish();
  return topology;
}

HtsimTopology read_htsim_topology(const std::string& file) { return parse_htsim_topology(read_text_file(file, "a topology of htsim"), file); }

HtsimFabric::HtsimFabric(const HtsimTopology& topology)
    : hosts_{topology.hosts},
      hosts_a_tor_{topology.tiers[0].radix_down},
      tors_a_pod_{topology.pod_hosts / hosts_a_tor_},
      aggs_a_pod_{topology.tiers[0].radix_up / topology.tiers[1].bundle},
      pods_{topology.hosts / topology.pod_hosts},
      bundle1_{topology.tiers[1].bundle} {
  const std::vector<HtsimTier>& tiers = topology.tiers;
  const std::uint32_t first_tor = hosts_;
  const std::uint32_t first_agg = first_tor + pods_ * tors_a_pod_;
  const std::uint32_t first_core = first_agg + pods_ * aggs_a_pod_;
  for (std::uint32_t host = 0; host < hosts_; ++host) {
    const std::uint32_t tor = first_tor + host / hosts_a_tor_;
    links_.push_back({host, tor, tiers[0].downlink, tiers[0].downlink_latency});
    links_.push_back({tor, host, tiers[0].downlink, tiers[0].downlink_latency + tiers[0].switch_latency});
  }
  const auto bundle = [&](std::uint32_t low, std::uint32_t high, std::size_t tier, const std::string& low_up,
                          const std::string& low_down, const std::string& high_name) {
    for (std::uint32_t member = 0; member < tiers[tier].bundle; ++member) {
      const HtsimTier& above = tiers[tier];
      by_name_.emplace(fmt::format("{}->{}({})", low_up, high_name, member), static_cast<std::uint32_t>(links_.size()));
      links_.push_back({low, high, above.downlink, above.downlink_latency + tiers[tier - 1].switch_latency});
      by_name_.emplace(fmt::format("{}->{}({})", high_name, low_down, member), static_cast<std::uint32_t>(links_.size()));
      links_.push_back({high, low, above.downlink, above.downlink_latency + above.switch_latency});
    }
  };
  first_tor_up_ = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t tor = 0; tor < pods_ * tors_a_pod_; ++tor) {
    for (std::uint32_t i = 0; i < aggs_a_pod_; ++i) {
      const std::uint32_t agg = tor / tors_a_pod_ * aggs_a_pod_ + i;
      bundle(first_tor + tor, first_agg + agg, 1, fmt::format("LS{}", tor), fmt::format("LS_{}", tor), fmt::format("US{}", agg));
    }
  }
  first_agg_up_ = static_cast<std::uint32_t>(links_.size());
  if (tiers.size() == 2) return;
  bundle2_ = tiers[2].bundle;
  cores_an_agg_ = tiers[1].radix_up / bundle2_;
  for (std::uint32_t agg = 0; agg < pods_ * aggs_a_pod_; ++agg) {
    for (std::uint32_t k = 0; k < cores_an_agg_; ++k) {
      const std::uint32_t core = k * aggs_a_pod_ + agg % aggs_a_pod_;
      bundle(first_agg + agg, first_core + core, 2, fmt::format("US{}", agg), fmt::format("US{}", agg), fmt::format("CS{}", core));
    }
  }
}

std::optional<std::uint32_t> HtsimFabric::find(const std::string& name) const {
  const auto at = by_name_.find(name);
  if (at == by_name_.end()) return std::nullopt;
  return at->second;
}

std::uint32_t HtsimFabric::tor_up(std::uint32_t tor, std::uint32_t agg_in_pod, std::uint32_t member) const {
  return first_tor_up_ + 2 * ((tor * aggs_a_pod_ + agg_in_pod) * bundle1_ + member);
}

std::uint32_t HtsimFabric::agg_up(std::uint32_t agg, std::uint32_t core_of_agg, std::uint32_t member) const {
  return first_agg_up_ + 2 * ((agg * cores_an_agg_ + core_of_agg) * bundle2_ + member);
}

std::uint32_t HtsimFabric::path_count(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t up = from / hosts_a_tor_;
  const std::uint32_t down = to / hosts_a_tor_;
  if (up == down) return 1;
  const std::uint32_t below = aggs_a_pod_ * bundle1_ * bundle1_;
  return up / tors_a_pod_ == down / tors_a_pod_ ? below : below * cores_an_agg_ * bundle2_ * bundle2_;
}

// The digits of `number`, lowest first: links of the bundles, core, aggregation switch.
HtsimFabric::Path HtsimFabric::path(std::uint32_t from, std::uint32_t to, std::uint32_t number) const {
  const auto digit = [&number](std::uint32_t base) {
    const std::uint32_t value = number % base;
    number /= base;
    return value;
  };
  const std::uint32_t up = from / hosts_a_tor_;
  const std::uint32_t down = to / hosts_a_tor_;
  if (up == down) return {host_up(from), host_down(to)};
  const std::uint32_t up_member = digit(bundle1_);
  const std::uint32_t down_member = digit(bundle1_);
  const bool same_pod = up / tors_a_pod_ == down / tors_a_pod_;
  const std::uint32_t core_up_member = same_pod ? 0 : digit(bundle2_);
  const std::uint32_t core_down_member = same_pod ? 0 : digit(bundle2_);
  const std::uint32_t core = same_pod ? 0 : digit(cores_an_agg_);
  const std::uint32_t agg = digit(aggs_a_pod_);
  const std::uint32_t first = tor_up(up, agg, up_member);
  const std::uint32_t last = tor_up(down, agg, down_member) + 1;
  if (same_pod) return {host_up(from), first, last, host_down(to)};
  return {host_up(from), first, agg_up(up / tors_a_pod_ * aggs_a_pod_ + agg, core, core_up_member),
          agg_up(down / tors_a_pod_ * aggs_a_pod_ + agg, core, core_down_member) + 1, last, host_down(to)};
}

}  // namespace stepcast::topology
