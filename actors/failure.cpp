#include "troupe/actors/failure.hpp"

#include <fmt/format.h>

namespace troupe::actors {

error closed() {
  return {errc::cancelled, "the runtime has shut down"};
}

error cancelled_before_start() {
  return {errc::cancelled, "the run was cancelled before it started"};
}

error unknown_session(const session_key& key) {
  return {
    errc::not_found,
    fmt::format("session {} does not exist; create it first", to_string(key))};
}

error deleted_session(const session_key& key) {
  return {errc::cancelled,
          fmt::format("session {} was deleted", to_string(key))};
}

} // namespace troupe::actors
