// An update of a key that was overwritten by a step that had not seen it.

#pragma once

#include <cstdint>
#include <string>

namespace troupe {

/// The effect of a plain `set` or `erase` of a key that its step has read, if
/// another event has changed the key since.
enum class lost_updates : std::uint8_t {
  tell,   ///< The event takes effect. The loss is counted, and the first one of
          ///< each key is a warning (`runtime_options::on_warning`).
  refuse, ///< The event is refused with `errc::conflict`.
  ignore, ///< The event takes effect; reads are not noted.
};

/// One lost update.
struct lost_update {
  /// Full key, such as `user:n`.
  std::string key;
  /// Author of the event that has overwritten the key.
  std::string agent;
  /// Id of that event. Empty for changes of `temp:` keys without an event.
  std::string event_id;
  /// Id of the event whose change of the key was overwritten. The same as
  /// `event_id` if two tools of one turn have changed the key. Empty for keys
  /// of `user:`, `app:` and `temp:`, and if the event is not in memory.
  std::string overwritten_id;
};

} // namespace troupe
