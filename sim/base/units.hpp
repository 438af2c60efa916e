// sim/base/units.hpp — physical quantities with their dimension in the type.
// Bytes are signed 64-bit integers; everything else is a double in SI units behind Quantity<Tag>,
// built with from_si and read with .si(). Only operators that mean something exist. Bits never
// appear inside: 400_Gbps (bit/s) and 50_GBps (byte/s) are two spellings of one Bandwidth.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/time.hpp"

namespace stepcast {

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  static constexpr Quantity from_si(double value) { return Quantity{value}; }
  [[nodiscard]] constexpr double si() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.value_ + b.value_}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.value_ - b.value_}; }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity{a.value_ * factor}; }
  friend constexpr Quantity operator*(double factor, Quantity a) { return Quantity{a.value_ * factor}; }
  friend constexpr Quantity operator/(Quantity a, double divisor) { return Quantity{a.value_ / divisor}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  constexpr explicit Quantity(double value) : value_{value} {}
  double value_ = 0.0;
};

using Bandwidth = Quantity<struct BandwidthTag>;      // [B/s]
using Flops = Quantity<struct FlopsTag>;              // [FLOP], a count (an FMA is 2)
using FlopRate = Quantity<struct FlopRateTag>;        // [FLOP/s], dense
using Power = Quantity<struct PowerTag>;              // [W]
using Energy = Quantity<struct EnergyTag>;            // [J]
using Frequency = Quantity<struct FrequencyTag>;      // [Hz]
using Temperature = Quantity<struct TemperatureTag>;  // [K]
using Money = Quantity<struct MoneyTag>;              // [USD]

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_{count} {}
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  [[nodiscard]] constexpr double si() const { return static_cast<double>(count_); }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    std::int64_t sum = 0;
    SIM_CHECK(!__builtin_add_overflow(a.count_, b.count_, &sum), a.count_, b.count_);
    return Bytes{sum};
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    std::int64_t difference = 0;
    SIM_CHECK(!__builtin_sub_overflow(a.count_, b.count_, &difference), a.count_, b.count_);
    return Bytes{difference};
  }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) {
    std::int64_t product = 0;
    SIM_CHECK(!__builtin_mul_overflow(a.count_, n, &product), a.count_, n);
    return Bytes{product};
  }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }
  friend constexpr double operator/(Bytes a, Bytes b) { return a.si() / b.si(); }

 private:
  std::int64_t count_ = 0;
};

// Work over rate. Rounds up to the next picosecond. Requires: rate > 0.
inline Duration operator/(Bytes work, Bandwidth rate) { return Duration::from_seconds(work.si() / rate.si()); }
inline Duration operator/(Flops work, FlopRate rate) { return Duration::from_seconds(work.si() / rate.si()); }
constexpr Energy operator*(Power power, Duration time) { return Energy::from_si(power.si() * time.seconds()); }

namespace literals {
constexpr Bandwidth operator""_Gbps(long double v) { return Bandwidth::from_si(static_cast<double>(v) * 1e9 / 8); }
constexpr Bandwidth operator""_Gbps(unsigned long long v) { return Bandwidth::from_si(static_cast<double>(v) * 1e9 / 8); }
constexpr Bandwidth operator""_GBps(long double v) { return Bandwidth::from_si(static_cast<double>(v) * 1e9); }
constexpr Bandwidth operator""_GBps(unsigned long long v) { return Bandwidth::from_si(static_cast<double>(v) * 1e9); }
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{static_cast<std::int64_t>(v)}; }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes{static_cast<std::int64_t>(v << 10)}; }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes{static_cast<std::int64_t>(v << 20)}; }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes{static_cast<std::int64_t>(v << 30)}; }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes{static_cast<std::int64_t>(v * 1'000'000'000)}; }
constexpr Duration operator""_us(unsigned long long v) { return Duration::microseconds(static_cast<std::int64_t>(v)); }
constexpr Duration operator""_ns(unsigned long long v) { return Duration::nanoseconds(static_cast<std::int64_t>(v)); }
constexpr Duration operator""_ps(unsigned long long v) { return Duration::picoseconds(static_cast<std::int64_t>(v)); }
}  // namespace literals

}  // namespace stepcast
