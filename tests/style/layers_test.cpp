// Who may include whom: the folder table of the design as data. A forbidden #include fails with its
// file and line. Third-party headers stay in the one layer that each belongs to.
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/source_tree.hpp"

namespace {

using Folders = std::set<std::string>;

const Folders kEverything{"*"};

// Folder -> what it may include beside itself. A folder that is not listed may include nothing.
const std::map<std::string, Folders>& layer_table() {
  static const std::map<std::string, Folders> table{
      {"sim/base", {}},
      {"sim/engine", {"sim/base"}},
      {"sim/flow", {"sim/base"}},
      {"sim/plan", {"sim/base"}},
      {"sim/scenario", {"sim/base"}},
      {"sim/trace", {"sim/base"}},
      {"topologies", {"sim/base", "sim/scenario"}},
      {"models/network", {"sim/base", "sim/engine", "sim/flow"}},
      // Kernels and collectives are described in the plan's words: kernel.hpp, instruction.hpp.
      {"models/collective", {"sim/base", "sim/engine", "sim/flow", "sim/plan", "models/network"}},
      {"models/gpu", {"sim/base", "sim/engine", "sim/flow", "sim/plan"}},
      {"models/workload", {"sim/base", "sim/plan"}},
      {"models/parallel", {"sim/base", "sim/plan", "models/workload"}},
      {"sim/run",
       {"sim/base", "sim/engine", "sim/flow", "sim/plan", "sim/scenario", "sim/trace", "topologies", "models/network",
        "models/collective", "models/gpu", "models/workload", "models/parallel"}},
      {"executor", {"sim/base", "sim/plan", "sim/trace"}},
      {"calibration",
       {"sim/base", "sim/scenario", "sim/trace", "sim/plan", "topologies", "models/network", "models/collective", "models/gpu",
        "models/workload", "models/parallel"}},
      {"app", kEverything},
      {"bench", kEverything},
      {"tests", kEverything},
  };
  return table;
}

// The table's folder that a path lies in: the longest that matches.
std::optional<std::string> folder_of(const std::string& path) {
  std::string best;
  for (const auto& [folder, allowed] : layer_table()) {
    if (path.starts_with(folder + "/") && folder.size() > best.size()) best = folder;
  }
  if (best.empty()) return std::nullopt;
  return best;
}

struct ThirdParty {
  std::string header;   // prefix of what stands between the angle brackets
  Folders folders;      // where it may appear
};

const std::vector<ThirdParty>& third_party_table() {
  static const std::vector<ThirdParty> table{
      {"yaml-cpp/", {"sim/scenario"}},
      {"sqlite3.h", {"sim/trace"}},
      {"zlib.h", {"calibration"}},
      {"boost/graph/", {"topologies"}},
      {"boost/program_options", {"app"}},
      {"Eigen/", {"calibration", "executor/cpu"}},
      {"mpi.h", {"executor"}},
      {"cuda", {"executor"}},
      {"cublas", {"executor"}},
      {"nccl", {"executor"}},
      {"nvml", {"executor"}},
      {"nlohmann/", {"models/workload", "app", "sim/scenario", "calibration", "sim/trace"}},
  };
  return table;
}

bool lies_in(const std::string& path, const Folders& folders) {
  for (const std::string& folder : folders) {
    if (path.starts_with(folder + "/")) return true;
  }
  return false;
}

struct Include {
  bool quoted = false;
  std::string target;
};

std::optional<Include> parse_include(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(' ');
  if (hash == std::string::npos || !line.substr(hash).starts_with("#include")) return std::nullopt;
  const std::size_t open = line.find_first_of("\"<", hash);
  if (open == std::string::npos) return std::nullopt;
  const bool quoted = line[open] == '"';
  const std::size_t close = line.find(quoted ? '"' : '>', open + 1);
  return Include{quoted, line.substr(open + 1, close - open - 1)};
}

// Empty when the include is allowed, else what is wrong with it.
std::string objection(const std::string& file, const Include& include) {
  const std::optional<std::string> from = folder_of(file);
  if (!from) return "this folder is not in the layer table";
  if (!include.quoted) {
    for (const ThirdParty& rule : third_party_table()) {
      if (include.target.starts_with(rule.header) && !lies_in(file, rule.folders) && *from != "tests") {
        return "<" + include.target + "> belongs in another layer";
      }
    }
    return "";
  }
  const std::optional<std::string> to = folder_of(include.target);
  if (!to) return "\"" + include.target + "\" does not start at the repository root";
  const Folders& allowed = layer_table().at(*from);
  if (*to == *from || allowed.contains("*") || allowed.contains(*to)) return "";
  return *from + " may not include " + *to + " (" + include.target + ")";
}

}  // namespace

TEST_SUITE_BEGIN("style");

TEST_CASE("style: every include follows the layer table") {
  std::size_t seen = 0;
  for (const std::string& file : stepcast::test::source_files()) {
    const std::vector<std::string> lines = stepcast::test::lines_of(file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::optional<Include> include = parse_include(lines[i]);
      if (!include) continue;
      ++seen;
      const std::string wrong = objection(file, *include);
      CHECK_MESSAGE(wrong.empty(), file, ":", i + 1, ": ", wrong);
    }
  }
  CHECK(seen > 100);  // the tree was really read
}

TEST_CASE("style: the layer rule objects to what it must") {
  CHECK(objection("sim/engine/x.cpp", {true, "sim/base/time.hpp"}).empty());
  CHECK_FALSE(objection("sim/base/x.hpp", {true, "sim/engine/engine.hpp"}).empty());
  CHECK_FALSE(objection("sim/flow/x.cpp", {true, "sim/engine/engine.hpp"}).empty());
  CHECK_FALSE(objection("sim/run/x.cpp", {true, "app/forecast/forecast.hpp"}).empty());
  CHECK_FALSE(objection("models/gpu/x.cpp", {false, "yaml-cpp/yaml.h"}).empty());
  CHECK_FALSE(objection("app/x.cpp", {false, "sqlite3.h"}).empty());
  CHECK_FALSE(objection("executor/common/x.cpp", {true, "sim/scenario/scenario.hpp"}).empty());
  CHECK_FALSE(objection("sim/run/x.cpp", {true, "result.hpp"}).empty());
}

TEST_CASE("style: headers guard themselves and open no namespace for others") {
  for (const std::string& file : stepcast::test::source_files()) {
    if (!file.ends_with(".hpp")) continue;
    bool guarded = false;
    const std::vector<std::string> lines = stepcast::test::lines_of(file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      guarded = guarded || lines[i] == "#pragma once";
      // Inside a function (indented) it opens nothing for others.
      CHECK_MESSAGE(!lines[i].starts_with("using namespace"), file, ":", i + 1, ": using namespace in a header");
    }
    CHECK_MESSAGE(guarded, file, ":1: no #pragma once");
  }
}

TEST_SUITE_END();
