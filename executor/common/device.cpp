#include "executor/common/device.hpp"

#include <variant>

namespace stepcast::executor {

void play(const plan::Program& program, Device& device) {
  device.begin_step();
  for (std::size_t i = 0; i < program.instructions.size(); ++i) device.issue(i);
  device.finish();
}

bool takes_time(const plan::Body& body) {
  return !std::holds_alternative<plan::Alloc>(body) && !std::holds_alternative<plan::Free>(body) &&
         !std::holds_alternative<plan::Record>(body) && !std::holds_alternative<plan::Wait>(body);
}

}  // namespace stepcast::executor
