// Reads the JSON object of a request's body, field by field. Fields may be in
// camelCase or snake_case; unknown ones are ignored, as ADK does.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/server/http/response.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::serving {

class body {
public:
  /// Parses the text. An empty text and `null` are an empty object if
  /// `may_be_empty`.
  explicit body(const std::string& text, bool may_be_empty = false);

  /// Returns the field; null if it is absent, JSON null, or of another type,
  /// which is a problem. `name` is in camelCase.
  const json* object(std::string_view name);
  const json* list(std::string_view name);

  /// The same as `object` for a field that must be there.
  const json* required_object(std::string_view name);

  /// Returns the text of a field; nothing if it is absent or null.
  std::optional<std::string> text(std::string_view name);

  /// The same for a field that must be there.
  std::string required_text(std::string_view name);

  std::optional<bool> flag(std::string_view name);

  /// Returns a whole number from 0; nothing if it is absent or null.
  std::optional<std::uint64_t> number(std::string_view name);

  /// Notes that a field is missing.
  void miss(std::string_view name);

  /// Notes a problem of a field's value.
  void refuse(std::string_view name, std::string_view why);

  /// Returns the answer to a body with problems; nothing if there are none.
  std::optional<response> refusal() const;

  /// The whole object.
  const json& data() const noexcept { return data_; }

private:
  const json* find(std::string_view name) const;
  const json* find(std::string_view name,
                   json::value_t type,
                   std::string_view problem_type,
                   std::string_view why);

  json data_ = json::object();
  json problems_ = json::array();
};

} // namespace troupe::serving
