#include "app/commands/import_training.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/forecast/forecast_json.hpp"
#include "app/importers/imported_network.hpp"
#include "app/importers/training/training_import.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "sim/base/file.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Fate, const char*>, 3> kFates{
    {{Fate::kUnderstood, "understood"}, {Fate::kNotExpressed, "not expressed"}, {Fate::kIgnored, "ignored: no part in a step's time or memory"}}};

const TrainingForm& form_of(const std::string& kind) {
  const auto forms = training_forms();
  return **std::find_if(forms.begin(), forms.end(), [&](const TrainingForm* form) { return form->kind == kind; });
}

std::string shortened(const std::string& text) {
  constexpr std::size_t kWidth = 28;
  return text.size() <= kWidth ? text : text.substr(0, kWidth - 3) + "...";
}

std::string report(const TrainingForm& form, const TrainingImport& import) {
  const auto count = [&](Fate fate) { return std::count_if(import.fates.begin(), import.fates.end(), [&](const KeyFate& f) { return f.fate == fate; }); };
  std::string text = fmt::format("{}: {} keys, {} understood, {} not expressed, {} ignored\n", form.title, import.fates.size(), count(Fate::kUnderstood),
                                 count(Fate::kNotExpressed), count(Fate::kIgnored));
  std::size_t width = 0;
  for (const KeyFate& fate : import.fates) width = std::max(width, fate.key.name.size());
  for (const auto& [fate, title] : kFates) {
    if (count(fate) == 0) continue;
    text += fmt::format("{}\n", title);
    for (const KeyFate& each : import.fates)
      if (each.fate == fate) text += fmt::format("  {:<{}}  {:<28}  {}\n", each.key.name, width, shortened(each.key.value), each.note);
  }
  bool first = true;
  for (const auto& [path, setting] : import.settings) {
    if (!setting.assumed) continue;
    if (first) text += "assumed\n";
    first = false;
    text += fmt::format("  {}: {}  ({})\n", path, setting.value, setting.origin);
  }
  for (const std::string& remark : import.remarks) text += "note: " + remark + '\n';
  return text;
}

Json to_json(const TrainingForm& form, const TrainingImport& import) {
  Json json{{"kind", form.kind}, {"understood", Json::array()}, {"not_expressed", Json::array()}, {"ignored", Json::array()}};
  for (const KeyFate& fate : import.fates) {
    const char* list = fate.fate == Fate::kUnderstood ? "understood" : fate.fate == Fate::kIgnored ? "ignored" : "not_expressed";
    json[list].push_back({{"key", fate.key.name}, {"value", fate.key.value}, {"line", fate.key.at.line}, {"note", fate.note}});
  }
  json["scenario"] = Json::object();
  for (const auto& [path, setting] : import.settings)
    json["scenario"][path] = {{"value", setting.value}, {"from", setting.origin}, {"assumed", setting.assumed}};
  json["notes"] = import.remarks;
  return json;
}

}  // namespace

std::vector<std::string> training_kinds() {
  std::vector<std::string> kinds;
  for (const TrainingForm* form : training_forms()) kinds.emplace_back(form->kind);
  return kinds;
}

void add_training_import_options(OptionList& options) {
  options.add_options()("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
                        "for a training configuration: a key of the scenario that the file does not say, or another value for it");
}

Status import_training_file(const std::string& kind, const std::string& file, const Invocation& invocation, Session& session) {
  const TrainingForm& form = form_of(kind);
  const TrainingImport import = import_training(form, read_text_file(file, fmt::format("a configuration of {}", kind)), file, invocation.list("set"), load_catalogue(session.data));
  const std::string name = plain_name(std::filesystem::path{file}.stem().string());
  const std::string scenario = scenario_text(import, name, kind, file);
  std::string text = report(form, import);
  Json json = to_json(form, import);
  json["runs"] = true;
  Status status = Status::kDone;
  const std::string output = invocation.text("output").value_or("scenario.yaml");
  try {
    scenario::load_scenario_text(scenario, output);
  } catch (const UserError& refused) {
    text += fmt::format("the scenario is refused as it stands; change it by --set:\n{}\n", refused.what());
    json["runs"] = false;
    status = Status::kAnswerIsNo;
  }
  if (invocation.has("output")) {
    write_file(output, scenario);
    text += fmt::format("wrote {}\n", output);
  } else {
    text += "\n" + scenario;
  }
  write_json(invocation, json_text(json));
  print_text(invocation, text);
  return status;
}

}  // namespace stepcast::app
