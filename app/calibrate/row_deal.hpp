// app/calibrate/row_deal.hpp — which rows of a table a fit sees: dealt by a random number of each row's name, so that a row added to the table moves
// no other one's place, and whoever knows share and seed knows the rows.
// Tests    unit/step_fit_test
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepcast::app {

// Of the fits whose profiles are shipped (scripts/accuracy.sh).
inline constexpr double kShippedShare = 0.3;
inline constexpr std::uint64_t kShippedSeed = 1;

// The least whole number of rows that is the share, or more.
std::size_t rows_dealt(std::size_t rows, double share);

// [row] whether it is fitted: rows_dealt() of them. `names`: of one hardware family's rows that have a forecast and a step time.
std::vector<bool> deal_rows(std::span<const std::string> names, double share, std::uint64_t seed);

}  // namespace stepcast::app
