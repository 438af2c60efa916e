// models/workload/json_reader.hpp — a JSON document whose keys know where they stand, and an object
// reader that turns every misuse into a diagnostic. Private to models/workload.
//
// Accepts what Python writes: NaN and Infinity are read (and refused where a number is asked for).
// Refuses: anything else that is not JSON, a key given twice, a file nested deeper than 64.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/base/diagnostic.hpp"

namespace stepcast::workload {

class JsonDocument {
 public:
  // Throws UserError: not JSON, duplicate key.
  JsonDocument(std::string_view text, std::string file);

  [[nodiscard]] const nlohmann::json& root() const { return root_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  // Of the key at a dotted path, or of the nearest object around it; else the file as a whole.
  [[nodiscard]] SourcePosition position_of(const std::string& path) const;

 private:
  nlohmann::json root_;
  std::string file_;
  std::map<std::string, SourcePosition> positions_;
};

// A value as the user wrote it, shortened.
std::string shown(const nlohmann::json& value);

struct IntegerRange {
  std::int64_t least = 1;
  std::int64_t most = 0;
};

// Reads keys of one object. A key may have several names (model families differ); the first one
// present and not null counts. Problems go to `diagnostics`; the reader carries on with a stand-in.
class JsonObject {
 public:
  using Names = std::initializer_list<const char*>;

  JsonObject(const JsonDocument& document, const nlohmann::json& object, std::string path,
             Diagnostics& diagnostics)
      : document_{&document},
        object_{&object},
        path_{std::move(path)},
        diagnostics_{&diagnostics} {}

  [[nodiscard]] bool has(const char* name) const { return value(name) != nullptr; }
  std::optional<std::int64_t> integer(Names names, IntegerRange range);
  std::int64_t required_integer(Names names, IntegerRange range);
  std::optional<bool> flag(const char* name);
  std::optional<std::string> text(Names names);
  // The nested object; an error when it is something else.
  std::optional<JsonObject> object(const char* name);

  // Present, be it null.
  [[nodiscard]] bool mentions(const char* name) const { return object_->contains(name); }
  // Present and not null.
  [[nodiscard]] const nlohmann::json* value(const char* name) const;
  [[nodiscard]] std::string path_of(const std::string& name) const;
  void report(const std::string& name, const std::string& problem, const std::string& expected = "",
              const std::string& got = "", const std::string& hint = "");
  [[nodiscard]] const JsonDocument& document() const { return *document_; }

 private:
  const JsonDocument* document_;
  const nlohmann::json* object_;
  std::string path_;
  Diagnostics* diagnostics_;
};

}  // namespace stepcast::workload
