// sim/plan/volumes.hpp — unequal all-to-all: how the bytes of a group's ranks part, as a table that many instructions share.
//
// Form     One value for each slot of the group (2,048 ranks: 2,048 numbers, whatever the number of layers and groups), by
//          receiver or by sender, or one for each pair of slots, row = sender. Only ratios count; the collective's `bytes` is
//          what a rank holds on average. Slots are the group's members in coordinate order.
// Skew     zipf(n, s): w_k = (k+1)^-s, hottest slot first: s = 0 is even, s = 1 the usual skew of expert loads reported
//          for untrained routers; hottest over mean = n / sum_k (k+1)^-s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::plan {

enum class VolumeForm : std::uint8_t { kReceivers, kSenders, kPairs };

struct VolumeTable {
  std::string name;
  VolumeForm form = VolumeForm::kReceivers;
  std::vector<double> values;  // finite, none negative, sum above 0
  friend bool operator==(const VolumeTable&, const VolumeTable&) = default;
};

const char* name_of(VolumeForm form);  // "receivers", "senders", "pairs"

// As many values as the form has for a group of this size.
constexpr bool fits(const VolumeTable& table, std::size_t ranks) {
  return table.values.size() == (table.form == VolumeForm::kPairs ? ranks * ranks : ranks);
}

std::vector<double> zipf(std::size_t slots, double exponent);

}  // namespace stepcast::plan
