// Tensor-parallel gathers and scatters inside products: which step runs beside which, and what stays as it was.
#include <doctest/doctest.h>

#include <algorithm>

#include "models/workload/operators.hpp"
#include "tests/support/workload_shapes.hpp"

using namespace stepcast;
using namespace stepcast::workload;

TEST_SUITE_BEGIN("unit");

namespace {

Block layer(bool overlaps, std::optional<plan::Dtype> gemm_dtype = std::nullopt) {
  BlockOptions options;
  options.sequence = 1024;
  options.tensor_parallel = 4;
  options.sequence_parallel = true;
  options.overlap_tensor_parallel = overlaps;
  options.gemm_dtype = gemm_dtype;
  return make_layer(test::llama3_8b(), 0, options);
}

std::string name_of(const Step& step) { return std::visit([](const auto& s) { return s.name; }, step); }

std::int64_t moved(const std::vector<Step>& steps) {
  std::int64_t bytes = 0;
  for (const Step& step : steps)
    if (const auto* c = std::get_if<BlockCollective>(&step)) bytes += c->bytes.count();
  return bytes;
}

std::size_t position(const std::vector<Step>& steps, const std::string& name) {
  return static_cast<std::size_t>(std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return name_of(s) == name; }) - steps.begin());
}

const BlockCollective& collective(const std::vector<Step>& steps, const std::string& name) { return std::get<BlockCollective>(steps[position(steps, name)]); }

}  // namespace

TEST_CASE("overlap: gathers run beside the product behind them, scatters beside the one before") {
  const Block apart = layer(false);
  const Block beside = layer(true);
  CHECK(collective(apart.forward, "attention.gather").overlap_steps == 0);
  CHECK(position(apart.forward, "attention.scatter") == position(apart.forward, "attention.out") + 1);

  CHECK(collective(beside.forward, "attention.gather").overlap_steps == 1);
  CHECK(collective(beside.forward, "mlp.gather").overlap_steps == 1);
  CHECK(position(beside.forward, "attention.scatter") + 1 == position(beside.forward, "attention.out"));
  CHECK(collective(beside.forward, "attention.scatter").overlap_steps == 1);
  CHECK(collective(beside.backward, "mlp.grad.gather").overlap_steps == 1);
}

// fp8: the product's input is cast first, and the gather goes on beside the cast too.
TEST_CASE("overlap: a cast may stand between a gather and its product") {
  const Block beside = layer(true, plan::Dtype::kFp8);
  CHECK(collective(beside.forward, "attention.gather").overlap_steps == 2);
}

TEST_CASE("overlap: no byte, product or backward collective changes") {
  const Block apart = layer(false);
  const Block beside = layer(true);
  CHECK(moved(beside.forward) == moved(apart.forward));
  CHECK(moved(beside.backward) == moved(apart.backward));
  CHECK(test::gemm_flops(beside.forward) == test::gemm_flops(apart.forward));
  // What was beside a weight gradient already stays there.
  CHECK(collective(beside.backward, "mlp.up.dgrad.scatter").overlap_steps == collective(apart.backward, "mlp.up.dgrad.scatter").overlap_steps);
}
