// app/commands/memory_estimators.hpp — `stepcast memory --estimator NAME`: other people's sizing formulas
// (models/parallel/estimators.hpp), for a scenario beside what its plan holds, or for bare numbers.
#pragma once

#include "app/commands/common_options.hpp"

namespace stepcast::app {

void add_estimator_options(OptionList& options);

// Requires: --estimator was given. Exits 0 whatever fits: a formula of others is no verdict.
Status run_estimator(const Invocation& invocation, Session& session);

}  // namespace stepcast::app
