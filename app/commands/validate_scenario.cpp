#include "app/commands/validate_scenario.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/forecast/forecast_json.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "app/validate/validation.hpp"
#include "executor/common/machine_facts.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/scenario/write.hpp"
#include "sim/trace/perfetto.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::json;

constexpr std::int32_t kMostUnfolded = 64;  // workers that are simulated and compared one by one
constexpr std::size_t kMostListed = 12;

struct Candidate {
  trace::RunSummary summary;
  std::string kind;        // of its results: "measured" (stepcast run), "kineto", ...
  std::string plan;        // hash of the plan's file; empty: none
  std::string played;      // "shrunk by 64": not the plan's own time
};

Candidate candidate_of(const trace::Store& store, const trace::RunSummary& summary) {
  Candidate c{.summary = summary, .kind = {}, .plan = {}, .played = {}};
  if (summary.origin != "measured") {
    c.kind = summary.origin;
    return c;
  }
  const Json results = Json::parse(store.load(summary.id).results, nullptr, false);
  if (!results.is_object()) return c;
  const auto text = [](const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
  };
  c.kind = text(results, "kind");
  const auto environment = results.find("environment");
  if (environment == results.end() || !environment->is_object()) return c;
  c.plan = text(*environment, "plan");
  if (const std::string factor = text(*environment, "shrink"); !factor.empty() && factor != "1") c.played = "shrunk by " + factor;
  if (!text(*environment, "fewer").empty()) c.played = "played on fewer workers";
  return c;
}

std::string listed(const std::vector<Candidate>& candidates) {
  if (candidates.empty()) return "no runs";
  std::vector<std::string> texts;
  for (std::size_t i = candidates.size(); i-- > 0 && texts.size() < kMostListed;) {
    const Candidate& c = candidates[i];
    texts.push_back(fmt::format("run {} {} ({}{})", c.summary.id.value(), c.summary.name, c.kind.empty() ? c.summary.origin : c.kind, c.played.empty() ? "" : ", " + c.played));
  }
  std::string text = join(texts, ", ");
  if (candidates.size() > texts.size()) text += fmt::format(" and {} more", candidates.size() - texts.size());
  return text;
}

bool is_profile(const Candidate& c) { return c.kind == "kineto" || c.kind == "nsys"; }

Candidate choose(const Invocation& invocation, const std::string& database, const std::vector<Candidate>& candidates, const std::string& hash, const std::string& plan) {
  const std::string& scenario = invocation.operands[0];
  const auto matches = [&](const Candidate& c) { return c.kind == "measured" && (c.summary.scenario_hash == hash || (!c.plan.empty() && c.plan == plan)); };
  if (const auto wanted = invocation.integer("run")) {
    const auto at = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.summary.id.value() == *wanted; });
    const auto refuse = [&](const std::string& problem, const std::string& expected) { throw UserError(Diagnostic{.where = {database, 0, 0}, .path = "--run", .problem = problem, .expected = expected, .got = listed(candidates)}); };
    if (at == candidates.end()) refuse(fmt::format("there is no run {}", *wanted), "a measured run of the database");
    if (is_profile(*at)) return *at;
    if (at->kind != "measured") refuse(fmt::format("run {} is {}", *wanted, at->kind == "simulated" ? "a forecast" : at->kind.empty() ? "no measured step" : "of " + at->kind + ", without a step of a plan"), "a run of `stepcast run`, or a profile");
    if (!at->played.empty()) refuse(fmt::format("run {} was {}: its time is not the plan's", *wanted, at->played), "a run of the whole plan");
    if (!matches(*at)) refuse(fmt::format("run {} is of another scenario and another plan", *wanted), "a run of " + scenario);
    return *at;
  }
  std::string played;
  for (std::size_t i = candidates.size(); i-- > 0;) {
    if (!matches(candidates[i])) continue;
    if (candidates[i].played.empty()) return candidates[i];
    played = candidates[i].played;
  }
  throw UserError(Diagnostic{.where = {database, 0, 0},
                             .problem = played.empty() ? "has no measured run of " + scenario : fmt::format("has runs of {} that were {} alone: their time is not the plan's", scenario, played),
                             .expected = "a measured run of this scenario, or of the same plan",
                             .got = listed(candidates),
                             .hint = fmt::format("stepcast run {} --db {}; --run N compares with an imported profile", scenario, database)});
}

// "10%", "2.5 %".
std::optional<double> tolerance_of(const Invocation& invocation) {
  const auto text = invocation.text("tolerance");
  if (!text) return std::nullopt;
  const std::string_view whole = trim(*text);
  const auto value = whole.ends_with('%') ? parse_number(trim(whole.substr(0, whole.size() - 1))) : std::nullopt;
  if (!value || *value < 0.0) throw UserError(Diagnostic{.path = "--tolerance", .problem = "no share of the step", .expected = "a number and %, e.g. 10%", .got = *text});
  return *value / 100.0;
}

std::optional<double> metric_of(const trace::Run& run, const char* key) {
  for (const trace::Metric& metric : run.metrics) {
    if (metric.key == key) return metric.value;
  }
  return std::nullopt;
}

std::string run_text(const Candidate& c, const trace::Run& run) {
  std::string text = fmt::format("  {:<12} run {}, {}, {}", "measured", c.summary.id.value(), is_profile(c) ? "profile (" + c.kind + ")" : "stepcast run", c.summary.created);
  const auto least = metric_of(run, "step_time_least");
  const auto most = metric_of(run, "step_time_most");
  if (least && most) text += fmt::format(", steps of {} to {}", human_seconds(*least), human_seconds(*most));
  return text + '\n';
}

}  // namespace

void add_scenario_validation_options(OptionList& options) {
  add_scenario_options(options);
  add_simulation_options(options);
  options.add_options()
      ("db", po::value<std::string>()->value_name("FILE"), "scenario: the database with the measured run")
      ("run", po::value<std::int64_t>()->value_name("N"), "scenario: that run, e.g. an imported profile (default: the latest of the same scenario or plan)")
      ("tolerance", po::value<std::string>()->value_name("P%"), "scenario: exit 1 where the step is further off than that")
      ("trace", po::value<std::string>()->value_name("FILE"), "scenario: write both timelines into one file for ui.perfetto.dev");
}

Status validate_scenario(const Invocation& invocation, Session& session) {
  const auto database = invocation.text("db");
  if (!database) throw UserError(Diagnostic{.path = "stepcast validate", .problem = "no database to compare the scenario with", .expected = "--db FILE, written by stepcast run"});
  if (invocation.text("json") == "-" && invocation.text("trace") == "-") {
    throw UserError(Diagnostic{.path = "stepcast validate", .problem = "two outputs on standard output", .expected = "- for one of --json, --trace"});
  }
  const auto tolerance = tolerance_of(invocation);
  const scenario::Loaded loaded = scenario::load_scenario(invocation.operands[0], assignments(invocation));
  const Setup setup = prepare(load_shelf(session.data), loaded);
  const trace::Store store{*database, trace::Store::Mode::kRead};
  std::vector<Candidate> candidates;
  for (const trace::RunSummary& summary : store.runs()) candidates.push_back(candidate_of(store, summary));
  const Candidate chosen = choose(invocation, *database, candidates, trace::scenario_hash(scenario::print_effective(loaded.scenario)),
                                  executor::text_hash(plan::to_file_text(setup.plan)));
  const trace::Run run = store.load(chosen.summary.id);
  const trace::Recording measured = store.load_recording(chosen.summary.id);
  const Forecast result = [&] {
    Progress progress{invocation.has("quiet")};
    progress.show(fmt::format("simulating {} workers", setup.plan.world_size()));
    const bool small = setup.plan.world_size() <= kMostUnfolded;
    return forecast(setup, {.fold = !small && !invocation.has("no-fold"), .trace_workers = static_cast<std::size_t>(std::min(setup.plan.world_size(), kMostUnfolded))});
  }();
  const Validation validation = [&] {
    if (is_profile(chosen)) {
      try {
        return validate_profile(setup.plan, result.step_time_s(), result.result.recording, measured);
      } catch (const UserError& error) {
        Diagnostic diagnostic = error.diagnostics()[0];
        diagnostic.where.file = *database;
        diagnostic.path = fmt::format("run {}", chosen.summary.id.value());
        throw UserError(std::move(diagnostic));
      }
    }
    const auto step = metric_of(run, "step_time");
    if (!step || !std::isfinite(*step) || *step <= 0.0) throw UserError(Diagnostic{.where = {*database, 0, 0}, .path = fmt::format("run {}", chosen.summary.id.value()), .problem = "has no step time"});
    return validate_run(setup.plan, result.step_time_s(), result.result.recording, *step, measured);
  }();
  if (validation.exact && validation.matched == 0) {
    throw UserError(Diagnostic{.where = {*database, 0, 0}, .path = fmt::format("run {}", chosen.summary.id.value()), .problem = measured.spans.empty() ? "has no times of instructions: its step alone is stored" : "has times of instructions of which none is the plan's",
                               .expected = "spans of the plan's instructions, as stepcast run stores them", .hint = fmt::format("stepcast run {} --db {}", invocation.operands[0], *database)});
  }
  nlohmann::ordered_json json = validation_json(validation);
  json["run"] = chosen.summary.id.value();
  json["run_created"] = chosen.summary.created;
  json["tolerance"] = tolerance ? nlohmann::ordered_json(*tolerance) : nlohmann::ordered_json(nullptr);
  write_json(invocation, json_text(json));
  if (const auto file = invocation.text("trace")) trace::save_perfetto(validation.side_by_side, *file);
  print_text(invocation, paint(session.terminal, Tone::kStrong, validation.name) + '\n' + run_text(chosen, run) + validation_text(validation, session.terminal));
  if (!tolerance) return Status::kDone;
  const bool within = std::abs(validation.step_error()) <= *tolerance;
  print_text(invocation, fmt::format("\nThe step is {} {:g} % of the measured one.\n", within ? "within" : "not within", 100.0 * *tolerance));
  return within ? Status::kDone : Status::kAnswerIsNo;
}

}  // namespace stepcast::app
