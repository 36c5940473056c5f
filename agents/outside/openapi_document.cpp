#include "troupe/agents/outside/openapi_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <regex>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::size_t references_max = 64;
// Of one schema, so that references to references cannot fill the memory.
constexpr std::size_t levels_max = 64;
constexpr std::size_t schema_nodes_max = 20'000;

// Keywords that hold one schema, a list of schemas, and schemas by name.
constexpr auto one_schema
  = std::to_array<std::string_view>({"items",
                                     "additionalProperties",
                                     "not",
                                     "if",
                                     "then",
                                     "else",
                                     "contains",
                                     "propertyNames"});
constexpr auto schema_lists
  = std::to_array<std::string_view>({"allOf", "anyOf", "oneOf"});
constexpr auto named_schemas
  = std::to_array<std::string_view>({"properties", "patternProperties"});
// Keywords that tools have no use for.
constexpr auto dropped = std::to_array<std::string_view>({"$anchor",
                                                          "$comment",
                                                          "$defs",
                                                          "$id",
                                                          "$ref",
                                                          "$schema",
                                                          "definitions",
                                                          "discriminator",
                                                          "example",
                                                          "examples",
                                                          "externalDocs",
                                                          "nullable",
                                                          "readOnly",
                                                          "writeOnly",
                                                          "xml"});
constexpr auto json_types = std::to_array<std::string_view>(
  {"array", "boolean", "integer", "null", "number", "object", "string"});

template <class Names>
bool is_in(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The pointer behind `#`, with its escapes of URLs undone.
std::string without_percent(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto digits = text.substr(at + 1, 2);
    if (text[at] == '%' && digits.size() == 2
        && digits.find_first_not_of("0123456789abcdefABCDEF")
             == std::string_view::npos) {
      made += static_cast<char>(std::stoi(std::string(digits), nullptr, 16));
      at += 2;
    } else {
      made += text[at];
    }
  }
  return made;
}

// Removes names that are no type: some generators write `Any` or `file`.
void clean_type(json& schema) {
  const auto found = schema.find("type");
  if (found == schema.end())
    return;
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
  };
  auto kept = json::array();
  const auto keep = [&](const json& each) {
    if (auto name = each.is_string() ? lower(each.get<std::string>()) : "";
        is_in(json_types, name))
      kept.push_back(std::move(name));
  };
  if (found->is_array())
    std::ranges::for_each(*found, keep);
  else
    keep(*found);
  if (kept.empty())
    schema.erase(found);
  else
    *found = kept.size() == 1 ? json(kept.front()) : std::move(kept);
}

// In 3.0 these are flags beside the limit.
void clean_limit(json& schema, const char* flag, const char* limit) {
  const auto found = schema.find(flag);
  if (found == schema.end() || !found->is_boolean())
    return;
  const bool excludes = found->get<bool>();
  schema.erase(found);
  const auto number = schema.find(limit);
  if (!excludes || number == schema.end())
    return;
  schema[flag] = *number;
  schema.erase(limit);
}

// A pattern of another dialect could never be matched.
void clean_pattern(json& schema) {
  const auto found = schema.find("pattern");
  if (found == schema.end())
    return;
  try {
    // The compiler of patterns recurses, and a long one could end the program.
    constexpr std::size_t pattern_bytes_max = 1'024;
    if (found->is_string()
        && found->get_ref<const std::string&>().size() <= pattern_bytes_max) {
      const std::regex tried(found->get<std::string>());
      return;
    }
  } catch (const std::regex_error&) { // Dropped below.
  }
  schema.erase(found);
}

json with_null(json schema) {
  if (const auto listed = schema.find("enum");
      listed != schema.end() && listed->is_array()
      && std::ranges::find(*listed, json()) == listed->end())
    listed->push_back(nullptr);
  const auto type = schema.find("type");
  if (type == schema.end()) {
    auto either = json::array();
    either.push_back(std::move(schema));
    either.push_back(json{{"type", "null"}});
    return json{{"anyOf", std::move(either)}};
  }
  if (!type->is_array())
    *type = json::array({*type});
  if (std::ranges::find(*type, json("null")) == type->end())
    type->push_back("null");
  return schema;
}

std::string_view kind_of(const json& held) {
  if (held.is_array())
    return "a list";
  if (held.is_object())
    return "a mapping";
  if (held.is_string())
    return "a text";
  if (held.is_boolean())
    return "a boolean";
  return held.is_null() ? "nothing" : "a number";
}

[[noreturn]] void refuse_kind(const json& held,
                              std::string_view expected,
                              std::string_view name,
                              std::string_view place) {
  refuse_document(fmt::format(
    "has {} as '{}' of {}; expected {}", kind_of(held), name, place, expected));
}

} // namespace

void refuse_document(const std::string& why) {
  throw error(errc::invalid_argument, "the OpenAPI document " + why);
}

const json& field_of(const json& object, std::string_view name) {
  static const json absent;
  if (!object.is_object())
    return absent;
  const auto found = object.find(std::string(name));
  return found != object.end() ? *found : absent;
}

const json& mapping_field(const json& object,
                          std::string_view name,
                          std::string_view place) {
  const auto& held = field_of(object, name);
  if (!held.is_null())
    need_mapping(held, name, place);
  return held;
}

const json&
list_field(const json& object, std::string_view name, std::string_view place) {
  const auto& held = field_of(object, name);
  if (!held.is_null() && !held.is_array())
    refuse_kind(held, "a list", name, place);
  return held;
}

const json& schema_field(const json& object,
                         std::string_view name,
                         std::string_view place) {
  const auto& held = field_of(object, name);
  if (!held.is_null() && !held.is_object() && !held.is_boolean())
    refuse_kind(held, "a schema, which is a mapping", name, place);
  return held;
}

void need_mapping(const json& held,
                  std::string_view name,
                  std::string_view place) {
  if (!held.is_object())
    refuse_kind(held, "a mapping", name, place);
}

openapi_document::openapi_document(const json& root) : root_(root) {
  const auto& version = field_of(root, "openapi");
  const auto text
    = version.is_string() ? version.get<std::string>() : to_text(version);
  if (text.starts_with("3.0") || text.starts_with("3.1"))
    return;
  if (root.is_object() && root.contains("swagger"))
    refuse_document("has the version 2 (Swagger); convert it to OpenAPI 3");
  refuse_document(
    fmt::format("has the version {}; expected 3.0 or 3.1 in 'openapi'", text));
}

const json& openapi_document::resolve(const json& node) const {
  const auto* at = &node;
  for (std::size_t steps = 0; steps < references_max; ++steps) {
    const auto& reference = field_of(*at, "$ref");
    if (!reference.is_string())
      return *at;
    const auto text = reference.get<std::string>();
    if (!text.starts_with('#'))
      refuse_document(
        fmt::format("refers to another document, '{}'; put its part into this "
                    "document",
                    text));
    const auto pointer = without_percent(std::string_view(text).substr(1));
    try {
      at = &root_.at(json::json_pointer(pointer));
    } catch (const json::exception&) {
      refuse_document(fmt::format("has nothing at '{}'", text));
    }
  }
  refuse_document("has references that lead in a circle");
}

class openapi_document::conversion {
public:
  explicit conversion(const openapi_document& of) : document_(of) {}

  json convert(const json& written) {
    if (open_.size() > levels_max || ++nodes_ > schema_nodes_max)
      refuse_document("has a schema that is too deep or too large");
    if (written.is_boolean())
      return written;
    if (!written.is_object())
      return json::object();
    if (!field_of(written, "$ref").is_string())
      return convert_object(written, {});
    const auto& target = document_.resolve(written);
    if (std::ranges::find(open_, &target) != open_.end()) {
      auto cut = json::object();
      if (const auto& type = field_of(target, "type"); type.is_string())
        cut["type"] = type;
      clean_type(cut);
      return cut;
    }
    return target.is_object() ? convert_object(target, written) : json(target);
  }

private:
  // `beside` has the keywords beside the reference; they go first.
  json convert_object(const json& written, const json& beside) {
    open_.push_back(&written);
    auto made = json::object();
    for (const auto* source : {&written, &beside})
      for (const auto& [keyword, held] : source->items())
        if (!is_in(dropped, keyword) && !keyword.starts_with("x-"))
          made[keyword] = convert_keyword(keyword, held);
    open_.pop_back();
    clean_type(made);
    clean_limit(made, "exclusiveMinimum", "minimum");
    clean_limit(made, "exclusiveMaximum", "maximum");
    clean_pattern(made);
    if (field_of(written, "nullable") == json(true))
      return with_null(std::move(made));
    return made;
  }

  json convert_keyword(std::string_view keyword, const json& held) {
    if (is_in(one_schema, keyword) && !held.is_array())
      return convert(held);
    if (is_in(schema_lists, keyword) || is_in(one_schema, keyword)) {
      auto list = json::array();
      if (held.is_array())
        for (const auto& each : held)
          list.push_back(convert(each));
      return list;
    }
    if (!is_in(named_schemas, keyword))
      return held;
    auto named = json::object();
    if (held.is_object())
      for (const auto& [name, each] : held.items())
        named[name] = convert(each);
    return named;
  }

  const openapi_document& document_;
  std::vector<const json*> open_; // Schemas that are being converted.
  std::size_t nodes_ = 0;
};

json openapi_document::schema(const json& written) const {
  return conversion(*this).convert(written);
}

} // namespace troupe
