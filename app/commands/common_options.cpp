#include "app/commands/common_options.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "sim/base/file.hpp"
#include "sim/scenario/yaml.hpp"

namespace stepcast::app {

namespace po = boost::program_options;

void add_scenario_options(OptionList& options) {
  options.add_options()
      ("set", po::value<std::vector<std::string>>()->value_name("KEY=VALUE"),
       "change one key of the scenario, e.g. parallel.tp=4; may be repeated")
      ("profile", po::value<std::string>()->value_name("FILE"), "calibration profile instead of the GPU's own")
      ("seed", po::value<std::int64_t>()->value_name("N"), "seed of everything random");
}

void add_simulation_options(OptionList& options) {
  options.add_options()
      ("no-fold", "simulate every worker, even those that nothing can tell apart");
}

void add_output_options(OptionList& options) {
  options.add_options()
      ("json", po::value<std::string>()->value_name("FILE"), "write the results as JSON; - is standard output")
      ("quiet,q", "print nothing but errors");
}

std::vector<std::string> assignments(const Invocation& invocation) {
  std::vector<std::string> sets = invocation.list("set");
  if (const auto profile = invocation.text("profile")) {
    // From the working folder, wherever the scenario lies.
    sets.push_back("profile=" + scenario::yaml_scalar(std::filesystem::absolute(*profile).string(), true));
  }
  if (const auto seed = invocation.integer("seed")) sets.push_back(fmt::format("seed={}", *seed));
  return sets;
}

void print_text(const Invocation& invocation, const std::string& text) {
  if (invocation.has("quiet") || invocation.text("json") == "-") return;
  write_file("-", text);
}

void write_json(const Invocation& invocation, const std::string& text) {
  if (const auto file = invocation.text("json")) write_file(*file, text);
}

}  // namespace stepcast::app
