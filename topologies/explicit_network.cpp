#include "topologies/explicit_network.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/name_ranges.hpp"
#include "sim/base/text.hpp"
#include "topologies/refusal.hpp"

namespace stepcast::topology {
namespace {

constexpr std::size_t kMostLinks = 20'000'000;  // pairs: beyond any machine, a few GB of memory

std::vector<std::string> names_at(const std::string& path, const std::string& text) {
  NameList list = expand_names(text);
  if (list.error) {
    refuse(path, list.error->problem, "names such as leaf0, leaf[0-7] or leaf[0-7,9]",
           fmt::format("'{}' at character {} of '{}'", text.substr(list.error->offset, 12), list.error->offset + 1, text));
  }
  return std::move(list.names);
}

// What a name stands for.
struct End {
  enum class Kind : std::uint8_t { kHost, kNic, kSwitch } kind = Kind::kSwitch;
  std::uint32_t index = 0;  // node, port or switch
};

class Reader {
 public:
  Reader(const scenario::Network& network, const std::string& at, std::vector<std::string> names, std::uint32_t nics)
      : network_{network}, at_{at}, path_{at + ".network"}, nodes_{static_cast<std::uint32_t>(names.size())}, nics_{nics} {
    if (network.hosts.empty()) out_.hosts = std::move(names);
  }

  ExplicitNetwork run() {
    hosts();
    switches();
    attached_.assign(std::size_t{nodes_} * nics_, std::nullopt);
    for (std::size_t i = 0; i < network_.links.size(); ++i) links(i);
    for (std::size_t p = 0; p < attached_.size(); ++p) {
      if (!attached_[p]) refuse(path_ + ".links", "a network card is joined with no switch", "every NIC of every host on one switch", port_name(p),
                                fmt::format("{}.nics_per_node says how many each host has ({})", at_, nics_));
      out_.graph.attachments.push_back(*attached_[p]);
    }
    reach();
    return std::move(out_);
  }

 private:
  void add_name(const std::string& path, const std::string& name, End end) {
    if (!known_.emplace(name, end).second) refuse(path, fmt::format("a second '{}'", name), "a name of its own for each host and switch");
  }

  void hosts() {
    for (std::size_t i = 0; i < network_.hosts.size(); ++i) {
      for (std::string& name : names_at(fmt::format("{}.hosts[{}]", path_, i), network_.hosts[i])) out_.hosts.push_back(std::move(name));
    }
    if (out_.hosts.size() != nodes_) {
      refuse(path_ + ".hosts", "the hosts are not the nodes", fmt::format("{} ({})", nodes_, at_ == "cluster.fabric" ? "cluster.nodes" : "nodes of this network"), std::to_string(out_.hosts.size()));
    }
    for (std::uint32_t n = 0; n < nodes_; ++n) {
      if (out_.hosts[n].find('/') != std::string::npos) refuse(path_ + ".hosts", "a '/' in a name", "names without '/', which parts host and NIC", out_.hosts[n]);
      add_name(path_ + ".hosts", out_.hosts[n], {End::Kind::kHost, n});
    }
  }

  void switches() {
    for (std::size_t i = 0; i < network_.switches.size(); ++i) {
      const std::string path = fmt::format("{}.switches[{}]", path_, i);
      for (std::string& name : names_at(path, network_.switches[i])) {
        add_name(path, name, {End::Kind::kSwitch, static_cast<std::uint32_t>(out_.graph.switches.size())});
        out_.graph.switches.push_back(std::move(name));
      }
    }
  }

  [[nodiscard]] std::string port_name(std::size_t port) const { return fmt::format("{}/nic{}", out_.hosts[port / nics_], port % nics_); }

  End find(const std::string& path, const std::string& name) const {
    if (const auto found = known_.find(name); found != known_.end()) return found->second;
    if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
      const auto host = known_.find(name.substr(0, slash));
      if (host != known_.end() && host->second.kind == End::Kind::kHost) {
        const std::string nic = name.substr(slash + 1);
        const std::optional<double> number = nic.starts_with("nic") ? parse_number(nic.substr(3)) : std::nullopt;
        if (number && *number >= 0 && *number < nics_ && *number == static_cast<double>(static_cast<std::uint32_t>(*number)))
          return {End::Kind::kNic, host->second.index * nics_ + static_cast<std::uint32_t>(*number)};
        refuse(path, "no such network card", fmt::format("{}/nic0 to {}/nic{}", host->first, host->first, nics_ - 1), name);
      }
    }
    std::vector<std::string> words = out_.hosts;
    words.insert(words.end(), out_.graph.switches.begin(), out_.graph.switches.end());
    const std::optional<std::string> near = nearest_word(name, words);
    refuse(path, "no such host or switch", fmt::format("one of {} hosts and {} switches named above", out_.hosts.size(), out_.graph.switches.size()),
           name, near ? fmt::format("did you mean '{}'?", *near) : "");
  }

  void links(std::size_t i) {
    const scenario::NetworkLinks& group = network_.links[i];
    const std::string path = fmt::format("{}.links[{}]", path_, i);
    const std::vector<std::string> from = names_at(path + ".from", group.from);
    const std::vector<std::string> to = names_at(path + ".to", group.to);
    pairs_ += from.size() * to.size();
    if (pairs_ > kMostLinks) refuse(path, "more links than one simulation can hold", fmt::format("at most {} pairs", kMostLinks));
    const GraphLinks links{static_cast<std::uint32_t>(group.count), group.rate, group.latency};
    for (const std::string& a : from) {
      const End one = find(path + ".from", a);
      for (const std::string& b : to) {
        const End other = find(path + ".to", b);
        if (one.kind != End::Kind::kSwitch && other.kind != End::Kind::kSwitch)
          refuse(path, "two hosts joined without a switch", "a switch at one end at least", fmt::format("{} and {}", a, b));
        if (one.kind == End::Kind::kSwitch && other.kind == End::Kind::kSwitch) {
          join(path, one.index, other.index, links);
        } else {
          attach(path, one.kind == End::Kind::kSwitch ? other : one, one.kind == End::Kind::kSwitch ? one.index : other.index, links);
        }
      }
    }
  }

  void join(const std::string& path, std::uint32_t a, std::uint32_t b, const GraphLinks& links) {
    const std::vector<std::string>& names = out_.graph.switches;
    if (a == b) refuse(path, "a switch joined with itself", "two different ends", names[a]);
    const std::uint64_t key = (std::uint64_t{std::min(a, b)} << 32U) | std::max(a, b);
    const auto [first, fresh] = joined_.emplace(key, path);
    if (!fresh) {
      refuse(path, fmt::format("{} and {} are joined twice", names[a], names[b]), fmt::format("one entry for a pair (first: {})", first->second), {},
             "count: N says how many parallel links there are");
    }
    out_.graph.cables.push_back({a, b, links});
  }

  void attach(const std::string& path, End end, std::uint32_t to, const GraphLinks& links) {
    const std::uint32_t first = end.kind == End::Kind::kNic ? end.index : end.index * nics_;
    const std::uint32_t count = end.kind == End::Kind::kNic ? 1 : nics_;
    for (std::uint32_t p = first; p < first + count; ++p) {
      if (attached_[p]) {
        refuse(path, fmt::format("{} is joined twice", port_name(p)), fmt::format("one switch for each NIC (first: {})", out_.graph.switches[attached_[p]->to]),
               out_.graph.switches[to], nics_ > 1 ? "name the NICs: host/nic0, host/nic[1-3]" : "");
      }
      attached_[p] = GraphNetwork::Attachment{to, links};
    }
  }

  // Between any two nodes some NIC of one reaches the same NIC of the other.
  void reach() const {
    std::vector<std::uint32_t> root(out_.graph.switches.size());
    std::iota(root.begin(), root.end(), 0U);
    const auto top = [&](std::uint32_t s) {
      while (root[s] != s) s = root[s] = root[root[s]];
      return s;
    };
    for (const auto& cable : out_.graph.cables) root[top(cable.a)] = top(cable.b);
    for (std::uint32_t j = 0; j < nics_; ++j) {
      for (std::uint32_t n = 1; n < nodes_; ++n) {
        const std::size_t port = std::size_t{n} * nics_ + j;
        if (top(attached_[port]->to) == top(attached_[j]->to)) continue;
        refuse(path_ + ".links", "hosts do not reach each other",
               nics_ == 1 ? "a way from every host to every other" : "for each NIC number, a way from every host to every other",
               fmt::format("{} on {} and {} on {}", port_name(j), out_.graph.switches[attached_[j]->to], port_name(port), out_.graph.switches[attached_[port]->to]));
      }
    }
  }

  const scenario::Network& network_;
  std::string at_;
  std::string path_;
  std::uint32_t nodes_;
  std::uint32_t nics_;
  ExplicitNetwork out_;
  std::unordered_map<std::string, End> known_;               // look-up only
  std::unordered_map<std::uint64_t, std::string> joined_;    // look-up only
  std::vector<std::optional<GraphNetwork::Attachment>> attached_;
  std::size_t pairs_ = 0;
};

}  // namespace

ExplicitNetwork read_explicit(const scenario::Network& network, const std::string& at, std::vector<std::string> names, std::uint32_t nics_per_node) {
  return Reader{network, at, std::move(names), nics_per_node}.run();
}

}  // namespace stepcast::topology
