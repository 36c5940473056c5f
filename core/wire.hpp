// Field names between the wire's camelCase and the snake_case that other
// writers use.

#pragma once

#include "troupe/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// `state_delta` becomes `stateDelta`; a name without an inner underscore stays
/// as it is.
std::string to_camel_case(std::string_view name);

/// The fields of one object, each taken at most once and checked for its type;
/// what is left over is kept.
class wire_reader {
public:
  /// `what` names the object in reasons: `"event"`. Fails with
  /// `errc::invalid_argument` if `data` is no object or has a field in both
  /// spellings.
  static result<wire_reader> open(const json& data, std::string_view what);

  /// The field, or null if absent or null. With a `type` the field must be of
  /// it, else the reader has failed. Valid until the next call.
  const json* take(std::string_view name, json::value_t type);
  const json* take_any(std::string_view name);

  /// The field into `target`, which stays as it is when the field is absent.
  void take(std::string_view name, std::string& target);
  void take(std::string_view name, bool& target);

  /// Checks the type of a field that stays among the rest.
  void expect(std::string_view name, json::value_t type);

  void fail(std::string why);

  /// What nobody took, or null.
  result<json> rest() &&;

private:
  std::string what_;
  json fields_;
  json taken_;
  std::string reason_;
};

} // namespace troupe
