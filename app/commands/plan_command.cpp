// `stepcast plan`: the instruction lists that simulator and executor play.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/scenario/model_choice.hpp"
#include "models/parallel/schedule_file.hpp"
#include "models/parallel/schedule_picture.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/plan/print.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList plan_options() {
  OptionList options;
  add_scenario_options(options);
  options.add_options()
      ("stage", po::value<std::int64_t>()->value_name("N"), "only the program of this pipeline stage, from 0")
      ("first", po::value<std::int64_t>()->value_name("N"), "first instruction printed (default 0)")
      ("count", po::value<std::int64_t>()->value_name("N"), "instructions printed of each program (default all)")
      ("schedule", "the pipeline schedule as a picture: when each stage runs which pass, at equal costs")
      ("schedule-file", "the pipeline schedule in the form of parallel.schedule_file")
      ("summary", "no instructions, only what each program adds up to")
      ("save", po::value<std::string>()->value_name("FILE"), "write the plan file instead; - is standard output");
  return options;
}

std::size_t at_least_zero(const Invocation& invocation, const char* option, std::size_t usual) {
  const auto value = invocation.integer(option);
  if (!value) return usual;
  if (*value < 0) {
    throw UserError(Diagnostic{.path = "stepcast plan", .problem = fmt::format("--{} is negative", option),
                               .expected = "0 or more", .got = std::to_string(*value)});
  }
  return static_cast<std::size_t>(*value);
}

std::optional<plan::ProgramId> chosen_program(const Invocation& invocation, const plan::Plan& plan) {
  if (!invocation.has("stage")) return std::nullopt;
  const std::size_t stage = at_least_zero(invocation, "stage", 0);
  if (stage >= plan.program_of_stage.size()) {
    throw UserError(Diagnostic{.path = "stepcast plan", .problem = "no such pipeline stage",
                               .expected = fmt::format("0 to {}", plan.program_of_stage.size() - 1),
                               .got = std::to_string(stage)});
  }
  return plan.program_of_stage[stage];
}

Status print(const Invocation& invocation, Session& session) {
  const scenario::Loaded loaded = scenario::load_scenario(invocation.operands[0], assignments(invocation));
  const Setup setup = prepare(load_shelf(session.data), loaded);
  if (const auto file = invocation.text("save")) {
    plan::save_plan(setup.plan, *file);
    return Status::kDone;
  }
  if (invocation.has("schedule") || invocation.has("schedule-file")) {
    const parallel::Strategy strategy = pick_strategy(loaded, setup.shape);
    const auto lists = parallel::schedule_of(strategy);
    const parallel::Placement placement = parallel::placement_of(strategy);
    write_file("-", invocation.has("schedule") ? parallel::draw_schedule(lists, placement)
                                               : parallel::write_schedule(lists, placement));
    return Status::kDone;
  }
  plan::PrintOptions options;
  options.program = chosen_program(invocation, setup.plan);
  options.instructions = !invocation.has("summary");
  options.first = at_least_zero(invocation, "first", options.first);
  options.count = at_least_zero(invocation, "count", options.count);
  write_file("-", plan::print_plan(setup.plan, options));
  return Status::kDone;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .summary = "the instruction lists of a scenario",
          .operands = {.usage = "SCENARIO.yaml", .min = 1, .max = 1},
          .details = "One program for each pipeline stage. --save writes the form that the executor reads.",
          .options = plan_options(),
          .run = print};
}

}  // namespace stepcast::app
