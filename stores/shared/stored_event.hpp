// Converts events to the text that databases store, and back.
//
// The body is the event's wire form without the fields that have their own
// columns: id, time and state delta. The time has a column because the wire's
// seconds, a floating number, cannot hold every time to the microsecond. The
// delta has one because it is replayed without its event.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The columns of one event. A writer of many events reuses one object to save
/// allocations.
struct stored_event {
  std::string id;
  std::int64_t microseconds = 0; ///< Since 1970.
  /// Wire form, without `id`, `timestamp` and `actions.stateDelta`.
  std::string body;
  /// A JSON object `{"key": value-or-null}` of the sets and erases, in order,
  /// with full keys; empty if there are none.
  std::string delta;
};

/// The same columns as views into the result of a query.
struct stored_event_view {
  std::string_view id;
  std::int64_t microseconds = 0;
  std::string_view body;
  std::string_view delta;
};

/// Fills all columns. Typed operations are not written, since deltas are
/// resolved before they are stored. Fails with `errc::invalid_argument` on text
/// that is not UTF-8.
result<void> encode(const event& said, stored_event& target);

/// Fills only the delta, as for a change without an event. Fails with
/// `errc::invalid_argument` on text that is not UTF-8.
result<void> encode(const delta& changed, std::string& target);

/// Fills the columns that are stored for a change; all are empty for a removal.
result<void> encode(const store_change& change, stored_event& target);

/// Appends the JSON text of one value. Fails with `errc::invalid_argument` on
/// text that is not UTF-8.
result<void> append_text(std::string& target, const value& data);

/// Restores the event. As from the wire, an empty object of further fields
/// reads as none, and names come back in camelCase. Fails with `errc::corrupt`.
result<event> decode(const stored_event_view& columns);

/// Restores a delta. Fails with `errc::corrupt`.
result<delta> decode_delta(std::string_view text);

/// Restores a value. Fails with `errc::corrupt`.
result<value> decode_value(std::string_view text);

} // namespace troupe
