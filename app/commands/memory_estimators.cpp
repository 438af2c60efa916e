#include "app/commands/memory_estimators.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/forecast/forecast_json.hpp"
#include "app/forecast/forecast_text.hpp"
#include "app/scenario/model_choice.hpp"
#include "models/parallel/estimators.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kGigabyte = 1e9;
constexpr double kRuleDevice = 80e9;  // the GPU of the rule's own table [bytes]

struct Subject {
  std::string title;
  parallel::EstimatorInput input;
  std::optional<Forecast> forecast;   // none: bare numbers
  std::int64_t replicas = 1;
};

double number(const Invocation& invocation, const char* option) {
  const std::string text = *invocation.text(option);
  const std::optional<double> value = parse_number(text);
  if (!value || *value <= 0.0)
    throw UserError(Diagnostic{.where = {}, .path = std::string{"--"} + option, .problem = "not a number of parameters", .expected = "above 0, such as 2.851e9", .got = text, .hint = {}});
  return *value;
}

std::int64_t count(const Invocation& invocation, const char* option, std::int64_t otherwise) {
  const std::int64_t value = invocation.integer(option).value_or(otherwise);
  if (value < 1 || value > 1'000'000)
    throw UserError(Diagnostic{.where = {}, .path = std::string{"--"} + option, .problem = "out of range", .expected = "1 to 1000000", .got = std::to_string(value), .hint = {}});
  return value;
}

Subject bare_numbers(const Invocation& invocation) {
  if (!invocation.has("params"))
    throw UserError(Diagnostic{.where = {}, .path = "stepcast memory --estimator", .problem = "nothing to estimate", .expected = "a scenario, or --params N", .got = "neither", .hint = {}});
  Subject subject;
  subject.input = {.parameters = number(invocation, "params"),
                   .largest_layer = invocation.has("largest-layer") ? number(invocation, "largest-layer") : 0.0,
                   .gpus_per_node = count(invocation, "gpus-per-node", 8),
                   .nodes = count(invocation, "nodes", 1)};
  subject.replicas = subject.input.gpus_per_node * subject.input.nodes;
  subject.title = fmt::format("{} parameters, {} x {} GPUs", human_count(subject.input.parameters), subject.input.nodes, subject.input.gpus_per_node);
  return subject;
}

// DeepSpeed's largest layer is the module with most parameters of its own: the embedding, or an MLP projection.
Subject of_scenario(const Invocation& invocation, Session& session) {
  const scenario::Loaded loaded = scenario::load_scenario(invocation.operands[0], assignments(invocation));
  const workload::ModelShape shape = pick_model(loaded);
  Subject subject;
  subject.forecast = forecast(prepare(load_shelf(session.data), loaded), {});
  const scenario::Scenario& s = subject.forecast->scenario;
  subject.input = {.parameters = subject.forecast->parameters,
                   .largest_layer = static_cast<double>(shape.hidden * std::max(shape.vocab, shape.ffn)),
                   .gpus_per_node = subject.forecast->gpus / s.cluster.nodes,
                   .nodes = s.cluster.nodes};
  subject.replicas = s.parallel.dp;
  subject.title = fmt::format("{}: {}, {} x {} GPUs", s.name, subject.forecast->model_title, subject.input.nodes, subject.input.gpus_per_node);
  return subject;
}

struct Answer {
  std::string text;
  Json rows = Json::array();
};

Answer deepspeed(const Subject& subject) {
  Answer answer;
  answer.text = "DeepSpeed's estimate of model states, GiB\n  stage  parameters  optimizer  zero init   host, a node        GPU\n";
  for (const parallel::DeepSpeedEstimate& row : deepspeed_estimates(subject.input)) {
    if (row.stage == 3 && subject.input.largest_layer == 0.0) continue;  // not known
    const char* parameters = row.offload_parameters ? "host" : "GPU";
    const char* optimizer = row.offload_optimizer ? "host" : "GPU";
    const char* init = row.zero_init ? *row.zero_init ? "yes" : "no" : "-";
    answer.text += fmt::format("  {:<5}  {:<10}  {:<9}  {:<9}  {:>13.2f}  {:>9.2f}\n", row.stage, parameters, optimizer, init, row.host_bytes_per_node / kGib, row.device_bytes / kGib);
    answer.rows.push_back({{"stage", row.stage}, {"offload_parameters", row.offload_parameters}, {"offload_optimizer", row.offload_optimizer},
                           {"zero_init", row.zero_init ? Json(*row.zero_init) : Json(nullptr)},
                           {"host_bytes_per_node", row.host_bytes_per_node}, {"device_bytes", row.device_bytes}});
  }
  return answer;
}

Answer zero(const Subject& subject) {
  const parallel::ZeroStates states = parallel::zero_states(subject.input.parameters, subject.replicas);
  const std::array<std::pair<const char*, double>, 4> rows{{{"none", states.baseline}, {"ZeRO-1: optimizer states", states.optimizer},
                                                            {"ZeRO-2: and gradients", states.gradients}, {"ZeRO-3: and parameters", states.parameters}}};
  Answer answer;
  answer.text = fmt::format("ZeRO's model states of one GPU, GB (16 bytes a parameter over {} replicas)\n", subject.replicas);
  for (std::size_t stage = 0; stage < rows.size(); ++stage) {
    answer.text += fmt::format("  {:<26} {:>10.2f}\n", rows[stage].first, rows[stage].second / kGigabyte);
    answer.rows.push_back({{"stage", stage}, {"device_bytes", rows[stage].second}});
  }
  return answer;
}

Answer rule(const Subject& subject) {
  const parallel::RuleOfThumb estimate = parallel::rule_of_40(subject.input.parameters, kRuleDevice);
  return {fmt::format("40 bytes a parameter: {:.0f} GB in all, {} GPUs of 80 GB\n", estimate.bytes / kGigabyte, estimate.gpus),
          Json::array({{{"bytes", estimate.bytes}, {"gpus_of_80_gb", estimate.gpus}}})};
}

// What the plan's own buffers come to, and how many bytes that is per parameter.
std::string beside(const Subject& subject) {
  if (!subject.forecast) return {};
  const Forecast& f = *subject.forecast;
  const auto peak = static_cast<double>(f.worst_memory().total.count());
  const double all = peak * static_cast<double>(f.gpus);
  return fmt::format("\nthis plan: {:.2f} GiB ({:.2f} GB) on its fullest GPU, activations and fragmentation included; times {} GPUs that is {:.1f} bytes a parameter\n",
                     peak / kGib, peak / kGigabyte, f.gpus, all / f.parameters);
}

using Estimator = Answer (*)(const Subject&);
constexpr std::array<std::pair<const char*, Estimator>, 3> kEstimators{{{"deepspeed", deepspeed}, {"zero", zero}, {"rule-of-40", rule}}};

Estimator find_estimator(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, estimator] : kEstimators) {
    if (name == known) return estimator;
    names.emplace_back(known);
  }
  const auto near = nearest_word(name, names);
  throw UserError(Diagnostic{.where = {}, .path = "--estimator", .problem = "unknown estimator", .expected = one_of(names), .got = name,
                             .hint = near ? "did you mean '" + *near + "'?" : ""});
}

}  // namespace

void add_estimator_options(OptionList& options) {
  options.add_options()
      ("estimator", po::value<std::string>()->value_name("NAME"), "sizing formula of others: deepspeed, zero or rule-of-40")
      ("params", po::value<std::string>()->value_name("N"), "--estimator without a scenario: parameters of the model")
      ("largest-layer", po::value<std::string>()->value_name("N"), "parameters of its largest layer (deepspeed, stage 3)")
      ("gpus-per-node", po::value<std::int64_t>()->value_name("N"), "GPUs of a node (default 8)")
      ("nodes", po::value<std::int64_t>()->value_name("N"), "nodes (default 1)");
}

Status run_estimator(const Invocation& invocation, Session& session) {
  const std::string name = *invocation.text("estimator");
  const Estimator estimator = find_estimator(name);
  const Subject subject = invocation.operands.empty() ? bare_numbers(invocation) : of_scenario(invocation, session);
  const Answer answer = estimator(subject);
  Json json{{"estimator", name}, {"parameters", subject.input.parameters}, {"rows", answer.rows}};
  json["device_memory_peak_bytes"] = subject.forecast ? Json(subject.forecast->worst_memory().total.count()) : Json(nullptr);
  write_json(invocation, json_text(json));
  print_text(invocation, fmt::format("{}\n\n{}{}", paint(session.terminal, Tone::kStrong, subject.title), answer.text, beside(subject)));
  return Status::kDone;
}

}  // namespace stepcast::app
