#include "troupe/models/answer_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace troupe {

namespace {

bool is_among(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_of_objects(const json& schema) {
  return schema.contains("properties")
         || (schema.contains("type") && schema["type"] == "object");
}

// Calls `visit` with each schema that the keyword holds. Objects that other
// keywords hold (`default`, `const`, `enum`) are values, not schemas.
template <class Json, class Visit>
void for_each_schema(std::string_view keyword, Json& held, Visit visit) {
  constexpr std::array<std::string_view, 3> named
    = {"properties", "$defs", "definitions"};
  constexpr std::array<std::string_view, 4> listed
    = {"anyOf", "oneOf", "allOf", "prefixItems"};
  if ((held.is_object() && is_among(keyword, named))
      || (held.is_array() && is_among(keyword, listed)))
    for (auto& each : held)
      visit(each);
  else if (keyword == "items" && held.is_object())
    visit(held);
}

bool all_required(const json& schema) {
  if (!schema.contains("properties") || !schema["properties"].is_object())
    return true;
  const auto required = schema.value("required", json::array());
  const auto& properties
    = schema["properties"].get_ref<const json::object_t&>();
  return std::ranges::all_of(properties, [&required](const auto& property) {
    return std::find(required.begin(), required.end(), property.first)
           != required.end();
  });
}

bool is_strict(const json& schema) {
  // developers.openai.com, guide "Structured Outputs", "Supported schemas".
  constexpr std::array<std::string_view, 22> keywords = {"type",
                                                         "properties",
                                                         "required",
                                                         "items",
                                                         "additionalProperties",
                                                         "enum",
                                                         "const",
                                                         "anyOf",
                                                         "$ref",
                                                         "$defs",
                                                         "definitions",
                                                         "description",
                                                         "title",
                                                         "pattern",
                                                         "format",
                                                         "multipleOf",
                                                         "minimum",
                                                         "maximum",
                                                         "exclusiveMinimum",
                                                         "exclusiveMaximum",
                                                         "minItems",
                                                         "maxItems"};
  if (!schema.is_object()
      || (is_of_objects(schema)
          && (schema["additionalProperties"] != false
              || !all_required(schema))))
    return false;
  for (const auto& [keyword, held] : schema.get_ref<const json::object_t&>()) {
    bool fits = is_among(keyword, keywords);
    for_each_schema(keyword, held, [&fits](const json& inner) {
      fits = fits && is_strict(inner);
    });
    if (!fits)
      return false;
  }
  return true;
}

bool anthropic_takes(std::string_view keyword, const json& held) {
  constexpr std::array<std::string_view, 14> keywords = {"type",
                                                         "properties",
                                                         "required",
                                                         "items",
                                                         "additionalProperties",
                                                         "enum",
                                                         "const",
                                                         "anyOf",
                                                         "allOf",
                                                         "$ref",
                                                         "$defs",
                                                         "definitions",
                                                         "description",
                                                         "title"};
  constexpr std::array<std::string_view, 10> formats = {"date-time",
                                                        "time",
                                                        "date",
                                                        "duration",
                                                        "email",
                                                        "hostname",
                                                        "uri",
                                                        "ipv4",
                                                        "ipv6",
                                                        "uuid"};
  if (keyword == "format")
    return held.is_string()
           && is_among(held.get_ref<const std::string&>(), formats);
  if (keyword == "minItems")
    return held == 0 || held == 1;
  return is_among(keyword, keywords);
}

} // namespace

json closed_schema(const json& schema) {
  if (!schema.is_object())
    return schema;
  auto made = schema;
  if (is_of_objects(made) && !made.contains("additionalProperties"))
    made["additionalProperties"] = false;
  for (auto& [keyword, held] : made.get_ref<json::object_t&>())
    for_each_schema(
      keyword, held, [](json& inner) { inner = closed_schema(inner); });
  return made;
}

bool is_strict_schema(const json& closed) {
  return closed.is_object() && closed.value("type", json()) == "object"
         && !closed.contains("anyOf") && is_strict(closed);
}

json anthropic_schema(const json& closed) {
  if (!closed.is_object())
    return closed;
  auto made = json::object();
  std::string aside;
  for (const auto& [keyword, held] : closed.get_ref<const json::object_t&>()) {
    const auto name = keyword == "oneOf" ? std::string_view("anyOf") : keyword;
    if (!anthropic_takes(name, held)) {
      aside += fmt::format(
        "{}{}: {}", aside.empty() ? "" : ", ", keyword, to_text(held));
      continue;
    }
    auto& kept = made[std::string(name)] = held;
    for_each_schema(
      name, kept, [](json& inner) { inner = anthropic_schema(inner); });
  }
  if (aside.empty())
    return made;
  const auto said = made.value("description", json(""));
  const auto words = said.is_string() ? said.get<std::string>() : std::string();
  made["description"]
    = fmt::format("{}{}({})", words, words.empty() ? "" : " ", aside);
  return made;
}

} // namespace troupe
