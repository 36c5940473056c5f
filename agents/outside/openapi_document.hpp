// An OpenAPI document: its references, and its schemas as JSON Schema.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// The document outlives this. All functions throw `errc::invalid_argument` for
/// a part of the document that is not as OpenAPI wants it.
class openapi_document {
public:
  /// Refuses versions other than 3.0 and 3.1.
  explicit openapi_document(const json& root);

  const json& root() const noexcept { return root_; }

  /// Follows `$ref` to its target. References lead within the document.
  const json& resolve(const json& node) const;

  /// Returns a JSON Schema of draft 7 without references. A schema that
  /// contains itself allows any value of its type there.
  json schema(const json& written) const;

private:
  class conversion;

  const json& root_;
};

/// The field of an object; null if it is not there, or `object` is none.
const json& field_of(const json& object, std::string_view name);

/// The field of an object, which is a mapping; null if it is not there or null.
/// Throws `errc::invalid_argument` for another kind. `place` tells in the
/// message where the field is: "the document", "GET /pets".
const json& mapping_field(const json& object,
                          std::string_view name,
                          std::string_view place);

/// As `mapping_field`, for a list.
const json&
list_field(const json& object, std::string_view name, std::string_view place);

/// As `mapping_field`, for a schema, which is a mapping or a boolean.
const json&
schema_field(const json& object, std::string_view name, std::string_view place);

/// Throws `errc::invalid_argument` if `held` is not a mapping. `name` is for
/// the message.
void need_mapping(const json& held,
                  std::string_view name,
                  std::string_view place);

/// Throws `errc::invalid_argument`.
[[noreturn]] void refuse_document(const std::string& why);

} // namespace troupe
