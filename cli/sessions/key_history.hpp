// The values that a key had in the course of a session.

#pragma once

#include "troupe/runtime/session_service.hpp"

#include <functional>
#include <string>

namespace troupe::cli {

/// Calls `on_value` with one line for each change of `name`, a full key, oldest
/// first: `{"revision", "value", "event", "author", "time"}`. The value is null
/// if the event erased the key. The value at the creation is revision 0 and has
/// no event, author or time. Of an `app:` or `user:` key, these are the changes
/// by events of this session alone. Stops at the first failure, and returns it.
result<void>
read_key_history(session_service& sessions,
                 const session_key& key,
                 const std::string& name,
                 const std::function<result<void>(const json&)>& on_value);

} // namespace troupe::cli
