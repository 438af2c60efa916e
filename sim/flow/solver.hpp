// sim/flow/solver.hpp — weighted max-min fair rates, kept up to date.
//
// Mathematics   maximise the smallest level, then the next smallest, ..., subject to
//                 x_f = w_f * level_f                     rate of flow f, weight w_f > 0
//                 x_f <= u_f                              its cap
//                 sum over f of a_lf * x_f <= C_l         capacity of link l, coefficients a_lf > 0
//               A pipelined collective is one flow with many links: x is the rate of the payload and a_lf
//               how many bytes link l moves for each byte of it (2(n-1)/n for a ring all-reduce).
// Example       link of 3, flows of weight 1 and 2:  x1 + x2 = 3, x2 = 2 x1  =>  1 and 2.
//               The same with cap u2 = 0.5:  x2 = 0.5, x1 = 2.5.
//
// How lazy      A flow stops rising at its level, where its cap is reached or the first of its links fills. A
//               change moves no level below that at which the changed flow or link itself stops, and above
//               it only what really moves is looked at: refill.cpp, docs/adr/0011. A link whose flows
//               together cannot overload it, sum of a_lf * b_f <= C_l with b_f = min(u_f, C_l / a_lf), never
//               fills and is left out.
// Exact         The result is that of solving everything anew, bit for bit, whatever the history.
// Cost          O(flows on the links that move), with a heap of these links
// Tests         unit/flow_solver_test (worked by hand), property/flow_property_test (certificate;
//               incremental against naive), diff/flow_simgrid_test (exact finish times)
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/flow/block_pool.hpp"
#include "sim/flow/system.hpp"

namespace stepcast::flow {

using LinkIndex = Id<struct FlowLinkTag>;
using FlowIndex = Id<struct FlowTag>;

struct Use {
  LinkIndex link;
  double coefficient = 1.0;  // bytes on the link for each byte of the flow
};

enum class Method : std::uint8_t {
  kIncremental,
  kFull,  // naive_max_min over everything at each solve(): the oracle, and the tool to bisect
};

class Solver {
 public:
  static constexpr double kUncapped = std::numeric_limits<double>::infinity();

  explicit Solver(Method method = Method::kIncremental) : method_{method} {}

  // Requires: capacity finite and >= 0 (0: a link that is down).
  LinkIndex add_link(double capacity);
  // Requires: weight and coefficients finite and > 0, cap >= 0, and a finite cap if `uses` is empty. A
  // link named twice counts with the sum of its coefficients. The rate is 0 until solve().
  FlowIndex add_flow(std::span<const Use> uses, double weight = 1.0, double cap = kUncapped);
  // The index may be given out again by the next add_flow.
  void remove_flow(FlowIndex flow);
  void set_capacity(LinkIndex link, double capacity);
  void set_cap(FlowIndex flow, double cap);

  // Brings all rates up to date. Returns the flows whose rate changed, and those added since the
  // last call, in index order; valid until the next call.
  std::span<const FlowIndex> solve();

  // True when a change since the last solve() awaits one.
  [[nodiscard]] bool dirty() const { return !seed_flows_.empty() || !seed_links_.empty(); }

  [[nodiscard]] double rate(FlowIndex flow) const { return flows_[flow.index()].rate; }
  [[nodiscard]] double capacity(LinkIndex link) const { return links_[link.index()].capacity; }
  // Sum of a * x over the link's flows, in flow order. O(flows on the link).
  [[nodiscard]] double load(LinkIndex link) const;
  [[nodiscard]] std::size_t flow_count() const { return flows_.size() - free_flows_.size(); }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  // Flows that the last solve() released from their level: how lazy it was.
  [[nodiscard]] std::size_t last_reach() const { return reached_.size(); }

  // Everything as one System, flows in index order; `flows` receives their indices.
  [[nodiscard]] System system(std::vector<FlowIndex>& flows) const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Link {
    double capacity = 0.0;
    double full = kNever;        // the level at which it fills
    double due = kNever;         // of its entry in agenda_, while solving
    std::int64_t potential = 0;  // sum of part(): what its flows could load at most
    Block members;
    std::uint32_t member_count = 0;
    std::uint32_t mark = 0;      // last solve() that touched it, or last add_flow that named it
    bool was_full = false;       // `full` is of the last solve and not reached yet in this one
    bool seeded = false;
  };
  struct Member {
    std::uint32_t flow;
    std::uint32_t use;  // position among the flow's uses
    double coefficient;
  };
  struct Flow {
    double weight = 0.0;
    double cap = 0.0;
    double bound = 0.0;  // b_f
    double top = 0.0;    // its level: b_f / w_f
    double level = 0.0;  // where it stopped rising; kNever while open
    double rate = 0.0;   // of the last solve
    Block uses;
    std::uint32_t use_count = 0;
    std::uint32_t mark = 0;  // last solve() that reached it
    bool alive = false;
    bool fresh = false;  // not solved yet
    bool seeded = false;

    [[nodiscard]] double rate_at(double at) const { return at >= top ? bound : std::min(bound, at * weight); }
  };
  // Something to look at when all levels below have been settled.
  struct Entry {
    double level;
    std::uint32_t index;
    bool is_link;  // else: a flow that reaches its cap
    friend bool operator>(const Entry& a, const Entry& b) {
      if (a.level != b.level) return a.level > b.level;
      return a.is_link != b.is_link ? a.is_link : a.index > b.index;
    }
  };

  [[nodiscard]] std::span<const Use> uses_of(const Flow& flow) const {
    return {uses_.data(flow.uses), flow.use_count};
  }
  [[nodiscard]] std::span<const Member> members_of(const Link& link) const {
    return {members_.data(link.members), link.member_count};
  }
  [[nodiscard]] static bool can_bind(const Link& link);
  [[nodiscard]] static std::int64_t part(double coefficient, double bound, double capacity);
  [[nodiscard]] double bound_of(const Flow& flow) const;
  void attach(Link& link, Member member);
  void detach(Link& link, std::uint32_t flow);
  void rebound(std::uint32_t flow);
  void seed_flow(std::uint32_t flow);
  void seed_link(std::uint32_t link);
  std::uint32_t next_mark();
  void open_seeds();

  // refill.cpp
  void refill();
  void open(std::uint32_t flow, double level);
  void touch(std::uint32_t link, double level);
  void reach(std::uint32_t flow);
  void look_at(std::uint32_t link);
  void pass_old_level(std::uint32_t link);
  void fill(std::uint32_t link, double level);
  [[nodiscard]] double fill_level(const Link& link);
  void push(Entry entry);
  Entry pop();

  void solve_naively();
  void set_rate(std::uint32_t flow, double rate);

  Method method_;
  std::uint32_t mark_ = 0;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  BlockPool<Use> uses_;
  BlockPool<Member> members_;  // of each link, by flow
  std::vector<std::uint32_t> seed_flows_;
  std::vector<std::uint32_t> seed_links_;
  std::vector<std::uint32_t> reached_;
  std::vector<Entry> agenda_;  // a heap, lowest level first
  struct Share {
    double level;
    double load;    // at its level
    double weight;  // load per level, below it
  };
  std::vector<Share> shares_;  // of fill_level()
  std::vector<FlowIndex> changed_;
};

}  // namespace stepcast::flow
