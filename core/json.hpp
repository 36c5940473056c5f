// JSON at the boundary: parsing that refuses what JSON text can hide, and the
// one check that every value passes.

#pragma once

#include "troupe/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

using json = nlohmann::json;

/// Parses one JSON text.
///
/// Fails with `errc::invalid_argument` on malformed text (with the byte), on an
/// object key that comes twice, on a number outside 64 bits, on text that is
/// not UTF-8 and on nesting deeper than `json_depth_max`.
result<json> parse_json(std::string_view text);

/// Compact JSON text. `data` must have passed `check_json`.
std::string to_text(const json& data);

/// Whether both are the same JSON. Unlike `==` of nlohmann it does not take a
/// huge unsigned integer for a negative one.
bool equal(const json& left, const json& right);

/// Whether one number is less than another, whatever their types.
bool less(const json& left, const json& right);

inline constexpr std::size_t json_depth_max = 64;

/// Checks that `data` is finite, UTF-8 and at most `json_depth_max` deep, and
/// returns its size as compact JSON in bytes (strings counted without their
/// escapes).
///
/// `what` names the value in the reason: `"value of 'app:theme'"`. Fails with
/// `errc::invalid_argument`.
result<std::size_t> check_json(const json& data, std::string_view what);

/// Whether `text` is UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text) noexcept;

} // namespace troupe
