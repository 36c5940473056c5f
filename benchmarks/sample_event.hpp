// The event that all benchmarks append, and the keys of sessions.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <cstddef>
#include <vector>

namespace bench {

/// One `app:` and one `user:` key, two session keys (one holds an object), and
/// a short text: about 430 bytes in wire form.
troupe::event build_event(std::size_t number);

/// Sessions of one app and up to a thousand users.
std::vector<troupe::session_key> make_keys(std::size_t count);

} // namespace bench
