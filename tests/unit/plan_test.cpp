#include <doctest/doctest.h>

#include <set>

#include "sim/plan/builder.hpp"
#include "sim/plan/names.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using namespace stepcast::plan;

TEST_SUITE_BEGIN("unit");

namespace {

Plan sized(std::int32_t tp, std::int32_t cp, std::int32_t dp, std::int32_t pp) {
  Plan plan;
  plan.degrees[Axis::kTensor] = tp;
  plan.degrees[Axis::kContext] = cp;
  plan.degrees[Axis::kData] = dp;
  plan.degrees[Axis::kPipeline] = pp;
  return plan;
}

RankId rank_id(std::uint32_t value) { return RankId{value}; }

std::vector<std::uint32_t> values(const std::vector<RankId>& ranks) {
  std::vector<std::uint32_t> result;
  for (const RankId rank : ranks) result.push_back(rank.value());
  return result;
}

}  // namespace

// tp 2, dp 3, pp 2 in Megatron's order: rank = tp + 2 dp + 6 pp.
TEST_CASE("plan: rank and coordinates are inverse, tensor varies fastest") {
  const Plan plan = sized(2, 1, 3, 2);
  CHECK(plan.world_size() == 12);
  const PerAxis c = plan.coordinates(rank_id(9));  // 9 = 1 + 2*1 + 6*1
  CHECK(c[Axis::kTensor] == 1);
  CHECK(c[Axis::kData] == 1);
  CHECK(c[Axis::kPipeline] == 1);
  for (std::uint32_t r = 0; r < 12; ++r) CHECK(plan.rank(plan.coordinates(rank_id(r))) == rank_id(r));
  CHECK(plan.peer(rank_id(9), 0) == rank_id(3));
}

TEST_CASE("plan: another axis order") {
  Plan plan = sized(2, 1, 3, 2);
  plan.order = {Axis::kPipeline, Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData};
  // rank = pp + 2 tp + 4 dp
  CHECK(plan.coordinates(rank_id(7))[Axis::kData] == 1);
  CHECK(plan.coordinates(rank_id(7))[Axis::kTensor] == 1);
  CHECK(plan.coordinates(rank_id(7))[Axis::kPipeline] == 1);
}

TEST_CASE("plan: group members share all other coordinates, ascending") {
  Plan plan = sized(2, 1, 3, 2);
  plan.groups = {{"tp", {Axis::kTensor}, {}},
                 {"dp", {Axis::kData}, {}},
                 {"model", {Axis::kTensor, Axis::kPipeline}, {}},
                 {"embedding", {Axis::kPipeline}, {0, 1}}};
  const auto members = [&](std::size_t group, std::uint32_t rank) {
    return values(plan.members(GroupId{group}, rank_id(rank)));
  };
  CHECK(members(0, 9) == std::vector<std::uint32_t>{8, 9});
  CHECK(members(1, 9) == std::vector<std::uint32_t>{7, 9, 11});
  CHECK(members(2, 9) == std::vector<std::uint32_t>{2, 3, 8, 9});
  CHECK(members(3, 9) == std::vector<std::uint32_t>{3, 9});
}

// dp 6 in blocks of 3 (tp 1): shards within {0,1,2} and {3,4,5}; replicas {0,3}, {1,4}, {2,5}.
TEST_CASE("plan: a split axis gives one's own block, or one's place in all blocks") {
  Plan plan = sized(1, 1, 6, 1);
  plan.groups = {{"shard", {Axis::kData}, {}, AxisSplit{Axis::kData, 3, false}},
                 {"replica", {Axis::kData}, {}, AxisSplit{Axis::kData, 3, true}}};
  CHECK(values(plan.members(GroupId{0U}, rank_id(4))) == std::vector<std::uint32_t>{3, 4, 5});
  CHECK(values(plan.members(GroupId{1U}, rank_id(4))) == std::vector<std::uint32_t>{1, 4});
  // With tp 2 inside, rank = tp + 2 dp: dp 4 of tp 1 is rank 9.
  Plan wide = sized(2, 1, 6, 1);
  wide.groups = plan.groups;
  CHECK(values(wide.members(GroupId{0U}, rank_id(9))) == std::vector<std::uint32_t>{7, 9, 11});
  CHECK(values(wide.members(GroupId{1U}, rank_id(9))) == std::vector<std::uint32_t>{3, 9});
}

// tp 2, cp 2, dp 4, pp 2: a stage's 16 ranks in a row. Experts over 4 of them, one GPU an expert: {0..3}, {4..7}, ...; their
// replicas lie 4 apart. Two GPUs an expert: every other one of 8. As Megatron-Core's expert rank generator counts them.
TEST_CASE("plan: a slice takes ranks of a group that lie a stride apart") {
  Plan plan = sized(2, 2, 4, 2);
  const std::vector<Axis> stage{Axis::kTensor, Axis::kContext, Axis::kData};
  plan.groups = {{"ep", stage, {}, {}, RankSlice{1, 4}}, {"edp", stage, {}, {}, RankSlice{4, 4}}, {"ep.wide", stage, {}, {}, RankSlice{2, 4}}};
  const auto members = [&](std::uint32_t group, std::uint32_t rank) { return values(plan.members(GroupId{group}, rank_id(rank))); };
  CHECK(members(0, 6) == std::vector<std::uint32_t>{4, 5, 6, 7});
  CHECK(members(1, 6) == std::vector<std::uint32_t>{2, 6, 10, 14});
  CHECK(members(2, 5) == std::vector<std::uint32_t>{1, 3, 5, 7});
  CHECK(members(0, 22) == std::vector<std::uint32_t>{20, 21, 22, 23});  // of the second stage
  CHECK(members(1, 22) == std::vector<std::uint32_t>{18, 22, 26, 30});
}

TEST_CASE("plan: only the listed stages take part in a group") {
  Plan plan = sized(1, 1, 1, 4);
  plan.groups = {{"embedding", {Axis::kPipeline}, {0, 3}}};
  CHECK(values(plan.members(GroupId{std::size_t{0}}, rank_id(3))) == std::vector<std::uint32_t>{0, 3});
}

// Every rank is in exactly one instance of a group, and all its members agree on the instance.
TEST_CASE("plan: instances of a group partition the ranks") {
  Plan plan = sized(4, 2, 8, 4);
  plan.groups = {{"dp-cp", {Axis::kContext, Axis::kData}, {}}};
  std::set<std::uint32_t> seen;
  for (std::uint32_t r = 0; r < 256; ++r) {
    const auto members = plan.members(GroupId{std::size_t{0}}, rank_id(r));
    CHECK(members.size() == 16);
    if (members.front() == rank_id(r)) {
      for (const RankId m : members) CHECK(seen.insert(m.value()).second);
    }
  }
  CHECK(seen.size() == 256);
}

TEST_CASE("plan: words are distinct and read back") {
  for (const char* word : names<CollectiveKind>()) {
    CHECK(std::string{name_of(*from_name<CollectiveKind>(word))} == word);
  }
  CHECK(std::string{name_of(Axis::kContext)} == "cp");
  CHECK(std::string{opcode_of(Wait{})} == "wait");
  CHECK(std::string{opcode_of(HostCompute{})} == "host_compute");
  CHECK_FALSE(from_name<Stage>("Forward").has_value());
}

TEST_CASE("plan: the builder interns labels, kernels and streams and applies the context") {
  ProgramBuilder b{"stage 0"};
  const StreamId compute = b.stream(StreamKind::kCompute, "compute");
  const StreamId dp = b.stream(StreamKind::kCommunication, "dp");
  CHECK(b.stream(StreamKind::kCompute, "compute") == compute);
  Kernel gemm{.op = OpClass::kGemm, .gemm = GemmShape{1, 2, 3, 4}, .flops = Flops::from_si(48)};
  b.context({Stage::kForward, std::uint16_t{3}, std::uint16_t{1}});
  b.compute(compute, "qkv", gemm);
  b.layer(std::uint16_t{4});
  b.compute(compute, "qkv", gemm);
  gemm.pass = Pass::kInputGrad;
  b.stage(Stage::kBackward);
  b.compute(compute, "qkv", gemm);
  const BufferId buffer = b.alloc(compute, "act", 10_MiB, Category::kActivations);
  b.free(compute, buffer);
  const EventId event = b.order(compute, dp);
  const Program p = std::move(b).finish();
  CHECK(p.kernels.size() == 2);
  CHECK(p.labels == std::vector<std::string>{"qkv", "act"});
  CHECK(p.streams.size() == 2);
  CHECK(p.event_count == 1);
  REQUIRE(p.instructions.size() == 7);
  CHECK(p.instructions[1].layer == 4);
  CHECK(p.instructions[1].micro_batch == 1);
  CHECK(p.instructions[2].stage == Stage::kBackward);
  CHECK(p.instructions[6] == Instruction{dp, Stage::kBackward, LabelId{std::size_t{1}}, std::uint16_t{4},
                                         std::uint16_t{1}, Wait{event}});
}

TEST_SUITE_END();
