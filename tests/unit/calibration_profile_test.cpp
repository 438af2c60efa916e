#include <doctest/doctest.h>

#include "calibration/gpu_parameters.hpp"
#include "sim/base/diagnostic.hpp"
#include "tests/support/gpu_profile_fixture.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::calibration;
using namespace stepcast::calibration::testing;

TEST_SUITE_BEGIN("unit");

namespace {
const std::string kProfiles = std::string{STEPCAST_SOURCE_DIR} + "/calibration/profiles";
}

TEST_CASE("calibration: every shipped profile reads, and each names GPUs or architectures") {
  const std::vector<Profile> profiles = read_profiles(kProfiles);
  CHECK(profiles.size() >= 10);
  for (const Profile& profile : profiles) {
    CAPTURE(profile.name);
    CHECK_FALSE((profile.gpus.empty() && profile.architectures.empty()));
  }
}

TEST_CASE("calibration: a profile is chosen by name, alias, architecture, then any") {
  Profile own = round_profile();
  own.gpus = {"ROUND-gpu 16gb"};
  Profile relative = round_profile();
  relative.name = "relative";
  relative.gpus.clear();
  relative.architectures = {"9.9"};
  Profile any = relative;
  any.name = "generic";
  any.architectures = {"any"};
  const topology::Gpu gpu = round_gpu_entry();
  CHECK(choose_profile({any, relative, own}, gpu).profile.name == "round");
  CHECK(choose_profile({any, relative, own}, gpu).own);
  CHECK(choose_profile({any, relative}, gpu).profile.name == "relative");
  CHECK_FALSE(choose_profile({any, relative}, gpu).own);
  CHECK(choose_profile({any}, gpu).profile.name == "generic");
  CHECK_THROWS_AS(choose_profile({}, gpu), UserError);
}

// 50 B per clock and SM on 100 SMs at 1 GHz: 5 TB/s of operands; 60 B per clock of one SM: 60 GB/s.
// Sustained at 0.8 of the clock: 4 TB/s, 80 TFLOP/s; memory keeps its 1 TB/s.
TEST_CASE("calibration: rates inside the chip scale with SMs and clock") {
  const gpu::GpuParameters boost = make_parameters(round_gpu_entry(), round_profile(), ClockRegime::kShortRun);
  CHECK(boost.gemm.operand_bandwidth.si() == doctest::Approx(5e12));
  CHECK(boost.gemm.sm_bandwidth.si() == doctest::Approx(60e9));
  CHECK(boost.gemm.standard.tiles == std::vector<gpu::Tile>{{64, 128}, {128, 128}});
  const gpu::GpuParameters steady = make_parameters(round_gpu_entry(), round_profile());
  CHECK(steady.gemm.operand_bandwidth.si() == doctest::Approx(4e12));
  CHECK(steady.hardware.peak[static_cast<std::size_t>(plan::Dtype::kBf16)].si() == doctest::Approx(80e12));
  CHECK(steady.hardware.memory_bandwidth.si() == doctest::Approx(1e12));
  CHECK(steady.hardware.peak[static_cast<std::size_t>(plan::Dtype::kFp8)].si() == 0);
}

// At an eighth of the power limit, half of the sustained clock (P ~ f^3); at eight times, no more than the boost clock.
TEST_CASE("calibration: the power limit of a relative sets its clock") {
  Profile profile = round_profile();
  topology::Gpu gpu = round_gpu_entry();
  const auto clock = [&](double watts) {
    gpu.power_limit.value = Power::from_si(watts);
    return make_parameters(gpu, profile).hardware.clock.si();
  };
  const double free = clock(100);
  profile.clock.power_per_sm = Figure<Power>{};
  profile.clock.power_per_sm->value = Power::from_si(8.0);
  CHECK(clock(8.0 * 100) == doctest::Approx(free));
  CHECK(clock(100) == doctest::Approx(free / 2));
  CHECK(clock(64.0 * 100) == doctest::Approx(make_parameters(gpu, profile, ClockRegime::kShortRun).hardware.clock.si()));
}

// Training calls the matrix library, on the tiles of 16-bit products; tables time serving engines' kernels.
TEST_CASE("calibration: fp8 products of the library and of serving engines") {
  Profile profile = round_profile();
  const topology::Gpu gpu = round_gpu_entry();
  CHECK(make_parameters(gpu, profile).gemm.fp8.mma_efficiency == doctest::Approx(profile.gemm.fp8_mma_efficiency.value));
  profile.gemm.fp8_library_mma_efficiency = Figure<double>{};
  profile.gemm.fp8_library_mma_efficiency->value = 0.9;
  const gpu::GpuParameters training = make_parameters(gpu, profile);
  CHECK(training.gemm.fp8.mma_efficiency == doctest::Approx(0.9));
  CHECK(training.gemm.fp8.tiles == training.gemm.standard.tiles);
  CHECK(make_parameters(gpu, profile, ClockRegime::kSustained, Fp8Kernels::kServing).gemm.fp8.mma_efficiency ==
        doctest::Approx(profile.gemm.fp8_mma_efficiency.value));
}

TEST_SUITE_END();
