// sim/plan/plan_file.hpp — a plan as text: versioned, one fact a line, readable with nothing but
// a line splitter. docs/guide/plan_format.md is the grammar with a worked example.
// Reading back what was written gives an equal plan: numbers are integers or shortest decimals that
// round-trip. The reader resolves every id against the tables above it, so that a plan it returns
// can be printed and checked whatever the file held.
#pragma once

#include <string>
#include <string_view>

#include "sim/plan/plan.hpp"

namespace stepcast::plan {

inline constexpr int kPlanFileVersion = 1;

// Requires: a plan that check() accepts.
std::string to_file_text(const Plan& plan);

// Throws UserError with `file`:line:column. Does not run check().
Plan from_file_text(std::string_view text, const std::string& file);

void save_plan(const Plan& plan, const std::string& path);
Plan load_plan(const std::string& path);

}  // namespace stepcast::plan
