// sim/scenario/positions.hpp — where each key of a scenario was written, so that checks made long
// after reading (planner, catalogue, app) still name file, line and column.
#pragma once

#include <map>
#include <string>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/node.hpp"

namespace stepcast::scenario {

class Positions {
 public:
  Positions() = default;
  // Every key and list item below `root`, by dotted path.
  explicit Positions(const Node& root);

  [[nodiscard]] bool given(const std::string& path) const { return by_path_.contains(path); }

  // Position of the key; of its nearest given ancestor when it was left at its default.
  [[nodiscard]] SourcePosition of(const std::string& path) const;

  // How a message names the other place: "parallel.pp, line 9", "batch.micro, default" or
  // "parallel.tp, from --set parallel.tp=3".
  [[nodiscard]] std::string cite(const std::string& path) const;

  // The shape of most cross-field errors: positioned at `path`.
  [[nodiscard]] Diagnostic error(const std::string& path, std::string problem, std::string expected = {},
                                 std::string got = {}, std::string hint = {}) const;

  // An error that knows its key's path but no position, as the catalogue and the planner raise them.
  [[nodiscard]] Diagnostic located(Diagnostic diagnostic) const;

 private:
  void add(const Node& node, const std::string& path);

  std::map<std::string, SourcePosition> by_path_;
  SourcePosition root_;
};

}  // namespace stepcast::scenario
