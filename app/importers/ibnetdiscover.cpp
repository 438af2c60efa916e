#include "app/importers/ibnetdiscover.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

// Data rate of a lane [Gb/s], after the line code.
constexpr std::array<std::pair<std::string_view, double>, 9> kLaneRates{{{"SDR", 2.0}, {"DDR", 4.0}, {"QDR", 8.0}, {"FDR10", 10.0}, {"FDR", 13.64}, {"EDR", 25.0},
                                                                        {"HDR", 50.0}, {"NDR", 100.0}, {"XDR", 200.0}}};

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

class Line {
 public:
  Line(std::string_view text, int number, const std::string& file) : text_{text}, number_{number}, file_{file} {}

  [[noreturn]] void refuse(std::string problem, std::string expected) const {
    throw UserError{Diagnostic{.where = {file_, number_, static_cast<int>(at_) + 1}, .path = {}, .problem = std::move(problem), .expected = std::move(expected), .got = {}, .hint = {}}};
  }
  void spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  [[nodiscard]] bool sees(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!sees(c)) return false;
    ++at_;
    return true;
  }
  std::string_view until(char c, const char* what) {
    const std::size_t end = text_.find(c, at_);
    if (end == std::string_view::npos) refuse(fmt::format("{} that does not end", what), fmt::format("'{}'", c));
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }
  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r') ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::uint32_t port() {
    const auto value = number(until(']', "a port"), 10);
    if (!value || *value > 100'000) refuse("no port number in brackets", "[1] to [100000]");
    return static_cast<std::uint32_t>(*value);
  }
  // "S-0002c90300100010"
  std::pair<char, std::uint64_t> device() {
    const std::size_t begin = at_;
    if (!take('"')) refuse("a device is missing", "\"S-...\", \"H-...\" or \"R-...\"");
    const std::string_view text = until('"', "a device");
    const auto guid = text.size() > 2 && text[1] == '-' ? number(text.substr(2), 16) : std::nullopt;
    if (!guid || (text[0] != 'S' && text[0] != 'H' && text[0] != 'R')) {
      at_ = begin;
      refuse("no device of a fabric", "\"S-...\", \"H-...\" or \"R-...\" with a hexadecimal guid");
    }
    return {text[0], *guid};
  }
  [[nodiscard]] std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }

 private:
  std::string_view text_;
  int number_;
  const std::string& file_;
  std::size_t at_ = 0;
};

std::string description_in(std::string_view comment) {
  const std::size_t open = comment.find('"');
  const std::size_t close = open == std::string_view::npos ? open : comment.find('"', open + 1);
  return close == std::string_view::npos ? std::string{} : std::string{trim(comment.substr(open + 1, close - open - 1))};
}

// "4xNDR" among the words after the quoted description.
std::string rate_in(std::string_view comment) {
  const std::size_t quote = comment.rfind('"');
  std::string_view tail = quote == std::string_view::npos ? comment : comment.substr(quote + 1);
  for (const std::string& word : split(tail, ' ')) {
    const std::string text{trim(word)};
    const std::size_t x = text.find('x');
    if (x != std::string::npos && x > 0 && number(text.substr(0, x), 10) && x + 1 < text.size() && text != "0x") return text;
  }
  return "not given";
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_{file} {}

  IbFabric run(std::string_view text) {
    int line_number = 0;
    for (const std::string& line : split(text, '\n')) {
      ++line_number;
      read(Line{line, line_number, file_}, line);
    }
    if (out_.switch_blocks + out_.ca_blocks + routers_ == 0) {
      const bool ports_report = text.starts_with("CA ") || text.starts_with("SW ");
      throw UserError{Diagnostic{.where = {file_, ports_report ? 1 : 0, ports_report ? 1 : 0}, .path = {}, .problem = "no device of ibnetdiscover in it",
                                 .expected = "blocks that start with Switch, Ca or Rt", .got = ports_report ? "a ports report" : "",
                                 .hint = ports_report ? "run ibnetdiscover without -p" : ""}};
    }
    return std::move(out_);
  }

 private:
  void read(Line line, const std::string& text) {
    line.spaces();
    if (line.sees('[')) {
      port(line);
      return;
    }
    for (const char* word : {"Switch", "Ca", "Rt"}) {
      if (!text.starts_with(word) || text.size() == std::string_view{word}.size()) continue;
      const char next = text[std::string_view{word}.size()];
      if (next != ' ' && next != '\t') continue;
      line.word();
      line.spaces();
      const auto ports = number(line.word(), 10);
      if (!ports) line.refuse("no number of ports", "Switch 65 \"S-...\"");
      line.spaces();
      const auto [kind, guid] = line.device();
      here_ = device(kind, guid);
      out_.devices[here_].ports = static_cast<std::int64_t>(*ports);
      const std::string description = description_in(line.rest());
      if (!description.empty()) out_.devices[here_].description = description;
      inside_ = true;
      ++(kind == 'S' ? out_.switch_blocks : kind == 'H' ? out_.ca_blocks : routers_);
      return;
    }
  }

  void port(Line& line) {
    if (!inside_) line.refuse("a port outside of a device", "a line Switch, Ca or Rt above it");
    line.take('[');
    const std::uint32_t port = line.port();
    if (line.take('(')) line.until(')', "a guid");
    line.spaces();
    if (line.take('[')) line.until(']', "an external port");  // [ext 1]
    line.spaces();
    const auto [kind, guid] = line.device();
    if (!line.take('[')) line.refuse("no port of the peer", "\"...\"[1]");
    const std::uint32_t peer_port = line.port();
    if (line.take('(')) line.until(')', "a guid");
    ++out_.port_lines;
    const std::string rate = rate_in(line.rest());
    const std::size_t peer = device(kind, guid);
    const bool from_switch = out_.devices[here_].kind == 'S';
    // A CA's line names itself in its block and the switch in the comment, and the other way round.
    if (out_.devices[peer].description.empty()) out_.devices[peer].description = description_in(line.rest());
    if (from_switch) ++out_.rates_on_switches[rate];
    if (from_switch && kind == 'S') ++out_.switch_switch_lines;
    const std::pair<std::uint64_t, std::uint32_t> one{out_.devices[here_].guid, port};
    const std::pair<std::uint64_t, std::uint32_t> other{guid, peer_port};
    if (seen_.insert({std::min(one, other), std::max(one, other)}).second) out_.links.push_back({here_, port, peer, peer_port, rate});
  }

  std::size_t device(char kind, std::uint64_t guid) {
    const auto [found, fresh] = by_guid_.emplace(guid, out_.devices.size());
    if (fresh) out_.devices.push_back({kind, guid, 0, {}});
    return found->second;
  }

  const std::string& file_;
  IbFabric out_;
  std::size_t here_ = 0;
  bool inside_ = false;
  std::size_t routers_ = 0;
  std::map<std::uint64_t, std::size_t> by_guid_;
  std::set<std::pair<std::pair<std::uint64_t, std::uint32_t>, std::pair<std::uint64_t, std::uint32_t>>> seen_;
};

std::optional<Bandwidth> rate_of(const std::string& tag) {
  const std::size_t x = tag.find('x');
  if (x == std::string::npos) return std::nullopt;
  const auto lanes = number(tag.substr(0, x), 10);
  for (const auto& [name, gigabits] : kLaneRates)
    if (lanes && tag.substr(x + 1) == name) return Bandwidth::from_si(static_cast<double>(*lanes) * gigabits * 1e9 / 8);
  return std::nullopt;
}

// "MF0;leaf-01:MQM9700/U1" is leaf-01, "MF0;core-1:MCS8500/L01/U1" is core-1.L01.
std::string switch_name(const IbDevice& device) {
  std::string text = device.description;
  if (const std::size_t semicolon = text.find(';'); semicolon != std::string::npos) text = text.substr(semicolon + 1);
  std::string name = text.substr(0, text.find(':'));
  const std::vector<std::string> parts = split(text, '/');
  if (parts.size() > 2) name += "." + parts[1];
  return plain_name(std::string{trim(name)});
}

bool by_number(const std::string& a, const std::string& b) { return std::pair{a.size(), a} < std::pair{b.size(), b}; }

class Builder {
 public:
  explicit Builder(const IbFabric& fabric) : fabric_{fabric} {}

  ImportedNetwork run() {
    name_switches();
    hosts();
    empty_leaves();
    order_switches();
    trunks();
    return std::move(out_);
  }

 private:
  void remark(std::string text) { out_.remarks.push_back(std::move(text)); }

  void name_switches() {
    std::map<std::string, int> used;
    for (const IbDevice& device : fabric_.devices)
      if (device.kind == 'S') ++used[switch_name(device)];
    names_.resize(fabric_.devices.size());
    for (std::size_t d = 0; d < fabric_.devices.size(); ++d) {
      const IbDevice& device = fabric_.devices[d];
      if (device.kind != 'S') continue;
      names_[d] = switch_name(device);
      if (names_[d].empty() || used[names_[d]] > 1) names_[d] += fmt::format("{}S-{:016x}", names_[d].empty() ? "" : ".", device.guid);
      out_.switches.push_back(names_[d]);
    }
  }

  struct Adapter {
    std::string device;        // "HCA-1"
    std::size_t on = 0;        // switch
    std::string rate;
  };

  void hosts() {
    std::map<std::string, std::vector<Adapter>> by_host;
    std::vector<std::string> order;
    std::size_t sharp = 0;
    std::size_t nameless = 0;
    std::size_t elsewhere = 0;
    for (const IbLink& link : fabric_.links) {
      const bool a_is_switch = fabric_.devices[link.a].kind == 'S';
      const bool b_is_switch = fabric_.devices[link.b].kind == 'S';
      if (a_is_switch == b_is_switch) {
        if (!a_is_switch) ++elsewhere;
        continue;
      }
      const IbDevice& ca = fabric_.devices[a_is_switch ? link.b : link.a];
      if (ca.kind != 'H') {
        ++elsewhere;
        continue;
      }
      if (ca.description.find("Aggregation Node") != std::string::npos) {
        ++sharp;
        continue;
      }
      const std::size_t space = ca.description.find_first_of(" \t");
      if (space == std::string::npos || ca.description.find("Mellanox Technologies") != std::string::npos || ca.description.starts_with("localhost")) {
        ++nameless;
        continue;
      }
      const std::string host = plain_name(ca.description.substr(0, space));
      if (!by_host.contains(host)) order.push_back(host);
      const std::uint32_t port = a_is_switch ? link.b_port : link.a_port;
      by_host[host].push_back({fmt::format("{} {:08}", trim(ca.description.substr(space)), port), a_is_switch ? link.a : link.b, link.rate});
    }
    if (sharp > 0) remark(fmt::format("{} SHARP aggregation nodes left out", sharp));
    if (nameless > 0) remark(fmt::format("{} adapters do not name their host (factory description): left out", nameless));
    if (elsewhere > 0) remark(fmt::format("{} links of routers, or without a switch: left out", elsewhere));
    std::map<std::size_t, std::size_t> sizes;  // NICs -> hosts
    for (const auto& [host, adapters] : by_host) ++sizes[adapters.size()];
    if (sizes.empty()) return;
    std::size_t common = 0;
    for (const auto& [nics, count] : sizes)
      if (common == 0 || count >= sizes[common]) common = nics;
    for (const auto& [nics, count] : sizes)
      if (nics != common) remark(fmt::format("{} host{} with {} NIC{}, not {}: left out", count, count == 1 ? "" : "s", nics, nics == 1 ? "" : "s", common));
    std::sort(order.begin(), order.end(), by_number);
    std::map<std::string, std::size_t> rates;
    for (const std::string& host : order)
      if (by_host[host].size() == common)
        for (const Adapter& adapter : by_host[host]) ++rates[adapter.rate];
    std::string usual;
    for (const auto& [tag, count] : rates)
      if (usual.empty() || count > rates[usual]) usual = tag;
    usual_ = rate_of(usual);
    pick_nic(usual);
    out_.nics_per_node = static_cast<std::int64_t>(common);
    std::map<std::tuple<std::size_t, std::string, std::size_t>, std::vector<std::string>> on;  // switch, rate, NIC
    for (const std::string& host : order) {
      std::vector<Adapter>& adapters = by_host[host];
      if (adapters.size() != common) continue;
      std::sort(adapters.begin(), adapters.end(), [](const Adapter& a, const Adapter& b) { return by_number(a.device, b.device); });
      out_.hosts.push_back(host);
      for (std::size_t j = 0; j < adapters.size(); ++j) on[{adapters[j].on, adapters[j].rate, j}].push_back(fmt::format("{}/nic{}", host, j));
    }
    for (const auto& [place, names] : on) out_.links.push_back({names, names_[std::get<0>(place)], 1, other_rate(std::get<1>(place))});
  }

  void pick_nic(const std::string& tag) {
    static const std::map<std::string, const char*> kNics{{"4xFDR", "ib-fdr-56"}, {"4xEDR", "ib-edr-100"}, {"4xHDR", "ib-hdr-200"}, {"4xNDR", "ib-ndr-400"}, {"4xXDR", "ib-xdr-800"}};
    if (const auto found = kNics.find(tag); found != kNics.end()) {
      out_.nic = found->second;
    } else {
      remark(fmt::format("no NIC of the catalogue is {}: the node's own, links at their rate", tag.empty() ? "of that rate" : tag));
      usual_.reset();
    }
  }

  std::optional<Bandwidth> other_rate(const std::string& tag) {
    const std::optional<Bandwidth> rate = rate_of(tag);
    if (!rate && unknown_rates_.insert(tag).second) remark(fmt::format("rate '{}' not understood: as the NIC's", tag));
    return rate && (!usual_ || rate->si() != usual_->si()) ? rate : std::nullopt;
  }

  // A switch whose adapters have all been left out would look like one above the others.
  void empty_leaves() {
    std::set<std::size_t> with_adapters;
    for (const IbLink& link : fabric_.links) {
      const std::size_t at = fabric_.devices[link.a].kind == 'S' ? link.a : link.b;
      const IbDevice& other = fabric_.devices[at == link.a ? link.b : link.a];
      if (fabric_.devices[at].kind == 'S' && other.kind == 'H' && other.description.find("Aggregation Node") == std::string::npos) with_adapters.insert(at);
    }
    std::set<std::string> kept;
    for (const ImportedLinks& links : out_.links) kept.insert(links.to);
    std::size_t empty = 0;
    for (const std::size_t at : with_adapters) {
      if (kept.contains(names_[at])) continue;
      std::erase(out_.switches, names_[at]);
      dropped_.insert(at);
      ++empty;
    }
    if (empty > 0) remark(fmt::format("{} switch{} with left-out adapters only: left out", empty, empty == 1 ? "" : "es"));
  }

  // Those with hosts first, then by name: links are written from the lower to the higher.
  void order_switches() {
    std::set<std::string> with_hosts;
    for (const ImportedLinks& links : out_.links) with_hosts.insert(links.to);
    std::sort(out_.switches.begin(), out_.switches.end(), [&](const std::string& a, const std::string& b) {
      const bool a_hosts = with_hosts.contains(a);
      const bool b_hosts = with_hosts.contains(b);
      return a_hosts != b_hosts ? a_hosts : by_number(a, b);
    });
    std::map<std::string, std::size_t> place;
    for (std::size_t i = 0; i < out_.switches.size(); ++i) place[out_.switches[i]] = i;
    rank_.resize(names_.size());
    for (std::size_t d = 0; d < names_.size(); ++d)
      if (const auto found = place.find(names_[d]); found != place.end()) rank_[d] = found->second;
    std::stable_sort(out_.links.begin(), out_.links.end(), [&](const ImportedLinks& a, const ImportedLinks& b) { return place[a.to] < place[b.to]; });
  }

  void trunks() {
    std::map<std::pair<std::size_t, std::size_t>, std::pair<std::int64_t, std::string>> pairs;  // by rank
    for (const IbLink& link : fabric_.links) {
      if (fabric_.devices[link.a].kind != 'S' || fabric_.devices[link.b].kind != 'S' || dropped_.contains(link.a) || dropped_.contains(link.b)) continue;
      const std::pair<std::size_t, std::size_t> ends = std::minmax(rank_[link.a], rank_[link.b]);
      auto& [count, rate] = pairs[ends];
      if (count > 0 && rate != link.rate) remark(fmt::format("{} and {} are joined at {} and {}: all count as {}", names_[link.a], names_[link.b], rate, link.rate, rate));
      if (count++ == 0) rate = link.rate;
    }
    // One entry for all switches that are joined alike with one.
    std::map<std::tuple<std::size_t, std::int64_t, std::string>, std::vector<std::string>> rows;
    for (const auto& [ends, links] : pairs) rows[{ends.second, links.first, links.second}].push_back(out_.switches[ends.first]);
    for (const auto& [key, from] : rows) {
      const auto& [to, count, rate] = key;
      out_.links.push_back({from, out_.switches[to], count, other_rate(rate)});
    }
  }

  const IbFabric& fabric_;
  ImportedNetwork out_;
  std::vector<std::string> names_;   // of switches
  std::vector<std::size_t> rank_;    // of switches, in out_.switches
  std::set<std::size_t> dropped_;
  std::optional<Bandwidth> usual_;   // the NIC's
  std::set<std::string> unknown_rates_;
};

}  // namespace

std::size_t IbFabric::switch_links() const {
  return static_cast<std::size_t>(std::count_if(links.begin(), links.end(), [&](const IbLink& l) { return devices[l.a].kind == 'S' || devices[l.b].kind == 'S'; }));
}

IbFabric read_ibnetdiscover(std::string_view text, const std::string& file) { return Reader{file}.run(text); }

ImportedNetwork network_of(const IbFabric& fabric) { return Builder{fabric}.run(); }

}  // namespace stepcast::app
