// models/parallel/schedule_file.hpp — a schedule written by hand: one line a stage.
//
//   placement v               # linear (default), interleaved V, v or dualpipe
//   stage 0: F0 F1 F0.1 B0.1 W0.1 B0 W0 ...
//   stage 1: ...
//
// Pass     letter, micro-batch, and after a dot the chunk where it is not 0: F3, B3.1, W0
//          F forward; B backward; W weight gradients. Where a stage lists the W of a pass, its B is the
//          gradient of the inputs alone; else both. F4&B1.1: the two passes overlap
// Checks   the stages are all there; every pass of every micro-batch runs once, on every stage; F before B
//          before W; the stages do not wait for each other for ever. Errors name line and column
#pragma once

#include <string>

#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

// `file`: for errors. Throws UserError.
WrittenSchedule read_schedule(const std::string& text, const std::string& file, std::int32_t stages,
                              std::int64_t micro_batches);
// The same form; reading it back gives the same lists.
std::string write_schedule(const std::vector<ActionList>& lists, const Placement& placement);

}  // namespace stepcast::parallel
