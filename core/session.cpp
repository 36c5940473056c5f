#include "troupe/core/session.hpp"

#include <fmt/format.h>

namespace troupe {

error detail::no_revision(const session_key& key,
                          std::uint64_t wanted,
                          std::uint64_t newest) {
  return {errc::not_found,
          fmt::format("session {} has no revision {}; its newest one is {}",
                      to_string(key),
                      wanted,
                      newest)};
}

json to_json(const session& fetched) {
  json shown = {{"id", fetched.key().id},
                {"appName", fetched.key().app},
                {"userId", fetched.key().user},
                {"state", fetched.state().all()},
                {"events", to_json(fetched.events())},
                {"lastUpdateTime", to_seconds(fetched.last_update_time())},
                {"revision", fetched.revision()}};
  if (fetched.is_earlier()) {
    shown["isEarlier"] = true;
    shown["sharedStateIsOfNow"] = fetched.shared_state_is_of_now();
  }
  return shown;
}

} // namespace troupe
