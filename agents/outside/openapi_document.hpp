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

/// Throws `errc::invalid_argument`.
[[noreturn]] void refuse_document(const std::string& why);

} // namespace troupe
