// app/importers/training/source_keys.hpp — a trainer's configuration as a flat list of keys, whatever its form.
//   JSON      DeepSpeed; with comments and commas before a closing bracket, as people write them
//   YAML      accelerate; Megatron's model_config.yaml (MODEL_ARGS)
//   TOML      torchtitan
//   flags     Megatron: shell scripts (variables, arrays, line continuations), or the list of arguments that a
//             log prints ("  name ........ value")
// Ignores   shell logic: of a variable or a flag set several times the last one counts, and a remark says so
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace stepcast::app {

struct SourceKey {
  std::string name;    // dotted: zero_optimization.stage; a flag without its dashes
  std::string value;   // as written; a list as "[a, b]"; "true" for a flag alone
  SourcePosition at;
};

struct SourceFile {
  std::string file;
  std::vector<SourceKey> keys;         // each name once
  std::vector<std::string> remarks;
  [[nodiscard]] const SourceKey* find(std::string_view name) const;
};

// All throw UserError with line and column.
SourceFile read_json_keys(const std::string& text, const std::string& file);
SourceFile read_yaml_keys(const std::string& text, const std::string& file);
SourceFile read_toml_keys(const std::string& text, const std::string& file);
SourceFile read_megatron_keys(const std::string& text, const std::string& file);

}  // namespace stepcast::app
