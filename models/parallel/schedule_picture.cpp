#include "models/parallel/schedule_picture.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace stepcast::parallel {
namespace {

// The widest pass must fit into the cells of its units.
std::size_t cell_width(const std::vector<ActionList>& lists, const PassCosts& costs) {
  std::size_t width = 2;
  for (const ActionList& list : lists) {
    for (const Action& action : list) {
      const auto units = static_cast<std::size_t>(costs.of(action.kind));
      width = std::max(width, (to_text(action).size() + 1 + units - 1) / units);
    }
  }
  return width;
}

}  // namespace

std::string draw_schedule(const std::vector<ActionList>& lists, const Placement& placement, const PassCosts& costs) {
  const Timeline timeline = play(lists, placement, costs);
  const std::size_t width = cell_width(lists, costs);
  std::string text;
  for (std::size_t stage = 0; stage < lists.size(); ++stage) {
    std::string row(static_cast<std::size_t>(timeline.length()) * width, ' ');
    for (std::size_t i = 0; i < lists[stage].size(); ++i) {
      const TimelineSlot& slot = timeline.slots[stage][i];
      const std::size_t begin = static_cast<std::size_t>(slot.start) * width;
      const std::size_t cells = static_cast<std::size_t>(slot.end - slot.start) * width;
      std::string name = to_text(lists[stage][i]);
      name.resize(cells - 1, '-');
      row.replace(begin, cells - 1, name);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("stage {:<3} {}\n", stage, row);
  }
  text += fmt::format("\n{:<9}{:>12}{:>14}{:>18}\n", "", "idle within", "idle of step", "live activations");
  for (std::size_t stage = 0; stage < lists.size(); ++stage) {
    text += fmt::format("stage {:<3}{:>12}{:>14}{:>18}\n", stage, timeline.idle_within(stage), timeline.idle_of_step(stage),
                        peak_activations(lists[stage]));
  }
  text += fmt::format("\nplacement {}, {} units long; F {}, B of the inputs {}, W {}, B of both {}, F&B {} units of one chunk; free links\n",
                      name_of(placement.arrangement), timeline.length(), costs.forward, costs.input, costs.weight,
                      costs.backward, costs.overlapped);
  return text;
}

}  // namespace stepcast::parallel
