// The instruction list of a small mixture of experts over tensor, context and expert parallelism, as
// `stepcast plan` prints it. STEPCAST_UPDATE_GOLDEN=1 rewrites it.
#include <doctest/doctest.h>

#include "models/parallel/planner.hpp"
#include "sim/plan/print.hpp"
#include "tests/support/golden.hpp"

using namespace stepcast;

TEST_SUITE_BEGIN("golden");

TEST_CASE("planner: the list of a mixture of experts") {
  workload::ModelShape shape;
  shape.name = "mixture";
  shape.layers = 2;
  shape.hidden = 512;
  shape.heads = 8;
  shape.kv_heads = 4;
  shape.head_dim = 64;
  shape.ffn = 1024;
  shape.vocab = 4096;
  shape.gated_mlp = true;
  shape.experts = workload::ExpertShape{.count = 8, .top_k = 2, .ffn = 256, .shared_ffn = 256};
  shape.layer_has_experts = {false, true};
  parallel::Strategy s;
  s.tp = 2;
  s.cp = 2;
  s.dp = 2;
  s.ep = 4;
  s.etp = 1;
  s.sequence_parallel = true;
  s.overlap_shared_experts = true;
  s.global_batch = 2;
  s.sequence = 1024;
  s.zero = 1;
  test::check_golden("plan/mixture.txt", plan::print_plan(parallel::make_plan(shape, s), {}));
}

TEST_SUITE_END();
