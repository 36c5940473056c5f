#include "troupe/models/formats/answer_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

namespace troupe {

namespace {

bool is_among(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

// Keywords that OpenAI and Anthropic take with any value.
constexpr std::array<std::string_view, 11> common_keywords
  = {"type",
     "properties",
     "required",
     "items",
     "additionalProperties",
     "const",
     "anyOf",
     "$defs",
     "definitions",
     "description",
     "title"};

// Returns true for a format that OpenAI and Anthropic take.
bool is_common_format(const json& held) {
  constexpr std::array<std::string_view, 9> formats = {"date-time",
                                                       "time",
                                                       "date",
                                                       "duration",
                                                       "email",
                                                       "hostname",
                                                       "ipv4",
                                                       "ipv6",
                                                       "uuid"};
  return held.is_string()
         && is_among(held.get_ref<const std::string&>(), formats);
}

// Returns true if `type` is the name or a list with the name.
bool is_of(const json& schema, const char* name) {
  const auto type = schema.value("type", json());
  return type == name
         || (type.is_array()
             && std::find(type.begin(), type.end(), name) != type.end());
}

bool is_of_objects(const json& schema) {
  return schema.contains("properties") || is_of(schema, "object");
}

// Calls `visit` with each schema that the keyword holds. Objects of other
// keywords (`default`, `const`, `enum`) are values, not schemas.
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

// The rules are those of developers.openai.com, guide "Structured Outputs",
// "Supported schemas". Rules that are missing there come from the error texts
// of refused schemas.
class strict_check {
public:
  bool fits(const json& schema, std::size_t depth) {
    constexpr std::array<std::string_view, 5> kinds
      = {"type", "enum", "const", "anyOf", "$ref"};
    if (!schema.is_object())
      return false;
    // "$ref cannot have keywords"
    if (schema.contains("$ref"))
      return schema.size() == 1;
    // "schema must have a 'type' key"
    if (std::ranges::none_of(kinds, [&schema](std::string_view kind) {
          return schema.contains(kind);
        }))
      return false;
    const bool is_object = is_of_objects(schema);
    const bool is_list = is_of(schema, "array") || schema.contains("items");
    if (is_object && !fits_as_object(schema))
      return false;
    if (is_list && !(schema.contains("items") && schema["items"].is_object()))
      return false;
    if (is_object || is_list)
      ++depth;
    return depth <= depth_max && fit(schema, depth);
  }

private:
  static constexpr std::size_t depth_max = 10;
  static constexpr std::size_t properties_max = 5'000;
  static constexpr std::size_t enum_values_max = 1'000;

  // Checks that an object is closed and requires all of its properties. An
  // object without `properties` is open.
  bool fits_as_object(const json& schema) {
    const auto properties = schema.value("properties", json());
    const auto required = schema.value("required", json());
    if (schema.value("additionalProperties", json()) != false
        || !properties.is_object() || !required.is_array())
      return false;
    properties_ += properties.size();
    std::set<std::string> names;
    for (const auto& name : required)
      if (name.is_string())
        names.insert(name.get<std::string>());
    return properties_ <= properties_max && names.size() == required.size()
           && names.size() == properties.size()
           && std::ranges::all_of(names, [&properties](const auto& name) {
                return properties.contains(name);
              });
  }

  bool fit(const json& schema, std::size_t depth) {
    for (const auto& [keyword, held] :
         schema.get_ref<const json::object_t&>()) {
      bool all_fit = fits_keyword(keyword, held);
      for_each_schema(keyword, held, [&](const json& inner) {
        all_fit = all_fit && fits(inner, depth);
      });
      if (!all_fit)
        return false;
    }
    return true;
  }

  bool fits_keyword(std::string_view keyword, const json& held) {
    constexpr std::array<std::string_view, 7> more = {"multipleOf",
                                                      "minimum",
                                                      "maximum",
                                                      "exclusiveMinimum",
                                                      "exclusiveMaximum",
                                                      "minItems",
                                                      "maxItems"};
    if (keyword == "format")
      return is_common_format(held);
    if (keyword == "pattern")
      return held.is_string()
             && !looks_around(held.get_ref<const std::string&>());
    if (keyword == "enum") {
      enum_values_ += held.size();
      return held.is_array() && enum_values_ <= enum_values_max;
    }
    return is_among(keyword, common_keywords) || is_among(keyword, more);
  }

  static bool looks_around(std::string_view pattern) {
    constexpr std::array<std::string_view, 4> signs
      = {"(?=", "(?!", "(?<=", "(?<!"};
    return std::ranges::any_of(signs, [pattern](std::string_view sign) {
      return pattern.find(sign) != std::string_view::npos;
    });
  }

  std::size_t properties_ = 0;
  std::size_t enum_values_ = 0;
};

bool anthropic_takes(std::string_view keyword, const json& held) {
  constexpr std::array<std::string_view, 3> more = {"enum", "allOf", "$ref"};
  if (keyword == "format")
    return held == "uri" || is_common_format(held);
  if (keyword == "minItems")
    return held == 0 || held == 1;
  return is_among(keyword, common_keywords) || is_among(keyword, more);
}

} // namespace

json closed_schema(const json& schema) {
  if (!schema.is_object())
    return schema;
  auto made = schema;
  if (is_of_objects(made) && !made.contains("additionalProperties"))
    made["additionalProperties"] = false;
  if (made.contains("properties") && made["properties"].empty()
      && !made.contains("required"))
    made["required"] = json::array(); // OpenAI always requires the field.
  for (auto& [keyword, held] : made.get_ref<json::object_t&>())
    for_each_schema(
      keyword, held, [](json& inner) { inner = closed_schema(inner); });
  return made;
}

bool is_strict_schema(const json& closed) {
  return closed.is_object() && closed.value("type", json()) == "object"
         && !closed.contains("anyOf") && strict_check().fits(closed, 0);
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
