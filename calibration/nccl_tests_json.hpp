// calibration/nccl_tests_json.hpp — what nccl-tests writes with -J, read back as the rows of its printed tables.
// Form     version 3: args, config with devices, results with out_of_place and in_place; times in us, alg_bw and bus_bw in GB/s. Booleans are
//          strings, roots padded strings, what is no number the string "nan"; results cut off at the end of the file are read up to there
// Source   NVIDIA/nccl-tests src/common.cu and src/util.cu, versions 2.17.3 and later
// Ignores  times of single iterations; the environment (env), which holds whatever the user had set and is never shown
// Tests    unit/nccl_tests_json_test
#pragma once

#include <string>
#include <string_view>

#include "calibration/nccl_tests_log.hpp"

namespace stepcast::calibration {

// Throws UserError: no JSON, JSON of something else, no result in it.
NcclLog read_nccl_json(std::string_view text, const std::string& file);

}  // namespace stepcast::calibration
