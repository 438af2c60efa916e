// Random small plans are sound; each way of breaking one is caught and named.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "sim/base/random.hpp"
#include "sim/plan/check.hpp"
#include "tests/support/random_plan.hpp"

using namespace stepcast;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("property");

namespace {

constexpr std::uint64_t kPlans = 300;

// The first instruction of a kind in any program, from a random start; empty when there is none.
template <class Op>
struct Found {
  Program* program;
  std::size_t index;
  Op* op;
};

template <class Op>
std::optional<Found<Op>> find(Plan& plan, Rng& rng, const std::function<bool(const Op&)>& accept = {}) {
  std::vector<Found<Op>> all;
  for (Program& program : plan.programs) {
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      Op* op = std::get_if<Op>(&program.instructions[i].body);
      if (op && (!accept || accept(*op))) all.push_back({&program, i, op});
    }
  }
  if (all.empty()) return std::nullopt;
  return all[rng.below(all.size())];
}

void erase(Program& program, std::size_t index) {
  program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(index));
}

void insert(Program& program, std::size_t index, const Instruction& instruction) {
  program.instructions.insert(program.instructions.begin() + static_cast<std::ptrdiff_t>(index), instruction);
}

struct Mutation {
  const char* name;
  PlanFault expected;
  std::function<bool(Plan&, Rng&)> apply;  // false: this plan has nothing to break that way
};

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> kAll{
      {"drop a send", PlanFault::kMessageUnmatched,
       [](Plan& p, Rng& r) {
         const auto f = find<Send>(p, r);
         if (!f) return false;
         // Without its micro-batch label the count, not the order, must tell.
         for (Program& program : p.programs) {
           for (Instruction& i : program.instructions) i.micro_batch.reset();
         }
         erase(*f->program, f->index);
         return true;
       }},
      {"drop a receive", PlanFault::kMessageUnmatched,
       [](Plan& p, Rng& r) {
         const auto f = find<Recv>(p, r);
         if (!f) return false;
         for (Program& program : p.programs) {
           for (Instruction& i : program.instructions) i.micro_batch.reset();
         }
         erase(*f->program, f->index);
         return true;
       }},
      {"change the size of a message", PlanFault::kMessageSize,
       [](Plan& p, Rng& r) {
         const auto f = find<Recv>(p, r);
         if (f) f->op->bytes += Bytes{1};
         return f.has_value();
       }},
      {"expect another micro-batch", PlanFault::kMessageOrder,
       [](Plan& p, Rng& r) {
         const auto f = find<Recv>(p, r);
         if (!f) return false;
         Instruction& i = f->program->instructions[f->index];
         i.micro_batch = static_cast<std::uint16_t>(*i.micro_batch + 1);
         return true;
       }},
      {"change the size of a collective on one stage", PlanFault::kCollectiveMismatch,
       [](Plan& p, Rng& r) {
         if (p.programs.size() < 2) return false;
         const auto f = find<Collective>(p, r, [](const Collective& c) { return c.group.value() >= 2; });
         f->op->bytes += Bytes{1};
         return true;
       }},
      {"change the kind of a collective on one stage", PlanFault::kCollectiveMismatch,
       [](Plan& p, Rng& r) {
         if (p.programs.size() < 2) return false;
         const auto f = find<Collective>(p, r, [](const Collective& c) { return c.group.value() >= 2; });
         f->op->kind = CollectiveKind::kBroadcast;
         return true;
       }},
      {"drop a collective on one stage", PlanFault::kCollectiveMismatch,
       [](Plan& p, Rng& r) {
         if (p.programs.size() < 2) return false;
         const auto f = find<Collective>(p, r, [](const Collective& c) { return c.group.value() >= 2; });
         erase(*f->program, f->index);
         return true;
       }},
      {"free twice", PlanFault::kFreeTwice,
       [](Plan& p, Rng& r) {
         const auto f = find<Free>(p, r);
         insert(*f->program, f->index + 1, Instruction{f->program->instructions[f->index]});
         return true;
       }},
      {"free what was never allocated", PlanFault::kFreeUnallocated,
       [](Plan& p, Rng& r) {
         const auto f = find<Free>(p, r);
         const BufferId buffer = f->op->buffer;
         auto& list = f->program->instructions;
         std::erase_if(list, [&](const Instruction& i) {
           const auto* alloc = std::get_if<Alloc>(&i.body);
           return alloc && alloc->buffer == buffer;
         });
         return true;
       }},
      {"allocate twice", PlanFault::kAllocTwice,
       [](Plan& p, Rng& r) {
         const auto f = find<Alloc>(p, r);
         insert(*f->program, f->index + 1, Instruction{f->program->instructions[f->index]});
         return true;
       }},
      {"drop a record", PlanFault::kWaitUnrecorded,
       [](Plan& p, Rng& r) {
         const auto f = find<Record>(p, r);
         erase(*f->program, f->index);
         return true;
       }},
      {"wait before the record", PlanFault::kWaitBeforeRecord,
       [](Plan& p, Rng& r) {
         const auto f = find<Wait>(p, r);
         const Instruction wait = f->program->instructions[f->index];
         erase(*f->program, f->index);
         insert(*f->program, 0, wait);
         return true;
       }},
      {"record twice", PlanFault::kRecordTwice,
       [](Plan& p, Rng& r) {
         const auto f = find<Record>(p, r);
         insert(*f->program, f->program->instructions.size(), Instruction{f->program->instructions[f->index]});
         return true;
       }},
      {"kernel out of range", PlanFault::kIdOutOfRange,
       [](Plan& p, Rng& r) {
         const auto f = find<Compute>(p, r);
         f->op->kernel = KernelId{f->program->kernels.size()};
         return true;
       }},
      {"label out of range", PlanFault::kIdOutOfRange,
       [](Plan& p, Rng& r) {
         const auto f = find<Compute>(p, r);
         f->program->instructions[f->index].label = LabelId{f->program->labels.size() + 7};
         return true;
       }},
      {"group out of range", PlanFault::kIdOutOfRange,
       [](Plan& p, Rng& r) {
         find<Collective>(p, r)->op->group = GroupId{p.groups.size()};
         return true;
       }},
      {"negative size", PlanFault::kSize,
       [](Plan& p, Rng& r) {
         find<Collective>(p, r)->op->bytes = Bytes{-1};
         return true;
       }},
      {"undeclared stream", PlanFault::kStream,
       [](Plan& p, Rng& r) {
         const auto f = find<Compute>(p, r);
         f->program->instructions[f->index].stream = StreamId{f->program->streams.size()};
         return true;
       }},
      {"message to a stage that does not exist", PlanFault::kPeer,
       [](Plan& p, Rng& r) {
         const auto f = find<Send>(p, r);
         if (f) f->op->peer_stage = p.degrees[Axis::kPipeline];
         return f.has_value();
       }},
      {"collective of a group without this stage", PlanFault::kNotInGroup,
       [](Plan& p, Rng&) {
         if (p.programs.size() < 3) return false;
         for (Instruction& i : p.programs[1].instructions) {
           if (auto* c = std::get_if<Collective>(&i.body)) c->group = GroupId{std::size_t{3}};
         }
         return true;
       }},
      {"matrix product without a shape", PlanFault::kKernel,
       [](Plan& p, Rng& r) {
         const auto f = find<Compute>(p, r);
         Kernel& k = f->program->kernels[f->op->kernel.index()];
         k.op = OpClass::kGemm;
         k.gemm.reset();
         return true;
       }},
      {"launches that do not divide a product's batch", PlanFault::kKernel,
       [](Plan& p, Rng& r) {
         const auto f = find<Compute>(p, r);
         Kernel& k = f->program->kernels[f->op->kernel.index()];
         k.op = OpClass::kGemm;
         k.gemm = GemmShape{3, 64, 64, 64};
         k.launches = 2;
         return true;
       }},
      {"degrees that fit no program table", PlanFault::kDegrees,
       [](Plan& p, Rng&) {
         p.degrees[Axis::kPipeline] += 1;
         return true;
       }},
      {"group axes in disorder", PlanFault::kGroup,
       [](Plan& p, Rng&) {
         std::swap(p.groups[2].axes[0], p.groups[2].axes[1]);
         return true;
       }},
      // Stage 0 receives the first gradient before it sends the first activation, on one stream.
      {"send behind the receive that answers it", PlanFault::kDeadlock,
       [](Plan& p, Rng&) {
         if (p.programs.size() < 2) return false;
         auto& list = p.programs[0].instructions;
         const auto is_send = [](const Instruction& i) { return std::holds_alternative<Send>(i.body); };
         const auto is_recv = [](const Instruction& i) { return std::holds_alternative<Recv>(i.body); };
         const auto send = std::find_if(list.begin(), list.end(), is_send);
         const auto recv = std::find_if(list.begin(), list.end(), is_recv);
         recv->stream = send->stream;
         std::rotate(send, recv, recv + 1);
         return true;
       }},
  };
  return kAll;
}

}  // namespace

TEST_CASE("plan check: random plans are sound") {
  for (std::uint64_t seed = 0; seed < kPlans; ++seed) {
    CAPTURE(seed);
    const Plan plan = test::random_plan(seed);
    const auto errors = check(plan);
    for (const PlanError& error : errors) MESSAGE(to_text(error));
    REQUIRE(errors.empty());
  }
}

TEST_CASE("plan check: every mutation is caught and named") {
  for (const Mutation& mutation : mutations()) {
    CAPTURE(mutation.name);
    int applied = 0;
    for (std::uint64_t seed = 0; seed < kPlans / 5; ++seed) {
      CAPTURE(seed);
      Plan plan = test::random_plan(seed);
      Rng rng{seed, mutation.name};
      if (!mutation.apply(plan, rng)) continue;
      ++applied;
      const auto errors = check(plan);
      REQUIRE_FALSE(errors.empty());
      const bool named = std::any_of(errors.begin(), errors.end(), [&](const PlanError& e) { return e.fault == mutation.expected; });
      INFO(to_text(errors.front()));
      CHECK(named);
      for (const PlanError& error : errors) {
        CHECK_FALSE(error.problem.empty());
        CHECK_FALSE(error.hint.empty());
      }
    }
    CHECK(applied > 20);
  }
}

TEST_SUITE_END();
