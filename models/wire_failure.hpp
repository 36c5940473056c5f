// What a vendor says of a failure, as one short line. Internal; not installed.

#pragma once

#include "troupe/models/wire_document.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::size_t failure_bytes_max = 500;

/// One line of UTF-8, at most `failure_bytes_max` bytes: white space and
/// control characters become single spaces, `key` becomes `***`.
std::string failure_line(std::string_view text, std::string_view key = {});

/// `"CODE: message"` of an error object, or of an object that holds one as its
/// `error`; empty if it says neither.
std::string failure_text(const wire_node& said);

} // namespace troupe
