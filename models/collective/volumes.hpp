// models/collective/volumes.hpp — what each rank sends to each other one in an all-to-all of unequal parts.
//
// Model    Rank i sends rank j the share v_ij of the collective's bytes, which are what a rank sends on average:
//          sum_ij v_ij = n. None given: v_ij = 1/n. By receiver, weights w: v_ij = w_j / sum w (each rank sends as much,
//          hot ranks receive more: dispatch to experts). By sender: v_ij = w_i / sum w (combine). By pair, a matrix: v_ij =
//          n m_ij / sum m. v_ii stays on the GPU.
//          All pairs advance in proportion, so the time is that of the busiest link: at least what the busiest
//          GPU sends or receives over what its links carry.
// Ignores  that a lightly loaded pair is done before the last one
// Tests    unit/collective_volumes_test
#pragma once

#include <cstddef>

#include "sim/plan/volumes.hpp"

namespace stepcast::collective {

class Volumes {
 public:
  Volumes() = default;
  // Keeps a reference. Requires: plan::fits(table, ranks).
  Volumes(const plan::VolumeTable& table, std::size_t ranks);

  [[nodiscard]] double share(std::size_t from, std::size_t to, std::size_t ranks) const {
    if (table_ == nullptr) return 1.0 / static_cast<double>(ranks);
    switch (table_->form) {
      case plan::VolumeForm::kReceivers: return factor_ * table_->values[to];
      case plan::VolumeForm::kSenders: return factor_ * table_->values[from];
      case plan::VolumeForm::kPairs: return factor_ * table_->values[from * ranks + to];
    }
    return 0.0;
  }

 private:
  const plan::VolumeTable* table_ = nullptr;
  double factor_ = 1.0;
};

}  // namespace stepcast::collective
