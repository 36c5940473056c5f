// The lines that the program writes to stderr while it works, for people or for
// programs.
//
// `log_format::json` writes each line as an object:
//
//   {"time": "2026-11-28T07:00:00.123Z", "severity": "INFO", "message": text}
//
// with further fields. They hold no tokens and no contents of messages.

#pragma once

#include "troupe/core/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::cli {

enum class log_format : std::uint8_t {
  text, ///< The message behind a prefix such as `warning: `.
  json, ///< One object per line.
};

enum class log_severity : std::uint8_t { info, warning, error };

/// Sets the format of all later lines. At first it is `text`.
void set_log_format(log_format chosen) noexcept;

/// Returns the format of lines.
log_format chosen_log_format() noexcept;

/// Writes a line to stderr. `prefix`, such as `"warning: "`, is printed as text
/// only, and `fields`, an object, as JSON only. Hidden
/// characters are shown as numbers in the text form. Thread-safe.
void write_log(log_severity severity,
               std::string_view prefix,
               std::string_view message,
               json fields = json::object());

/// Makes the object of a line, with a line break. Bytes that are not UTF-8 are
/// replaced.
std::string json_log_line(log_severity severity,
                          std::string_view message,
                          json fields = json::object());

} // namespace troupe::cli
