#include "troupe/runtime/state_calls.hpp"

#include "troupe/actors/running/user_failure.hpp"

#include <fmt/format.h>

namespace troupe::detail {

result<scoped_key> check_written_key(const std::string& key,
                                     operation_kind kind,
                                     const json& operand) {
  const bool erases = kind == operation_kind::erase
                      || (kind == operation_kind::set && operand.is_null());
  return erases ? check_key(key) : check_new_key(key);
}

result<json> call_update(const state_update& change,
                         const std::string& key,
                         const std::optional<value>& now) {
  try {
    return change(now ? std::optional(now->data()) : std::nullopt);
  } catch (...) {
    return actors::current_failure(errc::callback_failed,
                                   fmt::format("the update of '{}'", key));
  }
}

} // namespace troupe::detail
