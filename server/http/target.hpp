// The target of a request, `/apps/press%20desk/users?limit=5`, as its decoded
// parts.

#pragma once

#include "troupe/core/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

/// A path is split at `/` before its segments are decoded, so an id may hold
/// `%2F`.
struct request_target {
  /// Decoded segments: `/a/b` has two, `/a/` has `a` and an empty one, `/` one
  /// empty one.
  std::vector<std::string> segments;
  /// Decoded names and values, in their order. A name without `=` has an empty
  /// value.
  std::vector<std::pair<std::string, std::string>> query;

  /// Returns the first value of a name; null if there is none.
  const std::string* find(std::string_view name) const;
};

/// Decodes a target in origin form. Fails with `errc::invalid_argument` on a
/// target that does not start with `/`, on a bad percent sign, and on decoded
/// text that is not UTF-8 or holds a NUL byte.
result<request_target> parse_target(std::string_view text);

/// Decodes percent signs. With `form`, a `+` is a space, as in a query. Fails
/// like `parse_target`.
result<std::string> percent_decoded(std::string_view text, bool form);

/// Encodes one segment of a path.
std::string percent_encoded(std::string_view text);

} // namespace troupe::serving
