// sim/flow/tolerance.hpp — every tolerance of the flow solver and of its checks, with its reason.
// There are no others: sums run in id order and rates come out bit-identical for equal systems.
#pragma once

#include <cstdint>

namespace stepcast::flow::tolerance {

// Levels that differ by less than this part are one level: a link does not count a flow as stopped
// before it fills if the flow stops there. So whether two links that fill together do so in one order or
// the other does not depend on roundings. Sums of up to 10^4 terms round by 10^4 * 2^-53 = 2^-40.
inline constexpr double kSameLevel = 0x1.0p-40;

// Whether a link can bind at all is decided in integers: each flow's largest possible load as a
// part of the capacity, in units of 2^-32, rounded up. Integers add and subtract without drift in any
// order, rounding up errs to "can bind", and 2^31 flows of a full link each fit in 63 bits.
inline constexpr std::int64_t kFullLink = std::int64_t{1} << 32;

// Certificates (tests, and the oracle's comparison): a rate passes through a division, a multiplication
// and sums of up to thousands of terms, so 1e3 * 2^-52 = 2e-13 can be lost; 1e-9 leaves room
// for coefficients that differ by 1e3 and still catches a change of one part in a thousand at once.
inline constexpr double kCertificate = 1e-9;

}  // namespace stepcast::flow::tolerance
