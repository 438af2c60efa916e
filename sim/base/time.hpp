// sim/base/time.hpp — simulated time: signed 64-bit picoseconds, checked.
// One byte at 400 Gbit/s is 20 ps, the range is +-106 days. Arithmetic that leaves the range is an
// internal error, never a wrap. Conversions from floating-point seconds round *up*: work that takes
// any time at all takes at least 1 ps, so a simulation always makes progress.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "sim/base/check.hpp"

namespace stepcast {

class Duration {
 public:
  constexpr Duration() = default;

  static constexpr Duration picoseconds(std::int64_t count) { return Duration{count}; }
  static constexpr Duration nanoseconds(std::int64_t count) { return Duration{times(count, 1'000)}; }
  static constexpr Duration microseconds(std::int64_t count) {
    return Duration{times(count, 1'000'000)};
  }
  static constexpr Duration max() { return Duration{std::numeric_limits<std::int64_t>::max()}; }

  // Rounds up to the next picosecond. Requires: seconds finite, 0 <= seconds < 106 days.
  static Duration from_seconds(double seconds) {
    const double ps = std::ceil(seconds * 1e12);
    SIM_CHECK(ps >= 0.0 && ps < 9.2e18, seconds);
    return Duration{static_cast<std::int64_t>(ps)};
  }

  [[nodiscard]] constexpr std::int64_t count() const { return ps_; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration{plus(a.ps_, b.ps_)}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration{minus(a.ps_, b.ps_)}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return Duration{times(a.ps_, n)}; }
  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }
  constexpr Duration& operator-=(Duration other) { return *this = *this - other; }
  // Ratio of two durations. Requires: b != 0.
  friend constexpr double operator/(Duration a, Duration b) {
    return static_cast<double>(a.ps_) / static_cast<double>(b.ps_);
  }

 private:
  friend class TimePoint;
  constexpr explicit Duration(std::int64_t ps) : ps_{ps} {}

  static constexpr std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    SIM_CHECK(!__builtin_add_overflow(a, b, &sum), a, b);
    return sum;
  }
  static constexpr std::int64_t minus(std::int64_t a, std::int64_t b) {
    std::int64_t difference = 0;
    SIM_CHECK(!__builtin_sub_overflow(a, b, &difference), a, b);
    return difference;
  }
  static constexpr std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    SIM_CHECK(!__builtin_mul_overflow(a, b, &product), a, b);
    return product;
  }

  std::int64_t ps_ = 0;
};

// An instant on the simulation's clock, counted from the start of the run.
class TimePoint {
 public:
  constexpr TimePoint() = default;
  static constexpr TimePoint at(Duration since_start) { return TimePoint{since_start}; }
  static constexpr TimePoint max() { return TimePoint{Duration::max()}; }

  [[nodiscard]] constexpr Duration since_start() const { return since_start_; }
  [[nodiscard]] constexpr std::int64_t count() const { return since_start_.count(); }
  [[nodiscard]] constexpr double seconds() const { return since_start_.seconds(); }

  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;
  friend constexpr TimePoint operator+(TimePoint t, Duration d) { return TimePoint{t.since_start_ + d}; }
  friend constexpr TimePoint operator-(TimePoint t, Duration d) { return TimePoint{t.since_start_ - d}; }
  friend constexpr Duration operator-(TimePoint a, TimePoint b) { return a.since_start_ - b.since_start_; }

 private:
  constexpr explicit TimePoint(Duration d) : since_start_{d} {}
  Duration since_start_{};
};

}  // namespace stepcast
