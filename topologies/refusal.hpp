// topologies/refusal.hpp — how this folder refuses what a scenario asks for: at a key, without a position; whoever
// knows the file adds it (app/scenario/placed.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"

namespace stepcast::topology {

[[noreturn]] inline void refuse(std::string path, std::string problem, std::string expected = {}, std::string got = {}, std::string hint = {}) {
  throw UserError{Diagnostic{.where = {}, .path = std::move(path), .problem = std::move(problem), .expected = std::move(expected),
                             .got = std::move(got), .hint = std::move(hint)}};
}

inline std::uint32_t positive(const std::string& key, std::int64_t value) {
  constexpr std::int64_t kMost = 1'000'000;  // ports, nodes, NICs: far beyond any machine, well inside 32 bits
  if (value < 1 || value > kMost) refuse(key, "out of range", fmt::format("1 to {}", kMost), std::to_string(value));
  return static_cast<std::uint32_t>(value);
}

}  // namespace stepcast::topology
