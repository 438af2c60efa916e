// sim/base/name_ranges.hpp — lists of names with ranges in brackets, as Slurm writes host lists:
//   tux[0-3,12]       tux0 tux1 tux2 tux3 tux12
//   node[01-03]       node01 node02 node03 (as many digits as the first number has)
//   r[0-1]n[0-1]      r0n0 r0n1 r1n0 r1n1 (the last bracket changes fastest)
//   a,b[1-2]          a b1 b2 (commas outside brackets part names)
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

struct NameList {
  // Where the text breaks, and why.
  struct Error {
    std::size_t offset = 0;
    std::string problem;
  };
  std::vector<std::string> names;  // none on an error
  std::optional<Error> error;
};
// At most `most` names; more are an error.
NameList expand_names(std::string_view text, std::size_t most = 1'000'000);

// Names as a list with ranges that expands to the same names in the same order: neighbours that
// differ in one number going up by one are joined.
std::string compress_names(std::span<const std::string> names);

}  // namespace stepcast
