// app/network/collective_text.hpp — times of a collective in nccl-tests' own table, so that a forecast and a log diff, and as JSON.
//
// Form     header, rows and footer of nccl-tests 2.13 to 2.18, validation off: #wrong is N/A, and both placements
//          show one time, since the model does not tell them apart. With `explain` a row ends in "  # ring LL128".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "app/network/collective_times.hpp"

namespace stepcast::app {

struct CollectiveTable {
  std::string cluster;      // what the times are of
  std::string gpu;
  std::string dtype = "float";
  std::string step;         // "2(factor)"
  std::uint32_t gpus_per_node = 1;
  CollectiveJob job;
  std::span<const CollectiveTime> rows;
};

const char* nccl_tests_name(plan::CollectiveKind kind);  // "all_reduce", "alltoall", "sendrecv"
std::string to_text(const CollectiveTable& table, bool explain);
std::string to_json(const CollectiveTable& table);

}  // namespace stepcast::app
