// app/scenario/placed.hpp — what the catalogue, the fabric and the simulator refuse by key, reported at the key's
// place in the scenario's file: they know keys, not files.
#pragma once

#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/positions.hpp"

namespace stepcast::app {

template <class Call>
auto placed(const scenario::Positions& where, Call call) {
  try {
    return call();
  } catch (const UserError& error) {
    std::vector<Diagnostic> diagnostics(error.diagnostics().begin(), error.diagnostics().end());
    for (Diagnostic& diagnostic : diagnostics)
      if (diagnostic.where.file.empty()) diagnostic.where = where.of(diagnostic.path);
    throw UserError(diagnostics);
  }
}

}  // namespace stepcast::app
