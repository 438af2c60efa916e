// models/parallel/schedule.hpp — the order in which each pipeline stage runs its passes, as one static
// list a stage. Static: the list depends on p, v and m, never on a time.
//
// Symbols  p stages, i stage from 0, v chunks a stage, m micro-batches, F forward, B backward of the
//          inputs, W of the weights, F&B both passes as DualPipe overlaps them
// GPipe    F 0 .. m-1, then both gradients 0 .. m-1 (Huang et al. 2019; order of PyTorch's ScheduleGPipe)
// 1F1B     min(p-1-i, m) F ahead, then F and B in turn (Narayanan et al. 2019, 2021)
// 1F1B-overlap  min(2(p-1-i), m) F ahead, so that a transfer has a pass of its own to hide behind (Alpa,
//          Zheng et al. 2022)
// Interleaved  Megatron-LM's order: groups of N micro-batches pass chunk after chunk;
//          2(p-1-i) + (v-1)N F ahead. N = p, or where p does not divide m the least N >= p that leaves
//          a remainder of 0 or at least p (Megatron-Core's microbatch_group_size_per_vp_stage)
// ZB-H1    1F1B whose W of micro-batch k runs after B of k+i: no stage holds more than p micro-batches
// ZB-H2    2(p-1-i) F ahead, W of k after B of k+2i: no bubble, 2p-1 micro-batches (Qi et al. 2023)
// ZB-V, V-Half, V-Min  see schedule_v.cpp (Qi et al. 2024)
// DualPipe, DualPipe-V see schedule_dual.cpp (DeepSeek-AI 2024)
// Ignores  costs of passes: a schedule that a solver fits to measured times (ZB's ILP) can be written
//          in a file (schedule_file.hpp)
// Tests    unit/schedule_test (formulas, by hand), property/schedule_property_test (complete, no deadlock)
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/action.hpp"
#include "models/parallel/placement.hpp"

namespace stepcast::parallel {

enum class Schedule : std::uint8_t {
  kGpipe,
  kOneFOneB,
  kOneFOneBOverlap,
  kInterleaved,
  kZbH1,
  kZbH2,
  kZbV,
  kVHalf,
  kVMin,
  kDualPipe,
  kDualPipeV,
  kFile,
};

const char* name_of(Schedule schedule);

// Where the schedule's chunks lie. `chunks`: of 1F1B and interleaved only. Requires: not kFile.
Placement placement_of(Schedule schedule, std::int32_t stages, std::int32_t chunks);

// One list a stage. Requires: `placement` is the schedule's; interleaved: m >= p; DualPipe: p and m even,
// m >= 2p; DualPipe-V: m >= 2p; not kFile.
std::vector<ActionList> make_schedule(Schedule schedule, const Placement& placement, std::int64_t micro_batches);

// The parts of make_schedule.
ActionList interleaved_actions(std::int32_t stage, std::int32_t stages, std::int32_t chunks, std::int64_t micro_batches);
ActionList zero_bubble_actions(std::int64_t ahead, std::int64_t delay, std::int64_t micro_batches);
std::vector<ActionList> v_schedule(Schedule schedule, std::int32_t stages, std::int64_t micro_batches);
ActionList dualpipe_actions(std::int32_t stage, std::int32_t stages, std::int64_t micro_batches);
ActionList dualpipe_v_actions(std::int32_t stage, std::int32_t stages, std::int64_t micro_batches);

}  // namespace stepcast::parallel
