// What measured slow-downs change: factors by number of workers, and the time of kernels.
#include <doctest/doctest.h>

#include "calibration/interference.hpp"
#include "models/gpu/gpu_model.hpp"
#include "tests/support/gpu_fixture.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

namespace {

Interference slowed(const char* kernels, std::int64_t workers, double times, std::optional<std::string> beside = std::nullopt) {
  return {.what = "measured", .slowdown = {times, topology::Basis::kMeasured, "test", {}, {}}, .kernels = kernels, .workers = workers, .beside = std::move(beside)};
}

const std::vector<Interference> kMeasured{slowed("products", 2, 1.1), slowed("streams", 2, 1.5), slowed("streams", 4, 2.0), slowed("products", 2, 1.3, "all_reduce"),
                                          slowed("products", 2, 1.2, "all_gather"), slowed("products", 2, 9.0, "copy both ways")};

}  // namespace

TEST_CASE("interference: factors of the number of workers, or of the largest measured below it") {
  CHECK(crowding_of(kMeasured, 1).streams == 1.0);
  CHECK(crowding_of(kMeasured, 2).streams == 1.5);
  CHECK(crowding_of(kMeasured, 2).products == 1.1);
  CHECK(crowding_of(kMeasured, 2).reductions == 1.0);
  CHECK(crowding_of(kMeasured, 3).streams == 1.5);
  CHECK(crowding_of(kMeasured, 4).streams == 2.0);
  CHECK(beside_collective(kMeasured, 2) == 1.3);
  CHECK_FALSE(beside_collective(kMeasured, 1));
  CHECK_FALSE(beside_collective({}, 8));
  CHECK(measured_workers(kMeasured, 3) == 2);
  CHECK_FALSE(measured_workers(kMeasured, 1));
  // Written by hand or before it said what of: not used.
  CHECK(crowding_of(std::vector<Interference>{{.what = "streams, 2 workers at once", .slowdown = {3.0, topology::Basis::kMeasured, "test", {}, {}}}}, 2).streams == 1.0);
}

// A stream takes 1.5 times as long, but for its launch; a product is not touched by the factor of streams.
TEST_CASE("interference: kernels among other workers take their slow-down longer") {
  gpu::GpuParameters parameters = gpu::testing::round_gpu();
  const plan::Kernel stream = plan::Kernel{.op = plan::OpClass::kElementwise, .flops = Flops{}, .read = Bytes{800'000'000}, .written = Bytes{0}};
  const Duration alone = gpu::GpuModel{parameters}.time(stream);
  parameters.crowding.streams = 1.5;
  const Duration among = gpu::GpuModel{parameters}.time(stream);
  const double launch = parameters.kernel_latency.seconds();
  CHECK((among.seconds() - launch) / (alone.seconds() - launch) == doctest::Approx(1.5).epsilon(1e-6));
}

TEST_SUITE_END();
