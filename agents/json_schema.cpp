#include "troupe/agents/json_schema.hpp"

// Without this, valijson ends the process on an invalid schema.
#define VALIJSON_USE_EXCEPTIONS 1

#include <fmt/format.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace troupe {

namespace {

using adapter = valijson::adapters::NlohmannJsonAdapter;

// Limit of a text that is matched against a pattern, in bytes: std::regex uses
// stack for each character.
constexpr std::size_t matched_bytes_max = 4'096;

// Limit of the number of violations in one message.
constexpr std::size_t told_max = 8;

bool has_patterns(const json& schema) {
  if (schema.is_object()
      && (schema.contains("pattern") || schema.contains("patternProperties")))
    return true;
  return schema.is_structured()
         && std::ranges::any_of(
           schema, [](const json& element) { return has_patterns(element); });
}

bool has_long_text(const json& data) {
  if (data.is_string())
    return data.get_ref<const std::string&>().size() > matched_bytes_max;
  if (data.is_object())
    for (const auto& [name, element] : data.items())
      if (name.size() > matched_bytes_max)
        return true;
  return data.is_structured()
         && std::ranges::any_of(
           data, [](const json& element) { return has_long_text(element); });
}

// Returns true if a violation only says that an element inside has failed. That
// element has a violation of its own, with its path.
bool is_consequence(std::string_view description) {
  return description.starts_with("Failed to validate against schema associated")
         || description.starts_with("Failed to validate item #");
}

// The parts of a path come as `<root>`, `["name"]` and `[0]`.
std::string pointer_to(const std::vector<std::string>& path) {
  std::string pointer;
  for (std::string_view part : path) {
    if (part == "<root>")
      continue;
    if (part.starts_with('[') && part.ends_with(']'))
      part = part.substr(1, part.size() - 2);
    if (part.size() > 1 && part.starts_with('"') && part.ends_with('"'))
      part = part.substr(1, part.size() - 2);
    pointer += '/';
    pointer += part;
  }
  return pointer.empty() ? "/" : pointer;
}

// Finds a type that is written as in the Gemini API, such as `OBJECT`. Returns
// the reason that names it; empty if there is none. `path` is that of `schema`.
std::string reason_of_types(const json& schema, const std::string& path) {
  constexpr std::string_view names[]
    = {"ARRAY", "BOOLEAN", "INTEGER", "NULL", "NUMBER", "OBJECT", "STRING"};
  if (!schema.is_structured())
    return {};
  for (const auto& [name, element] : schema.items()) {
    const auto place = fmt::format("{}/{}", path, name);
    if (name != "type"
        || std::ranges::find(names, element) == std::end(names)) {
      if (auto found = reason_of_types(element, place); !found.empty())
        return found;
      continue;
    }
    const auto written = element.get<std::string>();
    auto meant = written;
    std::ranges::transform(meant, meant.begin(), [](char letter) {
      return static_cast<char>(letter - 'A' + 'a');
    });
    return fmt::format("{} is '{}', a type of the Gemini API; write '{}'",
                       place,
                       written,
                       meant);
  }
  return {};
}

// Finds a schema that applies itself to the same data, by references and by
// keywords such as `allOf`: a check would never end.
class circle_search {
public:
  explicit circle_search(const json& whole) : whole_(whole) {}

  /// Returns true if there is one in `data`, which is the schema or a part.
  bool is_in(const json& data) {
    if (is_in_circle(data))
      return true;
    return data.is_structured()
           && std::ranges::any_of(
             data, [this](const json& element) { return is_in(element); });
  }

private:
  bool is_in_circle(const json& schema) {
    if (!schema.is_object() || harmless_.contains(&schema))
      return false;
    if (!open_.insert(&schema).second)
      return true;
    const bool found = applies_circle(schema);
    open_.erase(&schema);
    harmless_.insert(&schema);
    return found;
  }

  bool applies_circle(const json& schema) {
    // Keywords beside a reference are ignored, but may count elsewhere.
    if (const auto named = schema.find("$ref"); named != schema.end())
      if (const auto* target = target_of(*named))
        if (is_in_circle(*target))
          return true;
    for (const auto* keyword : {"not", "if", "then", "else"})
      if (const auto held = schema.find(keyword);
          held != schema.end() && is_in_circle(*held))
        return true;
    for (const auto* keyword : {"allOf", "anyOf", "oneOf", "dependencies"})
      if (const auto held = schema.find(keyword);
          held != schema.end() && held->is_structured()
          && std::ranges::any_of(
            *held, [this](const json& each) { return is_in_circle(each); }))
        return true;
    return false;
  }

  // The target of a reference; null if it is not in the schema.
  const json* target_of(const json& reference) const {
    if (!reference.is_string())
      return nullptr;
    const auto text = without_percent(reference.get<std::string>());
    if (!text.starts_with('#'))
      return nullptr;
    try {
      return &whole_.at(json::json_pointer(text.substr(1)));
    } catch (const json::exception&) {
      return nullptr; // The parser names it.
    }
  }

  // Replaces `%41` by `A`.
  static std::string without_percent(const std::string& text) {
    std::string read;
    for (std::size_t place = 0; place < text.size(); ++place) {
      unsigned code = 0;
      const auto* const digits = text.data() + place + 1;
      if (text[place] == '%' && place + 2 < text.size()
          && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
        read += static_cast<char>(code);
        place += 2;
      } else {
        read += text[place];
      }
    }
    return read;
  }

  const json& whole_;
  std::set<const json*> open_;
  std::set<const json*> harmless_;
};

} // namespace

struct json_schema::compiled {
  json text;
  valijson::Schema schema;
  bool has_patterns = false;
};

json_schema::json_schema(json text) {
  auto made = std::make_shared<compiled>();
  made->text = std::move(text);
  made->has_patterns = troupe::has_patterns(made->text);
  if (circle_search(made->text).is_in(made->text))
    throw error(errc::invalid_argument,
                "not a JSON Schema: a $ref leads back to its own schema "
                "without a step into the data, so that no check would end");
  try {
    valijson::SchemaParser().populateSchema(adapter(made->text), made->schema);
  } catch (const std::exception& failure) {
    const auto types = reason_of_types(made->text, "");
    throw error(errc::invalid_argument,
                fmt::format("not a JSON Schema: {}",
                            types.empty() ? failure.what() : types.c_str()));
  }
  compiled_ = std::move(made);
}

const json& json_schema::text() const noexcept {
  return compiled_->text;
}

result<void> json_schema::check(const json& data) const {
  if (compiled_->has_patterns && has_long_text(data))
    return error(errc::invalid_argument,
                 fmt::format("text of more than {} bytes is not matched "
                             "against a pattern",
                             matched_bytes_max));
  valijson::ValidationResults found;
  valijson::Validator validator;
  try {
    if (validator.validate(compiled_->schema, adapter(data), &found))
      return {};
  } catch (const std::exception& failure) {
    return error(errc::invalid_argument, failure.what());
  }
  std::string reasons;
  std::size_t told = 0;
  for (const auto& violation : found) {
    if (is_consequence(violation.description))
      continue;
    if (told++ == told_max) {
      reasons += "; …";
      break;
    }
    reasons += fmt::format("{}{}: {}",
                           reasons.empty() ? "" : "; ",
                           pointer_to(violation.context),
                           violation.description);
  }
  return error(errc::invalid_argument,
               reasons.empty() ? "it does not fit its schema"
                               : std::move(reasons));
}

} // namespace troupe
