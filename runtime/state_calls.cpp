#include "troupe/runtime/state_calls.hpp"

namespace troupe::detail {

result<scoped_key> check_written_key(const std::string& key,
                                     operation_kind kind,
                                     const json& operand) {
  const bool erases = kind == operation_kind::erase
                      || (kind == operation_kind::set && operand.is_null());
  return erases ? check_key(key) : check_new_key(key);
}

} // namespace troupe::detail
