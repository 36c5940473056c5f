// Reads a vendor's description of a failure as one short line. Internal.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/models/formats/document.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::size_t failure_bytes_max = 500;

/// Makes one line of UTF-8 of at most `failure_bytes_max` bytes. White space
/// and control characters become single spaces, and `key` becomes `***`.
std::string failure_line(std::string_view text, std::string_view key = {});

/// Returns `"CODE: message"` of an error object, or of an object with a field
/// `error`; empty if it has neither.
std::string failure_text(const wire_node& said);

/// Returns true if a request with this status is worth another attempt.
bool may_pass(std::int64_t status);

/// Makes the error of an answer that troupe cannot use, `errc::model_failed`.
error bad_answer(std::string_view why);

/// Makes the error that such an object describes: `errc::busy` if its name or
/// status says that it may pass, otherwise `errc::model_failed`.
error told_failure(const wire_node& said);

/// Makes the error of a stream that broke off, `errc::busy`.
error broken_off();

} // namespace troupe
