// Checks of trimmed sessions: their old events are gone, and all else stays.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

namespace troupe::conformance {

namespace {

using namespace names;

const session_key third{"press", "ann", "s3"};

// The events `event-FIRST` to `event-LAST`.
json ids_between(int first, int last) {
  auto ids = json::array();
  for (int number = first; number <= last; ++number)
    ids.push_back(fmt::format("event-{}", number));
  return ids;
}

// Creates `key` with this many events. Each counts in the keys `n`, `user:n`
// and `app:n`.
change_maker make_session(run& on, int count) {
  change_maker make;
  on.commit(make.create(key, {{"n", 0}, {"topic", "owls"}}));
  for (int number = 1; number <= count; ++number)
    on.commit(
      make.append(key,
                  {{"n", number}, {"user:n", number}, {"app:n", number}},
                  1'000'000 + number));
  return make;
}

json state_at(int revision) {
  return {{"n", revision}, {"topic", "owls"}};
}

store_change trim_to(change_maker& make, int revision) {
  return make.trim(key,
                   static_cast<std::uint64_t>(revision),
                   state_at(revision),
                   1'000'000 + revision);
}

json ids_behind(run& on, const session_key& of, std::uint64_t revision) {
  return ids_of(on.kept().load_events(of, revision + 1, all).value());
}

json code_of(const result<std::vector<event_ptr>>& loaded) {
  return loaded ? json("ok") : json(to_string(loaded.error().code()));
}

json code_at(run& on, const session_key& of, std::uint64_t revision) {
  const auto loaded = on.kept().load_session_at(of, revision, all);
  return loaded ? json("ok") : json(to_string(loaded.error().code()));
}

// Compares all that is left of `key` with 5 events, trimmed to 3.
void expect_trimmed(run& on) {
  const auto kept
    = on.kept().load_session(key, {.events_max = all, .ids_max = all}).value();
  on.expect("the session", kept.has_value());
  if (!kept)
    return;
  on.expect_same("keys", shown(kept->scope.keys), state_at(5));
  on.expect_same("revision", kept->scope.revision, 5);
  on.expect_same("its first revision", kept->first_revision, 3);
  on.expect_same("its newest events", ids_of(kept->events), ids_between(4, 5));
  on.expect_same(
    "hashes", kept->id_hashes, {id_hash("event-4"), id_hash("event-5")});
  on.expect_same("events behind it", ids_behind(on, key, 3), ids_between(4, 5));
  on.expect_same("events from the last one that is gone",
                 code_of(on.kept().load_events(key, 3, 5)),
                 "gone");
  on.expect_same(
    "all events", code_of(on.kept().load_events(key, 1, all)), "gone");
  on.expect_same(
    "events by id",
    ids_of(on.kept()
             .find_events(key,
                          std::vector<std::string>{
                            "event-3", "event-4", "event-1", "event-5"})
             .value()),
    {nullptr, "event-4", nullptr, "event-5"});
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 5}}, 5));
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 5}}, 5));
  on.expect_same("rows", on.kept().list(query_of("press")).value().size(), 1);
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

void old_events_are_gone(run& on) {
  auto make = make_session(on, 5);
  on.commit(trim_to(make, 3));
  expect_trimmed(on);
  on.commit(make.append(key, {{"n", 6}}));
  on.expect_same("events", ids_behind(on, key, 3), ids_between(4, 6));
}

void they_stay_gone_when_opened_again(run& on) {
  auto make = make_session(on, 5);
  on.commit(trim_to(make, 3));
  on.reopen();
  expect_trimmed(on);
  on.commit(make.append(key));
  on.reopen();
  on.expect_same("events", ids_behind(on, key, 3), ids_between(4, 6));
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

void kept_revisions_load_as_they_were(run& on) {
  auto make = make_session(on, 6);
  on.commit(trim_to(make, 2));
  const auto compare = [&](int first) {
    for (int revision = 0; revision < first; ++revision)
      on.expect_same(fmt::format("revision {}", revision),
                     code_at(on, key, static_cast<std::uint64_t>(revision)),
                     "gone");
    on.expect_same("revision 7", code_at(on, key, 7), "not_found");
    for (int revision = first; revision <= 6; ++revision) {
      const auto what = fmt::format("revision {}", revision);
      const auto past
        = on.kept()
            .load_session_at(key, static_cast<std::uint64_t>(revision), all)
            .value()
            .value();
      on.expect_same(
        what + ": keys", shown(past.scope.keys), state_at(revision));
      on.expect_same(what + ": revision", past.scope.revision, revision);
      on.expect_same(what + ": events",
                     ids_of(past.events),
                     ids_between(first + 1, revision));
      on.expect_same(what + ": first", past.first_revision, first);
      on.expect_same(what + ": time",
                     past.last_update_time.time_since_epoch().count(),
                     1'000'000 + revision);
    }
  };
  compare(2);
  on.reopen();
  compare(2);
  on.commit(trim_to(make, 4));
  compare(4);
  on.reopen();
  compare(4);
}

// Trims to the creation, which deletes nothing, and to the newest event, which
// deletes all.
void a_trim_may_reach_any_revision(run& on) {
  auto make = make_session(on, 3);
  on.commit(trim_to(make, 0));
  on.expect_same("events", ids_behind(on, key, 0), ids_between(1, 3));
  on.commit(trim_to(make, 3));
  on.expect_same(
    "events after the newest", ids_behind(on, key, 3), json::array());
  on.expect_same(
    "the state", session_of(on, key)["scope"]["keys"], state_at(3));
  // An earlier one brings nothing back.
  on.commit(trim_to(make, 1));
  on.expect_same(
    "events of old", code_of(on.kept().load_events(key, 2, 3)), "gone");
  on.commit({make.append(key, {{"n", 4}}), trim_to(make, 4)});
  on.expect_same(
    "the first revision", session_of(on, key)["first_revision"], 4);
  on.commit(make.append(key));
  on.expect_same("new events", ids_behind(on, key, 4), {"event-5"});
}

void a_trim_without_its_session_is_moved(run& on) {
  auto make = make_session(on, 3);
  on.expect_moved(
    "a trim of an unknown session", {make.trim(other, 0)}, {owner_of(other)});
  on.expect_moved("a trim to a later revision", {trim_to(make, 4)}, {session});
  on.expect_same("events", ids_behind(on, key, 0), ids_between(1, 3));
  const auto incarnation
    = on.kept().load_session(key, {}).value().value().incarnation;
  if (incarnation == 0)
    return;
  auto late = trim_to(make, 2);
  late.kept->incarnation = incarnation;
  on.commit(make.remove(key));
  on.commit({make.create(key), make.append(key), make.append(key)});
  on.expect_moved("a trim of the removed session", {late}, {session});
  on.expect_same("events", ids_behind(on, key, 0), ids_between(4, 5));
}

void an_id_that_is_gone_is_free_again(run& on) {
  auto make = make_session(on, 3);
  on.commit(trim_to(make, 2));
  on.commit(make.append(key, make_event("event-1", {{"n", 9}})));
  on.expect_same("events", ids_behind(on, key, 2), {"event-3", "event-1"});
  on.expect_same(
    "by id",
    ids_of(
      on.kept().find_events(key, std::vector<std::string>{"event-1"}).value()),
    {"event-1"});
}

void a_trimmed_session_may_be_removed(run& on) {
  auto make = make_session(on, 4);
  on.commit(trim_to(make, 2));
  on.commit(make.remove(key));
  on.expect_same("the session", session_of(on, key), nullptr);
  on.expect_same("events", ids_behind(on, key, 0), json::array());
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 4}}, 4));
  on.commit({make.create(key), make.append(key)});
  on.expect_same("a new one", ids_behind(on, key, 0), {"event-5"});
  on.commit({make.append(key), make.trim(key, 1), make.remove(key)});
  on.expect_same("one that was trimmed before", session_of(on, key), nullptr);
  on.commit(make.remove_user("press", "ann"));
}

// -- with forks ----

void forks_keep_what_they_share(run& on) {
  auto make = make_session(on, 6);
  on.commit(
    {make.fork(other, key.id, 4, state_at(4), 1'000'004), make.append(other)});
  on.commit(trim_to(make, 5));
  const auto compare = [&] {
    on.expect_same("the fork's events",
                   ids_behind(on, other, 0),
                   {"event-1", "event-2", "event-3", "event-4", "event-7"});
    on.expect_same("the fork at 2", code_at(on, other, 2), "ok");
    on.expect_same("damage", on.kept().check({}).value(), json::array());
  };
  compare();
  on.expect_same("events", ids_behind(on, key, 5), {"event-6"});
  on.commit(make.trim(other, 5, state_at(4)));
  on.expect_same("the trimmed fork", ids_behind(on, other, 5), json::array());
  on.expect_same("at its beginning", code_at(on, other, 4), "gone");
  on.commit(make.remove(other));
  on.expect_same("events left", ids_behind(on, key, 5), {"event-6"});
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

void a_fork_of_a_trimmed_session_is_trimmed(run& on) {
  auto make = make_session(on, 5);
  on.commit(trim_to(make, 2));
  on.commit({make.fork(other, key.id, 4, state_at(4), 1'000'004),
             make.append(other),
             make.fork(third, key.id, 2, state_at(2), 1'000'002)});
  const auto compare = [&] {
    on.expect_same(
      "the first revision", session_of(on, other)["first_revision"], 2);
    on.expect_same(
      "events", ids_behind(on, other, 2), {"event-3", "event-4", "event-6"});
    on.expect_same(
      "an older one", code_of(on.kept().load_events(other, 2, all)), "gone");
    for (const std::uint64_t revision : {2U, 3U, 4U})
      on.expect_same(fmt::format("keys at {}", revision),
                     shown(on.kept()
                             .load_session_at(other, revision, 0)
                             .value()
                             .value()
                             .scope.keys),
                     state_at(static_cast<int>(revision)));
    on.expect_same("revision 1", code_at(on, other, 1), "gone");
    on.expect_same("at its own first", ids_behind(on, third, 2), json::array());
    on.expect_same("damage", on.kept().check({}).value(), json::array());
  };
  compare();
  on.commit(trim_to(make, 5));
  compare();
  on.commit(make.remove(key));
  compare();
  on.reopen();
  compare();
  on.commit(make.remove(other));
  on.commit(make.remove(third));
  on.expect_same(
    "damage at the end", on.kept().check({}).value(), json::array());
}

// The trim is inside the past that a fork shares.
void a_fork_may_be_trimmed_before_its_beginning(run& on) {
  auto make = make_session(on, 4);
  on.commit({make.fork(other, key.id, 3, state_at(3), 1'000'003),
             make.append(other, {{"n", 9}})});
  on.commit(make.trim(other, 1, state_at(1), 1'000'001));
  const auto compare = [&] {
    on.expect_same(
      "events", ids_behind(on, other, 1), {"event-2", "event-3", "event-5"});
    on.expect_same("revision 0", code_at(on, other, 0), "gone");
    on.expect_same(
      "keys at 2",
      shown(on.kept().load_session_at(other, 2, 0).value().value().scope.keys),
      state_at(2));
    on.expect_same("damage", on.kept().check({}).value(), json::array());
  };
  compare();
  on.expect_same(
    "the parent's events", ids_behind(on, key, 0), ids_between(1, 4));
  on.commit(make.remove(key));
  compare();
  on.commit({make.fork(third, other.id, 4, {{"n", 9}, {"topic", "owls"}}),
             make.append(third)});
  on.expect_same("events of its fork",
                 ids_behind(on, third, 1),
                 {"event-2", "event-3", "event-5", "event-6"});
}

// The caller of a fork may not have seen a trim of the parent.
void a_fork_at_what_is_gone_begins_without_events(run& on) {
  auto make = make_session(on, 4);
  on.commit(trim_to(make, 3));
  on.commit({make.fork(other, key.id, 2, state_at(2)), make.append(other)});
  on.expect_same("events", ids_behind(on, other, 2), {"event-5"});
  on.expect_same(
    "the first revision", session_of(on, other)["first_revision"], 2);
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

// Several thousand events, so that a store has put them away in more than one
// place, and deletes them in more than one step.
void a_long_history_is_trimmed(run& on) {
  constexpr int event_count = 3'000;
  change_maker make;
  on.commit(make.create(key));
  const auto append_all = [&](int first) {
    for (int number = first; number < first + event_count;) {
      std::vector<store_change> changes;
      changes.reserve(500);
      for (int next = 0; next < 500; ++next)
        changes.push_back(
          make.append(key, {{"n", number++}, {"user:n", number}}));
      on.commit(changes);
    }
  };
  append_all(1);
  on.commit(make.trim(key, 2'500, {{"n", 2'500}}));
  append_all(event_count + 1);
  const auto compare = [&] {
    on.expect_same(
      "number of events", ids_behind(on, key, 2'500).size(), 3'500);
    for (const int revision : {2'500, 2'501, 2'900, 4'096, 6'000})
      on.expect_same(
        fmt::format("keys at {}", revision),
        shown(on.kept()
                .load_session_at(key, static_cast<std::uint64_t>(revision), 0)
                .value()
                .value()
                .scope.keys),
        {{"n", revision}});
    on.expect_same(
      "events by id",
      ids_of(on.kept()
               .find_events(
                 key, std::vector<std::string>{"event-2500", "event-2501"})
               .value()),
      {nullptr, "event-2501"});
    on.expect_same("damage", on.kept().check({}).value(), json::array());
  };
  compare();
  on.reopen();
  compare();
}

} // namespace

std::vector<conformance_check> trim_checks() {
#define TROUPE_CHECK(name, ...)                                                \
  make_check(#name, name, {trims __VA_OPT__(, ) __VA_ARGS__})
  using enum store_promise;
  return {
    TROUPE_CHECK(old_events_are_gone),
    TROUPE_CHECK(they_stay_gone_when_opened_again, lasting),
    TROUPE_CHECK(kept_revisions_load_as_they_were, revisions, lasting),
    TROUPE_CHECK(a_trim_may_reach_any_revision),
    TROUPE_CHECK(a_trim_without_its_session_is_moved),
    TROUPE_CHECK(an_id_that_is_gone_is_free_again),
    TROUPE_CHECK(a_trimmed_session_may_be_removed),
    TROUPE_CHECK(forks_keep_what_they_share, forks, revisions),
    TROUPE_CHECK(
      a_fork_of_a_trimmed_session_is_trimmed, forks, revisions, lasting),
    TROUPE_CHECK(a_fork_may_be_trimmed_before_its_beginning, forks, revisions),
    TROUPE_CHECK(a_fork_at_what_is_gone_begins_without_events, forks),
    TROUPE_CHECK(a_long_history_is_trimmed, revisions, lasting),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
