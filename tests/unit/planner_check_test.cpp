#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::parallel;
using namespace stepcast::test;

TEST_SUITE_BEGIN("unit");

namespace {

Strategy base() {
  Strategy s;
  s.sequence = 1024;
  s.global_batch = 64;
  return s;
}

// The only problem of a Llama-3-8B run.
StrategyError only_error(const Strategy& s, const workload::ModelShape& shape = llama3_8b()) {
  const auto errors = check(shape, s);
  REQUIRE(errors.size() == 1);
  return errors[0];
}

}  // namespace

TEST_CASE("planner: a sound strategy has no problems") { CHECK(check(llama3_8b(), base()).empty()); }

TEST_CASE("planner: tp must divide the heads and the MLP, both keys named") {
  Strategy s = base();
  s.tp = 6;
  const auto errors = check(llama3_8b(), s);
  REQUIRE(errors.size() == 3);  // 32 heads, 8 kv heads, 14336 wide
  CHECK(errors[0].path == "parallel.tp");
  CHECK(errors[0].other_path == "model.heads");
  CHECK(errors[0].problem == "6 does not divide attention heads");
  CHECK(errors[0].expected == "a divisor of 32 (model.heads)");
  CHECK(errors[0].got == "6");
  CHECK(errors[1].other_path == "model.kv_heads");
  CHECK(errors[2].other_path == "model.ffn");
}

TEST_CASE("planner: key/value heads are split or replicated evenly") {
  Strategy s = base();
  s.tp = 16;  // a multiple of the 8 key/value heads
  CHECK(check(llama3_8b(), s).empty());
  workload::ModelShape shape = llama3_8b();
  shape.kv_heads = 12;
  shape.heads = 48;
  CHECK(only_error(s, shape).other_path == "model.kv_heads");  // 12 over 16
}

TEST_CASE("planner: no more stages than layers") {
  Strategy s = base();
  s.pp = 33;
  CHECK(only_error(s).path == "parallel.pp");
  CHECK(only_error(s).other_path == "model.layers");
}

TEST_CASE("planner: the batch must be dealt out evenly") {
  Strategy s = base();
  s.dp = 3;
  CHECK(only_error(s).path == "batch.global");
  CHECK(only_error(s).expected == "a multiple of 3 (parallel.dp 3 x batch.micro 1)");
  s.dp = 64;
  s.micro_batch = 2;
  CHECK(only_error(s).other_path == "batch.micro");
}

TEST_CASE("planner: shard groups") {
  Strategy s = base();
  s.dp = 8;
  s.shard_group = 4;
  CHECK(only_error(s).other_path == "parallel.zero");  // nothing is sharded
  s.zero = 3;
  CHECK(check(llama3_8b(), s).empty());
  s.shard_group = 3;
  CHECK(only_error(s).other_path == "parallel.dp");
  s.shard_group = 1;
  CHECK(only_error(s).expected == "a divisor of 8 (parallel.dp), at least 2");
}

TEST_CASE("planner: a tied embedding on two stages is not sharded") {
  Strategy s = base();
  s.pp = 2;
  s.dp = 2;
  s.zero = 2;
  CHECK(only_error(s, gpt_shape(8, 256, 4)).other_path == "model.tied_embeddings");
  s.zero = 1;
  CHECK(check(gpt_shape(8, 256, 4), s).empty());
}

TEST_CASE("planner: learned positions bound the sequence") {
  Strategy s = base();
  s.sequence = 4096;
  CHECK(only_error(s, gpt_shape(8, 256, 4)).other_path == "model.max_positions");
}

TEST_CASE("planner: values out of range are told apart, before anything is divided by them") {
  Strategy s = base();
  s.tp = 0;
  s.dp = -1;
  s.zero = 4;
  s.micro_batch = 0;
  const auto errors = check(llama3_8b(), s);
  REQUIRE(errors.size() == 4);
  CHECK(errors[0].path == "parallel.tp");
  CHECK(errors[1].path == "parallel.dp");
  CHECK(errors[2].path == "batch.micro");
  CHECK(errors[3].path == "parallel.zero");
}

TEST_CASE("planner: an axis order names every axis once") {
  Strategy s = base();
  s.order[0] = plan::Axis::kData;
  CHECK(only_error(s).path == "parallel.order");
}

TEST_SUITE_END();
