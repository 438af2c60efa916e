// app/cli/size_list.hpp — message sizes as nccl-tests' users write them: 8..8G, or 1M,4M,64K.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::app {

// K, M and G (and KiB, MiB, GiB) are powers of 1024. A range grows by `factor`. Throws UserError naming --sizes.
std::vector<Bytes> read_sizes(const std::string& text, std::int64_t factor);

}  // namespace stepcast::app
