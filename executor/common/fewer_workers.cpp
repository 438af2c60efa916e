#include "executor/common/fewer_workers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

using plan::Axis;

// Stages that stay: each program once while there is room, spread over the pipeline.
std::vector<std::int32_t> kept_stages(const plan::Plan& plan, std::int32_t processes) {
  const auto stages = static_cast<std::int32_t>(plan.program_of_stage.size());
  std::vector<std::int32_t> candidates;
  if (processes < stages) {
    std::set<plan::ProgramId> seen;
    for (std::int32_t s = 0; s < stages; ++s) {
      if (seen.insert(plan.program_of_stage[static_cast<std::size_t>(s)]).second) candidates.push_back(s);
    }
  }
  // More programs than processes, or fewer: then any stages.
  if (candidates.empty() || static_cast<std::int32_t>(candidates.size()) < std::min(processes, stages)) {
    candidates.clear();
    for (std::int32_t s = 0; s < stages; ++s) candidates.push_back(s);
  }
  const auto count = std::min<std::size_t>(candidates.size(), static_cast<std::size_t>(processes));
  std::vector<std::int32_t> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(candidates[count == 1 ? 0 : i * (candidates.size() - 1) / (count - 1)]);
  return kept;
}

// The largest divisor of `degree` that is at most `room`.
std::int32_t fitting(std::int32_t degree, std::int32_t room) {
  for (std::int32_t d = std::min(degree, room); d > 1; --d) {
    if (degree % d == 0) return d;
  }
  return 1;
}

void drop_stages(plan::Plan& plan, const std::vector<std::int32_t>& kept) {
  std::map<std::int32_t, std::int32_t> now;
  for (std::size_t i = 0; i < kept.size(); ++i) now[kept[i]] = static_cast<std::int32_t>(i);
  std::vector<plan::Program> programs;
  std::vector<plan::ProgramId> of_stage;
  for (const std::int32_t stage : kept) {
    // A stage's messages name stages, so every kept stage gets its own copy.
    plan::Program program = plan.programs[plan.program_of_stage[static_cast<std::size_t>(stage)].index()];
    const auto gone = [&](const plan::Instruction& i) {
      if (const auto* send = std::get_if<plan::Send>(&i.body)) return !now.contains(send->peer_stage);
      if (const auto* receive = std::get_if<plan::Recv>(&i.body)) return !now.contains(receive->peer_stage);
      return false;
    };
    std::erase_if(program.instructions, gone);
    for (plan::Instruction& i : program.instructions) {
      if (auto* send = std::get_if<plan::Send>(&i.body)) send->peer_stage = now.at(send->peer_stage);
      if (auto* receive = std::get_if<plan::Recv>(&i.body)) receive->peer_stage = now.at(receive->peer_stage);
    }
    of_stage.emplace_back(programs.size());
    programs.push_back(std::move(program));
  }
  plan.programs = std::move(programs);
  plan.program_of_stage = std::move(of_stage);
  plan.degrees[Axis::kPipeline] = static_cast<std::int32_t>(kept.size());
  for (plan::Group& group : plan.groups) {
    std::vector<std::int32_t> stages;
    for (const std::int32_t stage : group.stages) {
      if (const auto it = now.find(stage); it != now.end()) stages.push_back(it->second);
    }
    if (!group.stages.empty() && stages.empty()) stages.push_back(0);  // nobody of it is left, and nobody calls it
    group.stages = std::move(stages);
  }
}

}  // namespace

FewerWorkers on_fewer(const plan::Plan& plan, std::int32_t processes) {
  SIM_CHECK(processes >= 1, processes);
  FewerWorkers fewer{plan, {}};
  const std::int32_t before = plan.world_size();
  if (before <= processes) return fewer;
  const std::vector<std::int32_t> kept = kept_stages(plan, processes);
  if (kept.size() < plan.program_of_stage.size()) drop_stages(fewer.plan, kept);
  std::int32_t room = processes / static_cast<std::int32_t>(kept.size());
  for (const Axis axis : {Axis::kData, Axis::kTensor, Axis::kContext, Axis::kExpert}) {
    std::int32_t& degree = fewer.plan.degrees[axis];
    degree = fitting(degree, room);
    room /= degree;
  }
  // Blocks and slices were cut for the degrees that were; what is left of a group is all of it.
  for (plan::Group& group : fewer.plan.groups) {
    group.split.reset();
    group.slice.reset();
  }
  // Unequal volumes were for groups of the old size.
  for (plan::Program& program : fewer.plan.programs) {
    for (plan::Instruction& i : program.instructions) {
      if (auto* c = std::get_if<plan::Collective>(&i.body)) c->volumes.reset();
    }
  }
  fewer.plan.volumes.clear();
  std::string stages;
  for (const std::int32_t stage : kept) stages += (stages.empty() ? "" : ", ") + std::to_string(stage);
  fewer.note = std::to_string(fewer.plan.world_size()) + " of the plan's " + std::to_string(before) + " workers, of stages " + stages +
               ": collectives among those that are here, no messages to stages that are not";
  return fewer;
}

}  // namespace stepcast::executor
