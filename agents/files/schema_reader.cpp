#include "troupe/agents/files/schema_reader.hpp"

#include "troupe/agents/files/python_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

// Keywords that `json_schema` checks. Others only describe.
constexpr auto checked_keywords
  = std::to_array<std::string_view>({"$ref",
                                     "additionalItems",
                                     "additionalProperties",
                                     "allOf",
                                     "anyOf",
                                     "const",
                                     "contains",
                                     "dependencies",
                                     "enum",
                                     "exclusiveMaximum",
                                     "exclusiveMinimum",
                                     "format",
                                     "if",
                                     "items",
                                     "maxItems",
                                     "maxLength",
                                     "maxProperties",
                                     "maximum",
                                     "minItems",
                                     "minLength",
                                     "minProperties",
                                     "minimum",
                                     "multipleOf",
                                     "not",
                                     "oneOf",
                                     "pattern",
                                     "patternProperties",
                                     "properties",
                                     "propertyNames",
                                     "required",
                                     "type",
                                     "uniqueItems"});

bool checks_anything(const json& schema) {
  return std::ranges::any_of(checked_keywords, [&schema](const auto keyword) {
    return schema.contains(keyword);
  });
}

// The name of a Python class: `NAME`, or `{name: NAME}` as ADK writes it.
std::optional<std::string> class_named_by(const yaml_node& node) {
  if (node.kind == yaml_node::form::scalar && is_python_name(node.text))
    return node.text;
  const auto* name = node.find("name");
  return name != nullptr && name->value->kind == yaml_node::form::scalar
           ? std::optional(name->value->text)
           : std::nullopt;
}

} // namespace

result<std::optional<json_schema>> read_schema(const field_reader& fields,
                                               std::string_view name) {
  const auto* node = fields.find(name);
  if (node == nullptr)
    return std::optional<json_schema>();
  const auto at = fields.at(name);
  const auto named = class_named_by(*node);
  if (named && node->kind == yaml_node::form::scalar)
    return fail_on_python(at, *named, python_code::schema);
  auto text = fields.object(name);
  if (!text)
    return text.error();
  if (!checks_anything(**text)) {
    if (named)
      return fail_on_python(at, *named, python_code::schema);
    return fail_at(
      at,
      fmt::format("'{}' has no keyword of JSON Schema that checks anything, so "
                  "every JSON would fit; {}",
                  name,
                  way_without_python(python_code::schema)));
  }
  try {
    return std::optional(json_schema(std::move(**text)));
  } catch (const error& failure) {
    return fail_at(at, fmt::format("{}: {}", name, failure.message()));
  }
}

} // namespace troupe
