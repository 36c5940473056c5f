// What a vendor says of a failure, as one short line. Internal; not installed.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/models/wire_document.hpp"

#include <cstddef>
#include <cstdint>
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

/// Whether a request that was answered with this status is worth another try.
bool may_pass(std::int64_t status);

/// The failure that such an object tells: `errc::busy` if it may pass, by its
/// name or the status in it, else `errc::model_failed`.
error told_failure(const wire_node& said);

/// `errc::busy`.
error broken_off();

} // namespace troupe
