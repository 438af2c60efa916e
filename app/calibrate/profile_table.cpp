#include "app/calibrate/profile_table.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/forecast/forecast_json.hpp"
#include "calibration/names.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/describe.hpp"
#include "sim/scenario/read.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
namespace {

using calibration::ProfileParameter;
using scenario::Described;
using scenario::ValueKind;

std::string value_text(const Described& d) {
  if (d.kind != ValueKind::kList) return d.value;
  std::vector<std::string> items;
  for (const Described& item : d.children) items.push_back(item.value);
  return "[" + join(items, ", ") + "]";
}

bool is_figure(const Described& d) { return d.children.size() >= 3 && d.children[0].key == "value" && d.children[1].key == "basis"; }

void collect_others(const std::vector<Described>& keys, const std::string& prefix, std::map<std::string, std::string>& out) {
  for (const Described& d : keys) {
    if (!d.present) continue;
    if (d.kind != ValueKind::kStruct) {
      out[prefix + d.key] = value_text(d);
    } else if (!is_figure(d)) {
      collect_others(d.children, prefix + d.key + '.', out);
    }
  }
}

template <class T>
ProfileView view_of(const T& profile, std::string from) {
  ProfileView view{.name = profile.name, .from = std::move(from), .figures = calibration::parameters_of(profile), .others = {}};
  collect_others(scenario::describe(profile).children, "", view.others);
  return view;
}

// A profile of a GPU or of a network card, by the keys it has.
ProfileView view_file(const std::string& path) {
  Diagnostics diagnostics;
  const std::string text = read_file(path);
  const auto root = scenario::parse_yaml(text, path, diagnostics);
  diagnostics.throw_if_any();
  if (root && root->find("nics") != nullptr) return view_of(scenario::read_yaml_text<calibration::NetworkCollectives>(text, path), path);
  const calibration::Profile profile = calibration::read_profile_text(text, path, diagnostics);
  diagnostics.throw_if_any();
  return view_of(profile, path);
}

// "1.87 us": number and unit.
std::pair<std::string, std::string> number_and_unit(const ProfileParameter& p) {
  const std::size_t space = p.text.find(' ');
  if (space == std::string::npos) return {p.text, ""};
  return {p.text.substr(0, space), p.text.substr(space + 1)};
}

// In the unit that the value is written in; a star where it only follows from the kind of evidence.
std::string plus_minus_text(const ProfileParameter& p) {
  const auto number = parse_number(number_and_unit(p).first);
  const double shown = p.value == 0.0 || !number ? p.plus_minus : p.plus_minus / p.value * *number;
  return fmt::format("{:.2g}{}", shown, p.stated ? "" : "*");
}

std::string basis_text(const ProfileParameter& p) { return std::string{topology::basis_name(p.basis)}; }

nlohmann::ordered_json figure_json(const ProfileParameter& p) {
  nlohmann::ordered_json json{{"key", p.key}, {"value", p.value}, {"unit", p.unit}, {"plus_minus", p.plus_minus}, {"plus_minus_stated", p.stated},
                              {"basis", basis_text(p)}, {"source", p.source}};
  json["date"] = p.date ? nlohmann::ordered_json(*p.date) : nlohmann::ordered_json(nullptr);
  return json;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) { return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr); }

const ProfileParameter* find(const std::vector<ProfileParameter>& figures, const std::string& key) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const ProfileParameter& p) { return p.key == key; });
  return found == figures.end() ? nullptr : &*found;
}

constexpr const char* kStar = "*: by the kind of evidence (measured 5 %, datasheet 2 %, published 10 %, assumed 30 %); the others are stated. One standard deviation.\n";

}  // namespace

ProfileView view_profile(const HardwareShelf& shelf, const std::string& name) {
  if (std::filesystem::is_regular_file(name)) return view_file(name);
  const std::string plain = calibration::plain_name(name);
  std::vector<std::string> known;
  for (const calibration::Profile& profile : shelf.profiles) {
    known.push_back(profile.name);
    if (calibration::plain_name(profile.name) == plain) return view_of(profile, "shipped");
  }
  for (const auto& [key, gpu] : shelf.catalogue.gpus) {
    std::vector<std::string> names = gpu.aliases;
    names.push_back(key);
    if (std::none_of(names.begin(), names.end(), [&](const std::string& n) { return calibration::plain_name(n) == plain; })) continue;
    const calibration::ChosenProfile chosen = calibration::choose_profile(shelf.profiles, gpu);
    return view_of(chosen.profile, fmt::format("shipped, {} {}", chosen.own ? "of" : "stands in for", key));
  }
  for (const calibration::NetworkCollectives& network : shelf.networks) {
    known.push_back(network.name);
    if (calibration::plain_name(network.name) == plain) return view_of(network, "shipped");
  }
  const std::optional<std::string> near = nearest_word(name, known);
  throw UserError{Diagnostic{.path = "stepcast profile", .problem = "no such profile", .expected = "a file, or " + one_of(known), .got = name,
                             .hint = near ? fmt::format("did you mean '{}'?", *near) : ""}};
}

std::string profile_text(const ProfileView& view, const Terminal& terminal) {
  std::string text = fmt::format("{} ({})\n", view.name, view.from);
  const auto note = view.others.find("note");
  if (note != view.others.end() && !note->second.empty() && note->second != "\"\"") text += fmt::format("  {}\n", wrap(note->second, 98, "  "));
  text += '\n';
  Table table{{"key", "value", "unit", "+-", "basis", "date", "source"}};
  for (const ProfileParameter& p : view.figures) {
    const auto [number, unit] = number_and_unit(p);
    table.add({p.key, number, unit, plus_minus_text(p), basis_text(p), p.date.value_or("-"), p.source});
  }
  text += table.render(terminal, "  ") + '\n' + kStar;
  std::string others;
  for (const auto& [key, value] : view.others)
    if (key != "note" && key != "name" && key != "schema") others += fmt::format("  {}: {}\n", key, value);
  return text + (others.empty() ? "" : "\n" + others);
}

std::string profile_json(const ProfileView& view) {
  nlohmann::ordered_json json{{"kind", "profile"}, {"name", view.name}, {"from", view.from}, {"figures", nlohmann::ordered_json::array()}};
  for (const ProfileParameter& p : view.figures) json["figures"].push_back(figure_json(p));
  json["others"] = nlohmann::ordered_json::object();
  for (const auto& [key, value] : view.others) json["others"][key] = value;
  return json_text(json);
}

std::optional<double> FigureChange::ratio() const {
  if (!before || !after || before->value == 0.0) return {};
  return after->value / before->value;
}

std::optional<double> FigureChange::sigmas() const {
  if (!before || !after) return {};
  const double sigma = std::hypot(before->plus_minus, after->plus_minus);
  if (sigma == 0.0) return {};
  return std::abs(after->value - before->value) / sigma;
}

ProfileChanges compare_profiles(const ProfileView& before, const ProfileView& after) {
  const bool namesakes = before.name == after.name;
  ProfileChanges changes{.before = before.name + (namesakes ? fmt::format(" ({})", before.from) : ""), .after = after.name + (namesakes ? fmt::format(" ({})", after.from) : ""), .compared = 0, .figures = {}, .others = {}};
  for (const ProfileParameter& p : before.figures) {
    const ProfileParameter* other = find(after.figures, p.key);
    if (other != nullptr) ++changes.compared;
    if (other != nullptr && other->value == p.value) continue;
    changes.figures.push_back({p.key, p, other != nullptr ? std::optional{*other} : std::nullopt});
  }
  for (const ProfileParameter& p : after.figures)
    if (find(before.figures, p.key) == nullptr) changes.figures.push_back({p.key, std::nullopt, p});
  std::map<std::string, OtherChange> others;
  for (const auto& [key, value] : before.others) others[key] = {key, value, ""};
  for (const auto& [key, value] : after.others) others[key] = {key, others.contains(key) ? others[key].before : "", value};
  for (const auto& [key, change] : others)
    if (change.before != change.after && key != "name") changes.others.push_back(change);
  return changes;
}

std::string changes_text(const ProfileChanges& changes, const Terminal& terminal) {
  std::string text = fmt::format("{} -> {}: {} of {} figures that both have differ\n", changes.before, changes.after,
                                 std::count_if(changes.figures.begin(), changes.figures.end(), [](const FigureChange& c) { return c.before && c.after; }), changes.compared);
  if (!changes.figures.empty()) {
    Table table{{"key", "before", "after", "ratio", "sigmas", "basis before", "after"}};
    for (const FigureChange& c : changes.figures) {
      const auto cell = [](const std::optional<double>& value, const char* form) { return value ? fmt::format(fmt::runtime(form), *value) : std::string{"-"}; };
      table.add({c.key, c.before ? c.before->text : "-", c.after ? c.after->text : "-", cell(c.ratio(), "{:.3f}"), cell(c.sigmas(), "{:.1f}"),
                 c.before ? basis_text(*c.before) : "-", c.after ? basis_text(*c.after) : "-"});
    }
    text += '\n' + table.render(terminal, "  ");
  }
  if (!changes.others.empty()) text += '\n';
  for (const OtherChange& c : changes.others) text += fmt::format("  {}: {} -> {}\n", c.key, c.before.empty() ? "-" : c.before, c.after.empty() ? "-" : c.after);
  return text;
}

std::string changes_json(const ProfileChanges& changes) {
  nlohmann::ordered_json json{{"kind", "profile-diff"}, {"before", changes.before}, {"after", changes.after}, {"compared", changes.compared}, {"figures", nlohmann::ordered_json::array()}};
  for (const FigureChange& c : changes.figures) {
    json["figures"].push_back({{"key", c.key}, {"before", c.before ? figure_json(*c.before) : nlohmann::ordered_json(nullptr)},
                               {"after", c.after ? figure_json(*c.after) : nlohmann::ordered_json(nullptr)}, {"ratio", number_or_null(c.ratio())}, {"sigmas", number_or_null(c.sigmas())}});
  }
  json["others"] = nlohmann::ordered_json::array();
  for (const OtherChange& c : changes.others) json["others"].push_back({{"key", c.key}, {"before", c.before}, {"after", c.after}});
  return json_text(json);
}

}  // namespace stepcast::app
