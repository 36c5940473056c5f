// Text that a receiver accepts. One byte that is not UTF-8 would make it refuse
// the whole request.

#pragma once

#include "troupe/core/json.hpp"

#include <utf8.h>

#include <iterator>
#include <string>

namespace troupe::telemetry {

/// Returns the text with U+FFFD in place of bytes that are not UTF-8.
inline std::string valid_text(const std::string& text) {
  if (is_utf8(text))
    return text;
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  return valid;
}

} // namespace troupe::telemetry
