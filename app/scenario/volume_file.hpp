// app/scenario/volume_file.hpp — how the bytes of an all-to-all part, out of a file of numbers.
//
// Form     Numbers of 0 or more with commas, spaces or tabs between; lines that start with # mean nothing. One line of n
//          numbers: what each rank receives; one column of n: what each sends; n lines of n: bytes from the line's
//          rank to the column's. Only ratios count, unless the file is a matrix and no size is asked for: then they are bytes.
#pragma once

#include <cstddef>
#include <string>

#include "sim/plan/volumes.hpp"

namespace stepcast::app {

// Throws UserError with file:line:column.
plan::VolumeTable read_volumes(const std::string& path, std::size_t ranks);

}  // namespace stepcast::app
