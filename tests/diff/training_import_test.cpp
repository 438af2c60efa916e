// Other people's training configurations (../shared/formats/plans): each becomes a scenario that can be read, or is
// refused for a reason stated here.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "app/importers/training/training_import.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/shared_data.hpp"

namespace stepcast::app {
namespace {

const TrainingForm* form_of(const std::string& name) {
  if (name.starts_with("ds_")) return &kDeepSpeed;
  if (name.starts_with("accelerate_")) return &kAccelerate;
  if (name.starts_with("torchtitan_")) return &kTorchtitan;
  if (name.starts_with("megatron_")) return &kMegatron;
  return nullptr;
}

// Files that are no configurations, and a part of why.
const std::map<std::string, std::string> kRefused{
    {"ds_megatron_deepspeed_moe_TEMPLATE.json", "place-holder"},
    {"ds_docs_zero_optimization_schema.json5", "is never closed"},
    {"megatron_flags_CONFIG.txt", "place-holder"},
    {"accelerate_spark_fsdp_lora.yaml", "a second ':' in a value"},  // a place-holder in Python's braces
};

// What a scenario cannot say (yet): the import lists the keys all the same.
bool beyond_scenarios(const std::string& refused) {
  for (const char* part : {"not modelled in this version", "takes apart", "exactly one of"})
    if (refused.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_SUITE_BEGIN("diff");

TEST_CASE("training import: samples of every kind import, or are refused with a reason") {
  const auto folder = test::shared_path("formats/plans");
  if (!folder) return;
  const topology::Catalogue catalogue = topology::load_catalogue(STEPCAST_SOURCE_DIR "/topologies/data");
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator{*folder}) files.insert(entry.path().filename().string());
  std::map<std::string_view, int> imported;
  int beyond = 0;
  std::size_t keys = 0;
  std::size_t unknown = 0;
  for (const std::string& name : files) {
    const TrainingForm* form = form_of(name);
    if (form == nullptr) continue;
    CAPTURE(name);
    const std::string path = *folder + "/" + name;
    std::string refused;
    try {
      const TrainingImport read = import_training(*form, read_file(path), path, {}, catalogue);
      for (const KeyFate& fate : read.fates) {
        ++keys;
        unknown += fate.note == "not known to this importer" ? 1 : 0;
        if (fate.note == "not known to this importer") std::printf("%s: %s is not known\n", name.c_str(), fate.key.name.c_str());
      }
      scenario::load_scenario_text(scenario_text(read, "sample", std::string{form->kind}, path), "scenario.yaml");
    } catch (const UserError& error) {
      refused = error.what();
    }
    const auto expected = kRefused.find(name);
    if (expected == kRefused.end()) {
      if (refused.empty()) {
        ++imported[form->kind];
      } else if (beyond_scenarios(refused)) {
        ++beyond;
      } else {
        CHECK(refused == "");
      }
    } else {
      CHECK(refused.find(expected->second) != std::string::npos);
    }
  }
  for (const auto& [kind, count] : imported) std::printf("%.*s: %d samples became scenarios\n", static_cast<int>(kind.size()), kind.data(), count);
  std::printf("%d samples ask for what a scenario cannot say\n", beyond);
  std::printf("%zu keys, %zu of them not known\n", keys, unknown);
  CHECK(imported["deepspeed"] >= 25);
  CHECK(imported["accelerate"] >= 10);
  CHECK(imported["torchtitan"] >= 5);
  CHECK(imported["megatron"] >= 4);
  CHECK(unknown * 50 <= keys);  // at most 2 %
}

}  // namespace stepcast::app
