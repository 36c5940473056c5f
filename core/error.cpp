#include "troupe/core/error.hpp"

namespace troupe {

std::string_view to_string(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
    return "invalid_argument";
  case errc::type_error:
    return "type_error";
  case errc::too_large:
    return "too_large";
  case errc::not_found:
    return "not_found";
  case errc::gone:
    return "gone";
  case errc::already_exists:
    return "already_exists";
  case errc::conflict:
    return "conflict";
  case errc::busy:
    return "busy";
  case errc::store_failed:
    return "store_failed";
  case errc::corrupt:
    return "corrupt";
  case errc::template_error:
    return "template_error";
  case errc::model_failed:
    return "model_failed";
  case errc::tool_failed:
    return "tool_failed";
  case errc::callback_failed:
    return "callback_failed";
  case errc::circular_agent_call:
    return "circular_agent_call";
  case errc::would_deadlock:
    return "would_deadlock";
  case errc::limit_exceeded:
    return "limit_exceeded";
  case errc::stuck_join:
    return "stuck_join";
  case errc::deadline_exceeded:
    return "deadline_exceeded";
  case errc::cancelled:
    return "cancelled";
  case errc::internal:
    return "internal";
  }
  return "internal";
}

errc errc_of(std::string_view name) noexcept {
  const auto last = static_cast<int>(errc::internal);
  for (int number = 0; number < last; ++number)
    if (const auto code = static_cast<errc>(number); to_string(code) == name)
      return code;
  return errc::internal;
}

std::string to_string(const error& failure) {
  return std::string(to_string(failure.code())) + ": " + failure.message();
}

} // namespace troupe
