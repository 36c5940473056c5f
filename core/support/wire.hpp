// Converts field names from snake_case to the wire's camelCase, and reads
// objects field by field.

#pragma once

#include "troupe/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Converts `state_delta` to `stateDelta`. A name without an inner underscore
/// is unchanged.
std::string to_camel_case(std::string_view name);

/// Reads the fields of one object. Each field is taken at most once and checked
/// for its type; the rest is kept.
class wire_reader {
public:
  /// `what` names the object in errors, for example `"event"`. Fails with
  /// `errc::invalid_argument` if `data` is not an object or has a field in both
  /// spellings.
  static result<wire_reader> open(json data, std::string_view what);

  /// Returns the field, which may be moved from; null if it is absent or null.
  /// A field of another type than `type` makes the reader fail. The pointer is
  /// valid until the next call.
  json* take(std::string_view name, json::value_t type);
  json* take_any(std::string_view name);

  /// Moves the field into `target`; does nothing if the field is absent.
  void take(std::string_view name, std::string& target);
  void take(std::string_view name, bool& target);

  /// Checks the type of a field without taking it.
  void expect(std::string_view name, json::value_t type);

  void fail(std::string why);

  /// Returns the fields that were not taken as an object, null if there are
  /// none; or the first failure.
  result<json> rest() &&;

private:
  std::string what_;
  json fields_;
  json taken_;
  std::string reason_;
};

} // namespace troupe
