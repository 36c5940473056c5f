// Invariant: a letter waits here only if its reader knows the revision that it
// waits at: the caller has named the revision, or an answer with it was
// confirmed. Until then, each letter is answered with the start or with a newer
// state.

#include "troupe/actors/sessions/state_followers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors {

namespace {

std::string named(const owner_name& owner) {
  return fmt::format(
    "{} {}", owner.where() == scope::user ? "user" : "app", to_string(owner));
}

error beyond(const follow_state& wanted, std::uint64_t revision) {
  return {errc::not_found,
          fmt::format("the state of {} is at revision {}, so it cannot be "
                      "followed from revision {}",
                      named(wanted.owner),
                      revision,
                      wanted.place->revision)};
}

error went_back(const follow_state& wanted, std::uint64_t revision) {
  return {errc::conflict,
          fmt::format("the state of {} was at revision {} and is at revision "
                      "{}, because the store has lost commits; read it again",
                      named(wanted.owner),
                      wanted.place->revision,
                      revision)};
}

std::uint64_t next_load() noexcept {
  static std::atomic<std::uint64_t> count = 0;
  return ++count;
}

} // namespace

state_followers::state_followers() noexcept : load_(next_load()) {}

void state_followers::note_load() noexcept {
  was_loaded_ = true;
  load_ = next_load();
}

state_place state_followers::place_at(const shown_state& now) const {
  return {now.revision, now.keys, now.removals, now.losses, load_};
}

// Returns the error that ends the reader, if its place is not in the history of
// the owner. Without a loss of the store, only a removal makes a revision lower
// or its keys other ones.
std::optional<error> state_followers::check(const follow_state& wanted,
                                            const shown_state& now) const {
  const auto& place = *wanted.place;
  if (!place.keys) {
    if (place.revision > now.revision)
      return beyond(wanted, now.revision);
    return std::nullopt;
  }
  if (place.removals != now.removals)
    return removed_user(wanted.owner);
  // The keys are compared after a load only: that takes time.
  const bool is_another
    = place.revision > now.revision
      || (place.revision == now.revision && place.load != load_
          && *place.keys != now.keys);
  if (!is_another)
    return std::nullopt;
  return place.losses == now.losses && wanted.owner.where() == scope::user
           ? removed_user(wanted.owner)
           : went_back(wanted, now.revision);
}

std::unique_ptr<follow_state>
state_followers::serve(std::unique_ptr<follow_state> wanted,
                       const shown_state& now) {
  wanted->stop_counting();
  if (wanted->receiver->is_over()) {
    note_end();
    return nullptr;
  }
  // A letter with a stale answer comes back. The start is answered again,
  // unless the state has changed since. The letter stays a start until an
  // answer is confirmed, because the answer about the change may be stale, too.
  if (!wanted->place
      || (wanted->is_start && now.revision <= wanted->place->revision)) {
    wanted->is_start = true;
    wanted->place = state_place{now.revision, std::nullopt};
    wanted->outcome = followed_state{place_at(now), {}, true};
    return wanted;
  }
  if (auto wrong = check(*wanted, now)) {
    wanted->outcome = *std::move(wrong);
    return wanted;
  }
  if (now.revision > wanted->place->revision) {
    wanted->outcome = followed_state{place_at(now), wanted->place->keys};
    return wanted;
  }
  wanted->place = place_at(now);
  revision_ = empty() ? now.revision : std::min(revision_, now.revision);
  keep(std::move(wanted));
  return nullptr;
}

letter_list state_followers::take_all() {
  was_loaded_ = false;
  return take();
}

error removed_user(const owner_name& user) {
  return {
    errc::not_found,
    fmt::format("{} was removed while its state was followed", named(user))};
}

} // namespace troupe::actors
