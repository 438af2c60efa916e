// executor/common/part.hpp — how a buffer is cut for the ranks of a collective.
#pragma once

#include <cstddef>

namespace stepcast::executor {

struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Part `slot` of `bytes` cut for `slots` at element boundaries. The last is longer by what does not divide.
constexpr Part part_of(std::size_t bytes, std::size_t slot, std::size_t slots, std::size_t element) {
  const std::size_t each = bytes / element / slots * element;
  return {slot * each, slot + 1 == slots ? bytes : (slot + 1) * each};
}

}  // namespace stepcast::executor
