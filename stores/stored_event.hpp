// Events as the text that databases keep, and back.
//
// The body is the event's wire form without what has columns of its own: id,
// time and state delta. Microseconds do not fit the wire's float seconds for
// all times, and the delta is replayed without its event.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The columns of one event. Kept and refilled by those who write many.
struct stored_event {
  std::string id;
  std::int64_t microseconds = 0; ///< Since 1970.
  /// Wire form, without `id`, `timestamp` and `actions.stateDelta`.
  std::string body;
  /// `{"key": value-or-null}` of the sets and erases, in their order, with full
  /// keys; empty if there are none.
  std::string delta;
};

/// The same columns as views of what a database returned.
struct stored_event_view {
  std::string_view id;
  std::int64_t microseconds = 0;
  std::string_view body;
  std::string_view delta;
};

/// Fills all columns. Typed operations are not written: deltas are resolved
/// before they are stored. Fails with `errc::invalid_argument` on text that is
/// not UTF-8.
result<void> encode(const event& said, stored_event& target);

/// Fills the delta alone, as for a change without an event.
result<void> encode(const delta& changed, std::string& target);

/// Fills what a change has to be kept of; all is empty for a removal.
result<void> encode(const store_change& change, stored_event& target);

/// Appends the JSON text of one value. Fails with `errc::invalid_argument` on
/// text that is not UTF-8.
result<void> append_text(std::string& target, const value& data);

/// The event again; as from the wire, an empty object of further fields reads
/// as none, and names come back in camelCase. Fails with `errc::corrupt`.
result<event> decode(const stored_event_view& columns);

/// Fails with `errc::corrupt`.
result<delta> decode_delta(std::string_view text);

/// Fails with `errc::corrupt`.
result<value> decode_value(std::string_view text);

} // namespace troupe
