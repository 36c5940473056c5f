#include "history.hpp"

namespace troupe::testing {

std::string_view to_string(call_kind kind) noexcept {
  switch (kind) {
  case call_kind::create:
    return "create";
  case call_kind::append:
    return "append";
  case call_kind::get:
    return "get";
  case call_kind::list:
    return "list";
  case call_kind::remove:
    return "remove";
  case call_kind::remove_user:
    return "remove_user";
  case call_kind::user_state:
    return "get_user_state";
  case call_kind::app_state:
    return "get_app_state";
  }
  return "?";
}

} // namespace troupe::testing
