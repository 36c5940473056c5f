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

error detail::trimmed_revision(const session_key& key,
                               std::uint64_t wanted,
                               std::uint64_t first) {
  return {errc::gone,
          fmt::format("revision {} of session {} was deleted by a trim; its "
                      "oldest revision is {}",
                      wanted,
                      to_string(key),
                      first)};
}

error detail::trimmed_event(const session_key& key,
                            std::uint64_t wanted,
                            std::uint64_t first) {
  return {
    errc::gone,
    fmt::format("event {} of session {} was deleted by a trim; its oldest "
                "revision is {}",
                wanted,
                to_string(key),
                first)};
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
  if (fetched.first_revision() > 0)
    shown["firstRevision"] = fetched.first_revision();
  return shown;
}

} // namespace troupe
