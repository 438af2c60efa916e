// sim/scenario/traffic_section.hpp — the `traffic:` section of a file for `stepcast network`: flows alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"
#include "sim/scenario/words.hpp"

namespace stepcast::scenario {

struct TrafficFlow {
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes size;
  Duration start;
  std::optional<TrafficAxis> axis;

  template <class V>
  void visit(V& v) {
    v.key("from", from, "Sending GPU, counted over all nodes.", required().at_least(0).example("0"));
    v.key("to", to, "Receiving GPU.", required().at_least(0).example("8"));
    v.key("size", size, "Bytes to move.", required().above(0).example("100 MB"));
    v.key("start", start, "When the sender begins.", at_least(0));
    v.key("axis", axis, "As whose traffic it travels where cluster.networks carry some axes only. Default: as none of them.", example("dp"));
  }
  friend bool operator==(const TrafficFlow&, const TrafficFlow&) = default;
};

enum class TrafficKind : std::uint8_t { kPermutation, kRandom, kAllToAll, kIncast, kRing, kShift };
constexpr std::array<std::pair<const char*, TrafficKind>, 6> enum_words(TrafficKind) {
  return {{{"permutation", TrafficKind::kPermutation}, {"random", TrafficKind::kRandom},
           {"all-to-all", TrafficKind::kAllToAll}, {"incast", TrafficKind::kIncast},
           {"ring", TrafficKind::kRing}, {"shift", TrafficKind::kShift}}};
}

struct TrafficPattern {
  TrafficKind kind = TrafficKind::kPermutation;
  Bytes size;
  std::int64_t flows_per_gpu = 1;
  std::optional<std::int64_t> group;
  std::int64_t by = 1;
  Duration start;
  std::optional<TrafficAxis> axis;

  template <class V>
  void visit(V& v) {
    v.key("kind", kind,
          "permutation (one random cycle through all GPUs), random (each GPU to random others), all-to-all, incast "
          "(all of a group to its first), ring (each to the next of its group), shift (each to the one `by` further on).",
          required());
    v.key("size", size, "Bytes of each flow.", required().above(0).example("100 MB"));
    v.key("flows_per_gpu", flows_per_gpu, "Flows that each GPU sends (random).", between(1, 1e6));
    v.key("group", group, "GPUs of a group, one after the other (all-to-all, incast, ring). Default: all.",
          between(2, 1e9).example("64"));
    v.key("by", by, "How far on the receiver is (shift).", between(1, 1e9));
    v.key("start", start, "When all of them begin.", at_least(0));
    v.key("axis", axis, "As whose traffic they travel where cluster.networks carry some axes only. Default: as none of them.", example("dp"));
  }
  friend bool operator==(const TrafficPattern&, const TrafficPattern&) = default;
};

struct TrafficSection {
  std::vector<TrafficFlow> flows;
  std::vector<TrafficPattern> patterns;
  std::optional<std::string> list;
  std::optional<std::string> matrix;

  template <class V>
  void visit(V& v) {
    v.key("flows", flows, "Flows written out.", example("[{from: 0, to: 8, size: 100 MB}]"));
    v.key("patterns", patterns, "Flows by rule.", example("[{kind: permutation, size: 100 MB}]"));
    v.key("list", list, "CSV file of flows with the columns from, to, size_bytes and, if wanted, start_s.",
          not_empty().example("flows.csv"));
    v.key("matrix", matrix, "CSV file without header: row i, column j holds the bytes from GPU i to GPU j.",
          not_empty().example("matrix.csv"));
  }
  friend bool operator==(const TrafficSection&, const TrafficSection&) = default;
};

}  // namespace stepcast::scenario
