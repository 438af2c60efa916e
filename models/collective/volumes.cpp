#include "models/collective/volumes.hpp"

#include <numeric>

#include "sim/base/check.hpp"

namespace stepcast::collective {

Volumes::Volumes(const plan::VolumeTable& table, std::size_t ranks) : table_{&table} {
  SIM_CHECK(plan::fits(table, ranks), table.name, ranks);
  const double sum = std::accumulate(table.values.begin(), table.values.end(), 0.0);
  factor_ = (table.form == plan::VolumeForm::kPairs ? static_cast<double>(ranks) : 1.0) / sum;
}

}  // namespace stepcast::collective
