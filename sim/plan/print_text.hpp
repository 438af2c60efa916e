// sim/plan/print_text.hpp — figures as the plan's printer writes them. Not for other folders.
#pragma once

#include <string>

namespace stepcast::plan {

std::string flops_text(double flops);  // "412 GFLOP": three figures
std::string bytes_text(double bytes);  // as human_bytes, for sums that may leave 64 bits

}  // namespace stepcast::plan
