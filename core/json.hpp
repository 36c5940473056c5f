// JSON at the boundary: a strict parser, the check that every value passes, and
// the limits of its size.

#pragma once

#include "troupe/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// The JSON type of the whole interface. It accepts values that `check_json`
/// refuses.
using json = nlohmann::json;

/// Returns `{}`. Headers use it in place of `json::object()`, which
/// instantiates much of nlohmann_json in each source that includes them.
json empty_object();

/// Parses one JSON text.
///
/// Fails with `errc::invalid_argument` on malformed text (with the byte), on an
/// object key that comes twice, on a number outside 64 bits, on text that is
/// not UTF-8 and on nesting deeper than `json_depth_max`.
result<json> parse_json(std::string_view text);

/// Returns compact JSON text. `data` must have passed `check_json`.
std::string to_text(const json& data);

/// Returns true if both are the same JSON. Unlike nlohmann's `==`, it does not
/// confuse a huge unsigned integer with a negative one.
bool equal(const json& left, const json& right);

/// Returns true if `left` is the smaller number, whatever their types.
bool less(const json& left, const json& right);

/// Maximum nesting of lists and objects, for parsed and for checked JSON.
inline constexpr std::size_t json_depth_max = 64;

/// Checks that `data` is finite, UTF-8 and at most `json_depth_max` deep.
/// Returns its size as compact JSON in bytes; strings count without their
/// escapes.
///
/// `what` names the value in the error, for example `"value of 'app:theme'"`.
/// Fails with `errc::invalid_argument`.
result<std::size_t> check_json(const json& data, std::string_view what);

/// Size limits of an owner or a boundary, in bytes of compact JSON.
struct size_limits {
  /// Maximum size of one value. A larger one fails with `errc::too_large`.
  std::size_t value_bytes_max = std::size_t{256} * 1024;
  /// Maximum size of one event. A larger one fails with `errc::too_large`.
  std::size_t event_bytes_max = std::size_t{1024} * 1024;
};

/// Returns true if `text` is UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text) noexcept;

} // namespace troupe
