#include "troupe/agents/files/schema_reader.hpp"

#include "troupe/agents/files/python_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Tells if a schema of draft 7 refuses any JSON. Follows the references inside
// of the schema.
class constraint_search {
public:
  explicit constraint_search(const json& whole) : whole_(whole) {}

  bool is_in(const json& schema) {
    // References can make a small file a schema of any size.
    if (++steps_ > steps_max || open_.size() > references_max)
      return true;
    if (schema.is_boolean())
      return !schema.get<bool>();
    if (!schema.is_object())
      return true; // No schema; its error comes later.
    if (const auto named = schema.find("$ref"); named != schema.end())
      return is_behind(*named); // Its neighbours do not count.
    return std::ranges::any_of(schema.items(), [&](const auto& each) {
      return is_in_keyword(schema, each.key(), each.value());
    });
  }

private:
  bool is_in_keyword(const json& schema,
                     const std::string& keyword,
                     const json& held) {
    if (std::ranges::find(always_checked, keyword) != always_checked.end())
      return true;
    if (keyword == "minLength" || keyword == "minItems"
        || keyword == "minProperties")
      return held != 0;
    if (keyword == "uniqueItems" || keyword == "not")
      return held != false;
    if (keyword == "required")
      return !held.empty();
    if (keyword == "pattern")
      return !held.is_string() || !held.get_ref<const std::string&>().empty();
    if (keyword == "format") // Others only describe.
      return held == "date" || held == "time" || held == "date-time";
    if (keyword == "additionalProperties" || keyword == "propertyNames")
      return is_in(held);
    if (keyword == "items")
      return held.is_array() ? is_in_any(held) : is_in(held);
    if (keyword == "additionalItems")
      return schema.contains("items") && schema["items"].is_array()
             && is_in(held);
    if (keyword == "properties" || keyword == "patternProperties"
        || keyword == "allOf")
      return is_in_any(held);
    if (keyword == "dependencies")
      return std::ranges::any_of(held, [this](const json& each) {
        return each.is_array() ? !each.empty() : is_in(each);
      });
    if (keyword == "anyOf") // One that takes every JSON is enough.
      return std::ranges::all_of(
        held, [this](const json& each) { return is_in(each); });
    if (keyword == "oneOf") // A JSON that fits two of them is refused.
      return held.size() > 1 || is_in_any(held);
    if (keyword == "if")
      return (schema.contains("then") && is_in(schema["then"]))
             || (schema.contains("else") && is_in(schema["else"]));
    return false;
  }

  bool is_in_any(const json& schemas) {
    return std::ranges::any_of(
      schemas, [this](const json& each) { return is_in(each); });
  }

  bool is_behind(const json& reference) {
    if (!reference.is_string())
      return true; // Its error comes later.
    const auto text = reference.get<std::string>();
    // A circle of references checks nothing by itself.
    if (std::ranges::find(open_, text) != open_.end())
      return false;
    const json* target = nullptr;
    try {
      if (text.starts_with('#'))
        target = &whole_.at(json::json_pointer(text.substr(1)));
    } catch (const json::exception&) {
      // Handled below: it leads nowhere.
    }
    if (target == nullptr)
      return true; // Its error comes later.
    open_.push_back(text);
    const bool found = is_in(*target);
    open_.pop_back();
    return found;
  }

  static constexpr auto always_checked
    = std::to_array<std::string_view>({"const",
                                       "contains",
                                       "enum",
                                       "exclusiveMaximum",
                                       "exclusiveMinimum",
                                       "maxItems",
                                       "maxLength",
                                       "maxProperties",
                                       "maximum",
                                       "minimum",
                                       "multipleOf",
                                       "type"});

  static constexpr std::size_t steps_max = 10'000;
  static constexpr std::size_t references_max = 16; // That lead to each other.

  const json& whole_;
  std::vector<std::string> open_; // References that are being followed.
  std::size_t steps_ = 0;
};

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
  if (!constraint_search(**text).is_in(**text)) {
    if (named)
      return fail_on_python(at, *named, python_code::schema);
    return fail_at(
      at,
      fmt::format("'{}' has no keyword of JSON Schema that checks anything, so "
                  "every JSON would fit; {}. A schema needs a type, an enum, "
                  "required names, or properties with such schemas",
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
