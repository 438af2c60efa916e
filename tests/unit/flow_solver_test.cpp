// Every case states its system, its expectation and the reason; worked by hand.
#include "sim/flow/solver.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace stepcast::flow;
using doctest::Approx;

namespace {

FlowIndex add(Solver& net, std::vector<Use> uses, double weight = 1.0, double cap = Solver::kUncapped) {
  return net.add_flow(uses, weight, cap);
}

std::vector<std::uint32_t> ids(std::span<const FlowIndex> flows) {
  std::vector<std::uint32_t> out;
  for (const FlowIndex flow : flows) out.push_back(flow.value());
  return out;
}
using Ids = std::vector<std::uint32_t>;

}  // namespace

TEST_SUITE_BEGIN("unit");

// One link of 10, one flow.  x <= 10  =>  10: a flow alone takes the link.
TEST_CASE("flow: one flow takes its slowest link") {
  Solver net;
  const LinkIndex wide = net.add_link(40.0);
  const LinkIndex narrow = net.add_link(10.0);
  const FlowIndex f = add(net, {{wide}, {narrow}});
  net.solve();
  CHECK(net.rate(f) == Approx(10.0));
  CHECK(net.load(wide) == Approx(10.0));
}

// Two flows, one link of 3, weights 1 and 2.  x1 + x2 = 3, x2 = 2 x1  =>  1 and 2.
TEST_CASE("flow: weight 2 gets twice the share") {
  Solver net;
  const LinkIndex l = net.add_link(3.0);
  const FlowIndex f1 = add(net, {{l}}, 1.0);
  const FlowIndex f2 = add(net, {{l}}, 2.0);
  net.solve();
  CHECK(net.rate(f1) == Approx(1.0));
  CHECK(net.rate(f2) == Approx(2.0));
}

// The same with cap 0.5 on the second.  x2 = 0.5 (it would get 2), the rest, 2.5, goes to the first.
TEST_CASE("flow: what a capped flow leaves goes to the others") {
  Solver net;
  const LinkIndex l = net.add_link(3.0);
  const FlowIndex f1 = add(net, {{l}}, 1.0);
  const FlowIndex f2 = add(net, {{l}}, 2.0, 0.5);
  net.solve();
  CHECK(net.rate(f1) == Approx(2.5));
  CHECK(net.rate(f2) == Approx(0.5));
}

// Link of 6; flow 1 loads it 2 bytes a byte.  2 x1 + x2 = 6, x1 = x2  =>  2 and 2.
TEST_CASE("flow: a coefficient counts the bytes a link moves for each byte of the flow") {
  Solver net;
  const LinkIndex l = net.add_link(6.0);
  const FlowIndex f1 = add(net, {{l, 2.0}});
  const FlowIndex f2 = add(net, {{l}});
  net.solve();
  CHECK(net.rate(f1) == Approx(2.0));
  CHECK(net.rate(f2) == Approx(2.0));
  CHECK(net.load(l) == Approx(6.0));
}

// Coefficient 2 and weight 2 against 1 and 1, link of 10.  2 x1 + x2 = 10, x1 = 2 x2  =>  x2 = 2, x1 = 4.
TEST_CASE("flow: coefficient and weight together") {
  Solver net;
  const LinkIndex l = net.add_link(10.0);
  const FlowIndex f1 = add(net, {{l, 2.0}}, 2.0);
  const FlowIndex f2 = add(net, {{l, 1.0}}, 1.0);
  net.solve();
  CHECK(net.rate(f1) == Approx(4.0));
  CHECK(net.rate(f2) == Approx(2.0));
}

// Links A = 10 and B = 4; f1 on A, f2 on A and B, f3 on B.  B fills first at 2 (f2 = f3 = 2), then f1
// takes what is left of A, 8. The classical two-constraint chain.
TEST_CASE("flow: two constraints, the tighter one is settled first") {
  Solver net;
  const LinkIndex a = net.add_link(10.0);
  const LinkIndex b = net.add_link(4.0);
  const FlowIndex f1 = add(net, {{a}});
  const FlowIndex f2 = add(net, {{a}, {b}});
  const FlowIndex f3 = add(net, {{b}});
  net.solve();
  CHECK(net.rate(f1) == Approx(8.0));
  CHECK(net.rate(f2) == Approx(2.0));
  CHECK(net.rate(f3) == Approx(2.0));
}

// The same with weight 3 on f3:  f2 + f3 = 4, f3 = 3 f2  =>  1 and 3; f1 = 9.
TEST_CASE("flow: two constraints, one weight changed") {
  Solver net;
  const LinkIndex a = net.add_link(10.0);
  const LinkIndex b = net.add_link(4.0);
  const FlowIndex f1 = add(net, {{a}});
  const FlowIndex f2 = add(net, {{a}, {b}});
  const FlowIndex f3 = add(net, {{b}}, 3.0);
  net.solve();
  CHECK(net.rate(f1) == Approx(9.0));
  CHECK(net.rate(f2) == Approx(1.0));
  CHECK(net.rate(f3) == Approx(3.0));
}

// A ring of four: one flow on four links of 8 with coefficient 2 (3)/4 = 1.5.  1.5 x <= 8  =>  5.333...
// A plain flow joins one of the links:  1.5 x + y = 8, x = y  =>  3.2 each.
TEST_CASE("flow: a ring collective is one flow on many links") {
  Solver net;
  std::vector<Use> ring;
  for (int i = 0; i < 4; ++i) ring.push_back({net.add_link(8.0), 1.5});
  const FlowIndex x = net.add_flow(ring);
  CHECK(ids(net.solve()) == Ids{x.value()});
  CHECK(net.rate(x) == Approx(8.0 / 1.5));
  const FlowIndex y = add(net, {{ring[2].link}});
  net.solve();
  CHECK(net.rate(x) == Approx(3.2));
  CHECK(net.rate(y) == Approx(3.2));
}

// A link named twice counts twice: 2 x <= 6  =>  3, as coefficient 2 would give.
TEST_CASE("flow: a link named twice adds its coefficients") {
  Solver net;
  const LinkIndex l = net.add_link(6.0);
  const FlowIndex f = add(net, {{l}, {l}});
  net.solve();
  CHECK(net.rate(f) == Approx(3.0));
  CHECK(net.load(l) == Approx(6.0));
  net.remove_flow(f);
  const FlowIndex g = add(net, {{l}});
  net.solve();
  CHECK(net.rate(g) == Approx(6.0));
}

TEST_CASE("flow: a flow without links runs at its cap") {
  Solver net;
  const FlowIndex f = add(net, {}, 1.0, 7.0);
  net.solve();
  CHECK(net.rate(f) == 7.0);
}

// A link that is down carries nothing, and takes nothing from the other links of its flows:
// f1 on A and B, f2 on A (10). B down: f1 = 0, f2 = 10. B up (4): f1 = 4, f2 = 6.
TEST_CASE("flow: a link of capacity 0 stops its flows and frees their other links") {
  Solver net;
  const LinkIndex a = net.add_link(10.0);
  const LinkIndex b = net.add_link(0.0);
  const FlowIndex f1 = add(net, {{a}, {b}});
  const FlowIndex f2 = add(net, {{a}});
  net.solve();
  CHECK(net.rate(f1) == 0.0);
  CHECK(net.rate(f2) == Approx(10.0));
  net.set_capacity(b, 4.0);
  CHECK(ids(net.solve()) == Ids{f1.value(), f2.value()});
  CHECK(net.rate(f1) == Approx(4.0));
  CHECK(net.rate(f2) == Approx(6.0));
  net.set_capacity(b, 0.0);
  net.solve();
  CHECK(net.rate(f1) == 0.0);
  CHECK(net.rate(f2) == Approx(10.0));
}

TEST_CASE("flow: removing a flow gives its share back, its slot is used again") {
  Solver net;
  const LinkIndex l = net.add_link(6.0);
  const FlowIndex f1 = add(net, {{l}});
  const FlowIndex f2 = add(net, {{l}});
  net.solve();
  CHECK(net.rate(f1) == Approx(3.0));
  net.remove_flow(f2);
  CHECK(net.dirty());
  CHECK(ids(net.solve()) == Ids{f1.value()});
  CHECK_FALSE(net.dirty());
  CHECK(net.rate(f1) == Approx(6.0));
  CHECK(net.flow_count() == 1);
  CHECK(add(net, {{l}}) == f2);
  net.solve();
  CHECK(net.rate(f2) == Approx(3.0));
}

// Two flows on a link of 6: 3 each. Cap f1 to 1: f2 gets 5. Uncap: 3 each again.
TEST_CASE("flow: set_cap moves the others") {
  Solver net;
  const LinkIndex l = net.add_link(6.0);
  const FlowIndex f1 = add(net, {{l}});
  const FlowIndex f2 = add(net, {{l}});
  net.solve();
  net.set_cap(f1, 1.0);
  CHECK(ids(net.solve()) == Ids{f1.value(), f2.value()});
  CHECK(net.rate(f2) == Approx(5.0));
  net.set_cap(f1, Solver::kUncapped);
  net.solve();
  CHECK(net.rate(f1) == Approx(3.0));
  CHECK(net.rate(f2) == Approx(3.0));
}

// f1 and f2 meet on a link of 100 that their private links of 10 and 20 cannot fill: it never binds, so
// removing f2 does not even look at f1. On a link of 25 f2 gets 15 and f1, at its own 10, still does not
// care; on a link of 15 both get 7.5, and f1 must rise.
TEST_CASE("flow: a link that cannot bind joins nothing") {
  for (const double shared_capacity : {100.0, 25.0, 15.0}) {
    CAPTURE(shared_capacity);
    Solver net;
    const LinkIndex shared = net.add_link(shared_capacity);
    const FlowIndex f1 = add(net, {{net.add_link(10.0)}, {shared}});
    const FlowIndex f2 = add(net, {{net.add_link(20.0)}, {shared}});
    CHECK(ids(net.solve()) == Ids{f1.value(), f2.value()});
    CHECK(net.rate(f1) == Approx(shared_capacity == 15.0 ? 7.5 : 10.0));
    CHECK(net.rate(f2) == Approx(shared_capacity == 100.0 ? 20.0 : shared_capacity == 25.0 ? 15.0 : 7.5));
    net.remove_flow(f2);
    const bool rises = shared_capacity == 15.0;
    CHECK(net.solve().size() == (rises ? 1 : 0));
    CHECK(net.last_reach() == (rises ? 1 : 0));
    CHECK(net.rate(f1) == Approx(10.0));
  }
}

TEST_CASE("flow: nothing to do is nothing done") {
  Solver net;
  CHECK(net.solve().empty());
  const LinkIndex l = net.add_link(6.0);
  net.set_capacity(l, 5.0);
  CHECK(net.solve().empty());
  const FlowIndex gone = add(net, {{l}});
  net.remove_flow(gone);
  CHECK(net.solve().empty());
}

TEST_SUITE_END();
