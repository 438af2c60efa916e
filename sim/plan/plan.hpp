// sim/plan/plan.hpp — the contract between planner, simulator and executor: programs, and who runs
// which. Workers are implicit: a rank's coordinates follow from the degrees and the axis order, its
// program from its pipeline stage, its groups from its coordinates. So the plan of 16,384 workers in
// a 16-stage pipeline is 16 programs, whatever the number of workers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/plan/program.hpp"
#include "sim/plan/volumes.hpp"

namespace stepcast::plan {

enum class Axis : std::uint8_t { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr int kAxisCount = 5;

// One number per axis: a degree (size of the axis) or a coordinate on it.
class PerAxis {
 public:
  constexpr explicit PerAxis(std::int32_t initial) { values_.fill(initial); }
  constexpr std::int32_t& operator[](Axis axis) { return values_[static_cast<std::size_t>(axis)]; }
  constexpr std::int32_t operator[](Axis axis) const { return values_[static_cast<std::size_t>(axis)]; }
  friend auto operator<=>(const PerAxis&, const PerAxis&) = default;

 private:
  std::array<std::int32_t, kAxisCount> values_{};
};

// Fastest-varying axis first. Megatron-LM's default is tensor, context, expert, data, pipeline.
using AxisOrder = std::array<Axis, kAxisCount>;
inline constexpr AxisOrder kMegatronOrder{Axis::kTensor, Axis::kContext, Axis::kExpert, Axis::kData, Axis::kPipeline};

// Cuts one axis of a group into blocks of `block` consecutive coordinates: the ranks of one block, or
// those at the same place in every block. ZeRO with a shard group smaller than dp uses both: shards
// live within a block, and the blocks are replicas of each other.
struct AxisSplit {
  Axis axis = Axis::kData;
  std::int32_t block = 1;  // divides the degree
  bool across = false;     // false: one's own block; true: one's own place in all blocks
  friend auto operator<=>(const AxisSplit&, const AxisSplit&) = default;
};

// Cuts the ranks of a group, in rank order: those `stride` apart, `size` of them. Expert parallelism does not
// follow one axis: its groups lie across tensor, context and data ranks.
struct RankSlice {
  std::int32_t stride = 1;
  std::int32_t size = 1;  // stride x size divides the group
  friend auto operator<=>(const RankSlice&, const RankSlice&) = default;
};

// The ranks that share all coordinates but those on `axes`. With `stages` set, only these pipeline
// stages take part (the tied embedding's first and last stage, say).
struct Group {
  std::string name;                  // "tp", "dp", "embedding"
  std::vector<Axis> axes;            // sorted
  std::vector<std::int32_t> stages;  // empty: all stages on the pipeline axis
  std::optional<AxisSplit> split;    // of an axis in `axes`
  std::optional<RankSlice> slice = {};
  friend auto operator<=>(const Group&, const Group&) = default;
};

// What the step accomplishes: denominators of throughput and MFU.
struct Work {
  std::int64_t samples = 0;   // sequences per step, whole job
  std::int64_t tokens = 0;
  Flops model_flops;          // whole job, by the convention named beside it; recompute not counted
  std::string flops_convention;
  friend auto operator<=>(const Work&, const Work&) = default;
};

struct Plan {
  std::string name;
  PerAxis degrees{1};
  AxisOrder order = kMegatronOrder;
  std::vector<Group> groups;
  std::vector<VolumeTable> volumes;         // of unequal all-to-all; shared by instructions, groups and layers
  std::vector<Program> programs;
  std::vector<ProgramId> program_of_stage;  // index: pipeline stage
  Work work;

  [[nodiscard]] std::int32_t world_size() const;
  [[nodiscard]] PerAxis coordinates(RankId rank) const;
  [[nodiscard]] RankId rank(const PerAxis& coordinates) const;
  [[nodiscard]] const Program& program(RankId rank) const;
  // Members of the group instance that `rank` belongs to, in coordinate order. Cost O(size).
  [[nodiscard]] std::vector<RankId> members(GroupId group, RankId rank) const;
  // The worker with the same coordinates in another pipeline stage.
  [[nodiscard]] RankId peer(RankId rank, std::int32_t stage) const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

const char* name_of(Axis axis);

}  // namespace stepcast::plan
