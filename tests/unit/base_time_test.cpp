#include <doctest/doctest.h>

#include "sim/base/units.hpp"

using namespace stepcast;
using namespace stepcast::literals;

TEST_SUITE_BEGIN("unit");

// 400 Gbit/s is 50 GB/s, so one byte takes 1 / 50e9 s = 20 ps exactly.
TEST_CASE("time: one byte at 400 Gbit/s is 20 ps") { CHECK((1_B / 400_Gbps).count() == 20); }

// 1 byte at 3 GB/s is 333.33 ps; work rounds up so that no transfer ends early.
TEST_CASE("time: work over rate rounds up") { CHECK((1_B / 3_GBps).count() == 334); }

TEST_CASE("time: bits and bytes are different literals") { CHECK(400_Gbps == 50_GBps); }

TEST_CASE("time: points and durations") {
  const TimePoint t = TimePoint::at(5_us);
  CHECK((t + 3_us).since_start() == 8_us);
  CHECK((t + 3_us) - t == 3_us);
  CHECK(Duration::from_seconds(1.5e-6) == 1500_ns);
}

TEST_CASE("bytes: arithmetic and binary units") {
  CHECK(1_GiB == 1024_MiB);
  CHECK(1_GiB - 1_GB == Bytes{73'741'824});
  CHECK((3_KiB * 2).count() == 6144);
}

TEST_SUITE_END();
