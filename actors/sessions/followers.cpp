#include "troupe/actors/sessions/followers.hpp"

#include "troupe/actors/failure.hpp"
#include "troupe/core/session.hpp"

#include <fmt/format.h>

namespace troupe::actors {

misplacement check_place(const follow& wanted,
                         const followed_session& session) {
  if (!session.exists)
    return wanted.place && !wanted.is_wish ? misplacement::removed
                                           : misplacement::unknown;
  if (!wanted.place)
    return misplacement::none;
  const auto& place = *wanted.place;
  if (place.incarnation != 0 && session.incarnation != 0
      && place.incarnation != session.incarnation)
    return misplacement::removed;
  if (place.number > session.revision)
    return wanted.is_wish ? misplacement::beyond : misplacement::lost;
  if (place.number < session.trimmed_to)
    return misplacement::gone;
  return place.last && session.events.has(place.number)
             && session.events.at(place.number)->id != place.last->id
           ? misplacement::lost
           : misplacement::none;
}

error to_error(misplacement why,
               const session_key& key,
               const follow& wanted,
               std::uint64_t revision,
               std::uint64_t trimmed_to) {
  switch (why) {
  case misplacement::beyond:
    return {errc::not_found,
            fmt::format("session {} is at revision {}, so it cannot be "
                        "followed from revision {}",
                        to_string(key),
                        revision,
                        wanted.place->number)};
  case misplacement::removed:
    return {errc::not_found,
            fmt::format("session {} was removed while it was followed",
                        to_string(key))};
  case misplacement::lost:
    return {errc::conflict,
            fmt::format("session {} has lost its event {} while it was "
                        "followed; read the session again",
                        to_string(key),
                        wanted.place->number)};
  case misplacement::gone:
    return detail::trimmed_event(key, wanted.place->number + 1, trimmed_to);
  default:
    return unknown_session(key);
  }
}

} // namespace troupe::actors
