// app/importers/training/training_import.hpp — what a trainer's configuration becomes: keys of a scenario, and
// for every key of the file what was made of it. Nothing is dropped in silence.
//   understood      became a key of the scenario, or changed one
//   ignored         has no part in a step's time or memory (paths, seeds, logging, learning rates)
//   not expressed   would matter, but the scenario has no word for it (yet); or the key is not known here
// "auto" in a key that is known leaves the choice to the trainer: the scenario's default stands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/importers/training/source_keys.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {

enum class Fate : std::uint8_t { kUnderstood, kIgnored, kNotExpressed };

struct KeyFate {
  SourceKey key;
  Fate fate = Fate::kUnderstood;
  std::string note;             // the scenario's key and value, or why not
};

struct Setting {
  std::string value;            // YAML
  std::string origin;           // key of the file, "--set", or why it is assumed
  bool assumed = false;
};

// Values of keys; they throw UserError at the key's position.
std::int64_t whole_number(const SourceKey& key, std::int64_t least = 1);
bool flag(const SourceKey& key);
// The second of the pair whose first is the value, upper or lower case; none: an error with the choices.
std::string one_of_words(const SourceKey& key, std::initializer_list<std::pair<const char*, const char*>> words);

class TrainingImport {
 public:
  std::map<std::string, Setting> settings;  // by the scenario's key path
  std::vector<KeyFate> fates;
  std::vector<std::string> remarks;
  // What the scenario has no keys of its own for.
  std::optional<std::int64_t> world;         // GPUs
  std::optional<std::int64_t> accumulation;  // micro-batches of a step
  std::optional<std::int64_t> replicas;      // of HSDP
  std::optional<std::int64_t> shards;        // of FSDP; 0: what is left
  bool deepspeed = false;  // whose ZeRO runs
  std::optional<std::int64_t> bucket_elements;
  std::vector<std::string> offload;          // words of memory.offload, of several keys
  std::optional<std::string> unknown_model;  // one that the file names and the catalogue lacks

  void set(const SourceKey& key, const std::string& path, const std::string& value);
  void set_whole(const SourceKey& key, const std::string& path) { set(key, path, std::to_string(whole_number(key))); }
  void understood(const SourceKey& key, std::string note) { fates.push_back({key, Fate::kUnderstood, std::move(note)}); }
  void ignored(const SourceKey& key, std::string note) { fates.push_back({key, Fate::kIgnored, std::move(note)}); }
  void not_expressed(const SourceKey& key, std::string note) { fates.push_back({key, Fate::kNotExpressed, std::move(note)}); }
  void assume(const std::string& path, const std::string& value, const std::string& why);
  [[nodiscard]] std::int64_t whole(const std::string& path, std::int64_t otherwise) const;
  [[nodiscard]] bool has(const std::string& path) const { return settings.contains(path); }
};

// One key that is understood.
struct KeyHandler {
  std::string_view key;
  void (*apply)(const SourceKey&, TrainingImport&);
};
// One that is not; the name may end in '*'.
struct KeyRule {
  std::string_view key;
  Fate fate;
  std::string_view note;
};

// A form of configuration. `finish` sees all keys at once.
struct TrainingForm {
  std::string_view kind;
  std::string_view title;
  SourceFile (*read)(const std::string& text, const std::string& file);
  std::span<const KeyHandler> handlers;
  std::span<const KeyRule> rules;
  void (*finish)(const SourceFile&, TrainingImport&);
};
// deepspeed, accelerate, megatron, torchtitan.
std::span<const TrainingForm* const> training_forms();
extern const TrainingForm kDeepSpeed;
extern const TrainingForm kAccelerate;
extern const TrainingForm kMegatron;
extern const TrainingForm kTorchtitan;

void apply_keys(const TrainingForm& form, const SourceFile& source, TrainingImport& out);

// Reads, applies `sets` ("batch.global=512") over what the file says, and fills in what it leaves open: the size
// of the cluster, dp, the batch, a model. Throws UserError.
TrainingImport import_training(const TrainingForm& form, const std::string& text, const std::string& file, const std::vector<std::string>& sets,
                               const topology::Catalogue& catalogue);

// The scenario, each key with where it came from.
std::string scenario_text(const TrainingImport& import, const std::string& name, const std::string& kind, const std::string& file);

}  // namespace stepcast::app
