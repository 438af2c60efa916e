// JSON Schema (draft 2020-12) out of described structs.
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/text.hpp"
#include "sim/scenario/write.hpp"

namespace stepcast::scenario {
namespace {

using Json = nlohmann::ordered_json;

// Bounds and numbers that are whole are written as such: 1, not 1.0.
Json number(double value) {
  if (std::floor(value) == value && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

void add_bounds(const Rule& rule, Json& schema) {
  if (std::isfinite(rule.low)) schema[rule.low_excluded ? "exclusiveMinimum" : "minimum"] = number(rule.low);
  if (std::isfinite(rule.high)) schema["maximum"] = number(rule.high);
}

// "^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? *(ps|ns|...)$"
std::string quantity_pattern(Dimension dimension, bool signed_too) {
  return fmt::format(R"(^{}(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? *({})$)", signed_too ? "-?" : "", join(unit_spellings(dimension), "|"));
}

Json schema_of(const Described& d, bool partial);

Json struct_schema(const std::vector<Described>& keys, bool partial) {
  Json schema = {{"type", "object"}};
  Json properties = Json::object();
  Json required_keys = Json::array();
  for (const Described& d : keys) {
    properties[d.key] = schema_of(d, partial);
    if (d.rule.is_required && !partial) required_keys.push_back(d.key);
  }
  schema["properties"] = std::move(properties);
  if (!required_keys.empty()) schema["required"] = std::move(required_keys);
  schema["additionalProperties"] = false;
  return schema;
}

Json text_schema(const Described& d) {
  Json schema;
  if (!d.rule.allowed.empty()) {
    schema["enum"] = d.rule.allowed;
  } else {
    schema["type"] = "string";
    if (d.rule.is_filled) schema["minLength"] = 1;
  }
  return schema;
}

Json schema_of(const Described& d, bool partial) {
  Json schema;
  switch (d.kind) {
    case ValueKind::kWhole:
      if (d.rule.version) {
        schema["const"] = number(*d.rule.version);
      } else {
        schema["type"] = "integer";
        add_bounds(d.rule, schema);
      }
      break;
    case ValueKind::kNumber:
      schema["type"] = "number";
      add_bounds(d.rule, schema);
      break;
    case ValueKind::kFlag: schema["type"] = "boolean"; break;
    case ValueKind::kText: schema = text_schema(d); break;
    case ValueKind::kWord: schema["enum"] = d.words; break;
    case ValueKind::kQuantity: {
      Json text = {{"type", "string"}, {"pattern", quantity_pattern(d.dimension, d.rule.low < 0)}};
      const bool zero = d.rule.low_excluded ? d.rule.low < 0 : d.rule.low <= 0;
      schema = zero ? Json{{"anyOf", Json::array({text, {{"const", 0}}})}} : text;
      break;
    }
    case ValueKind::kStruct: schema = struct_schema(d.children, partial); break;
    case ValueKind::kList:
      schema["type"] = "array";
      schema["items"] = schema_of(d.element.front(), partial);
      if (d.rule.is_filled) schema["minItems"] = 1;
      break;
    case ValueKind::kMap:
      schema["type"] = "object";
      schema["additionalProperties"] = schema_of(d.element.front(), partial);
      break;
    case ValueKind::kAnything: schema["type"] = "object"; break;
  }
  if (!d.sentence.empty()) schema["description"] = d.sentence;
  const bool has_default = !partial && !d.rule.is_required && !d.optional && d.kind != ValueKind::kStruct &&
                           d.kind != ValueKind::kList && d.kind != ValueKind::kMap;
  if (has_default) {
    // A scalar's YAML text, read as JSON where it is a number or a flag.
    const Json value = Json::parse(d.value, nullptr, false);
    schema["default"] = value.is_discarded() ? Json(d.value) : value;
  }
  return schema;
}

}  // namespace

std::string scenario_json_schema() {
  const Described root = describe(Scenario{});
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Stepcast scenario"}};
  schema.update(struct_schema(root.children, false));
  // A variant: its name, and any of the file's keys but variants and schema.
  Json variant = struct_schema(root.children, true);
  variant["properties"].erase("variants");
  variant["properties"].erase("schema");
  variant["required"] = {"name"};
  schema["properties"]["variants"]["items"] = std::move(variant);
  return schema.dump(2) + "\n";
}

}  // namespace stepcast::scenario
