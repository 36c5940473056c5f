// Checks of forks: sessions that share the past of another session.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

namespace troupe::conformance {

namespace {

using namespace names;

const session_key third{"press", "ann", "s3"};

// The events `event-1` to `event-N`.
json numbered_ids(int count) {
  auto ids = json::array();
  for (int number = 1; number <= count; ++number)
    ids.push_back(fmt::format("event-{}", number));
  return ids;
}

// Creates `key` with this many events, which count in the key `n`.
change_maker make_parent(run& on, int count) {
  change_maker make;
  on.commit(make.create(key, {{"n", 0}, {"topic", "owls"}}));
  for (int number = 1; number <= count; ++number)
    on.commit(make.append(key, {{"n", number}}, 1'000'000 + number));
  return make;
}

store_change
fork_at(change_maker& make, const session_key& fork, int revision) {
  return make.fork(fork,
                   key.id,
                   static_cast<std::uint64_t>(revision),
                   {{"n", revision}, {"topic", "owls"}},
                   1'000'000 + revision);
}

json ids_in(run& on, const session_key& of) {
  return ids_of(on.kept().load_events(of, 1, all).value());
}

std::vector<event_ptr>
found(run& on, const session_key& in, const std::vector<std::string>& ids) {
  return on.kept().find_events(in, ids).value();
}

void a_fork_has_the_past_of_its_parent(run& on) {
  auto make = make_parent(on, 5);
  on.commit({fork_at(make, other, 3), make.append(other, {{"n", 30}})});
  on.commit(make.append(key, {{"n", 60}}));
  const auto fork
    = on.kept().load_session(other, {.events_max = 2, .ids_max = 3}).value();
  on.expect("the fork", fork.has_value());
  if (!fork)
    return;
  on.expect_same(
    "keys", shown(fork->scope.keys), {{"n", 30}, {"topic", "owls"}});
  on.expect_same("revision", fork->scope.revision, 4);
  on.expect_same(
    "its newest events", ids_of(fork->events), {"event-3", "event-6"});
  on.expect_same("hashes",
                 fork->id_hashes,
                 {id_hash("event-2"), id_hash("event-3"), id_hash("event-6")});
  on.expect_same("all events",
                 ids_in(on, other),
                 {"event-1", "event-2", "event-3", "event-6"});
  on.expect_same("a range over its beginning",
                 ids_of(on.kept().load_events(other, 2, 3).value()),
                 {"event-2", "event-3"});
  on.expect_same("the range of its own",
                 ids_of(on.kept().load_events(other, 4, 9).value()),
                 {"event-6"});
  on.expect_same("events by id",
                 ids_of(found(on, other, {"event-6", "event-4", "event-1"})),
                 {"event-6", nullptr, "event-1"});
  on.expect_same(
    "the parent's events",
    ids_in(on, key),
    {"event-1", "event-2", "event-3", "event-4", "event-5", "event-7"});
  on.expect_same("the parent's events by id",
                 ids_of(found(on, key, {"event-6", "event-7"})),
                 {nullptr, "event-7"});
  on.expect_same("rows", on.kept().list(query_of("press")).value().size(), 2);
}

void a_fork_begins_at_any_revision(run& on) {
  auto make = make_parent(on, 3);
  on.commit({fork_at(make, other, 0), fork_at(make, third, 3)});
  on.expect_same("events at 0", ids_in(on, other), json::array());
  on.expect_same("events at the newest", ids_in(on, third), numbered_ids(3));
  const auto at_0 = on.kept().load_session(other, {}).value().value();
  on.expect_same(
    "keys at 0", shown(at_0.scope.keys), {{"n", 0}, {"topic", "owls"}});
  on.expect_same("revision at 0", at_0.scope.revision, 0);
  on.commit({make.append(other), make.append(third)});
  on.expect_same("events after 0", ids_in(on, other), {"event-4"});
  on.expect_same("events after the newest",
                 ids_in(on, third),
                 {"event-1", "event-2", "event-3", "event-5"});
}

void a_fork_loads_as_its_parent_was(run& on) {
  auto make = make_parent(on, 5);
  on.commit({fork_at(make, other, 3), make.append(other, {{"n", 30}}, 5)});
  on.commit(make.append(key, {{"n", 60}}));
  const auto compare = [&] {
    for (int revision = 0; revision <= 4; ++revision) {
      const auto what = fmt::format("revision {}", revision);
      const auto past
        = on.kept()
            .load_session_at(other, static_cast<std::uint64_t>(revision), all)
            .value();
      on.expect(what + ": the fork", past.has_value());
      if (!past)
        continue;
      auto ids = numbered_ids(std::min(revision, 3));
      if (revision == 4)
        ids.push_back("event-6");
      on.expect_same(what + ": events", ids_of(past->events), ids);
      on.expect_same(what + ": keys",
                     shown(past->scope.keys),
                     {{"n", revision == 4 ? 30 : revision}, {"topic", "owls"}});
      on.expect_same(what + ": revision", past->scope.revision, revision);
      on.expect_same(what + ": time",
                     past->last_update_time.time_since_epoch().count(),
                     1'000'000 + std::min(revision, 3));
    }
    on.expect_same(
      "a few events",
      ids_of(on.kept().load_session_at(other, 4, 2).value().value().events),
      {"event-3", "event-6"});
    on.expect("revision 5", !on.kept().load_session_at(other, 5, 1));
  };
  compare();
  on.reopen();
  compare();
  on.commit(make.remove(key));
  compare();
}

void a_fork_may_be_forked(run& on) {
  auto make = make_parent(on, 4);
  on.commit({fork_at(make, other, 3), make.append(other)});
  // At its beginning, before it, and among its own events.
  const session_key at_beginning{"press", "ann", "s4"};
  const session_key before{"press", "ann", "s5"};
  on.commit({make.fork(third, other.id, 4),
             make.fork(at_beginning, other.id, 3),
             make.fork(before, other.id, 1)});
  on.commit(
    {make.append(third), make.append(at_beginning), make.append(before)});
  const auto compare = [&] {
    on.expect_same("among its own events",
                   ids_in(on, third),
                   {"event-1", "event-2", "event-3", "event-5", "event-6"});
    on.expect_same("at its beginning",
                   ids_in(on, at_beginning),
                   {"event-1", "event-2", "event-3", "event-7"});
    on.expect_same("before it", ids_in(on, before), {"event-1", "event-8"});
    on.expect_same("events by id",
                   ids_of(found(on, third, {"event-2", "event-5", "event-4"})),
                   {"event-2", "event-5", nullptr});
  };
  compare();
  on.commit({make.remove(other), make.remove(key)});
  compare();
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

// The parent is kept for its own past alone: it has no event of the fork.
void a_fork_that_begins_before_its_parent_outlives_it(run& on) {
  auto make = make_parent(on, 4);
  on.commit({fork_at(make, other, 3), make.fork(third, other.id, 2)});
  on.commit({make.append(third), make.remove(other), make.remove(key)});
  on.expect_same(
    "events", ids_in(on, third), {"event-1", "event-2", "event-5"});
  on.expect_same("events by id",
                 ids_of(found(on, third, {"event-2", "event-3"})),
                 {"event-2", nullptr});
  on.expect_same("damage", on.kept().check({}).value(), json::array());
  on.commit(make.remove(third));
  on.expect_same(
    "damage at the end", on.kept().check({}).value(), json::array());
}

void a_fork_outlives_its_parent(run& on) {
  auto make = make_parent(on, 5);
  on.commit({fork_at(make, other, 3), make.append(other)});
  on.commit(make.remove(key));
  on.expect_same("the parent", session_of(on, key), nullptr);
  on.expect_same("the parent's events", ids_in(on, key), json::array());
  const auto compare = [&] {
    on.expect_same("events",
                   ids_in(on, other),
                   {"event-1", "event-2", "event-3", "event-6"});
    on.expect_same("events by id",
                   ids_of(found(on, other, {"event-1", "event-4"})),
                   {"event-1", nullptr});
    on.expect_same("rows", on.kept().list(query_of("press")).value().size(), 1);
    on.expect_same("damage", on.kept().check({}).value(), json::array());
  };
  compare();
  on.commit({make.create(key, {{"n", -1}}), make.append(key)});
  on.expect_same("events of a new session", ids_in(on, key), {"event-7"});
  on.commit(make.remove(key));
  compare();
  on.commit(make.append(other));
  on.commit(make.remove(other));
  on.expect_same("the fork", session_of(on, other), nullptr);
  on.expect_same(
    "damage at the end", on.kept().check({}).value(), json::array());
}

void a_fork_outlives_its_parent_when_opened_again(run& on) {
  auto make = make_parent(on, 5);
  on.commit(fork_at(make, other, 3));
  on.reopen();
  on.commit(make.remove(key));
  on.reopen();
  on.expect_same("events", ids_in(on, other), numbered_ids(3));
  on.expect_same("damage", on.kept().check({}).value(), json::array());
  on.commit(make.remove(other));
  on.reopen();
  on.expect_same("rows", on.kept().list(query_of("press")).value().size(), 0);
  on.expect_same(
    "damage at the end", on.kept().check({}).value(), json::array());
}

void forks_go_with_their_user(run& on) {
  auto make = make_parent(on, 3);
  on.commit({fork_at(make, other, 2), make.fork(third, other.id, 1)});
  on.commit(make.remove(key));
  on.commit(make.remove_user("press", "ann"));
  on.expect_same("the fork", session_of(on, other), nullptr);
  on.expect_same("events", ids_in(on, third), json::array());
  on.expect_same("rows", on.kept().list(query_of("press")).value().size(), 0);
  on.expect_same("damage", on.kept().check({}).value(), json::array());
  on.commit({make.create(other), make.append(other)});
  on.expect_same("events of a new session", ids_in(on, other), {"event-4"});
}

void a_fork_of_what_is_not_there_is_moved(run& on) {
  auto make = make_parent(on, 3);
  auto lost = make;
  on.expect_moved("a fork of an unknown session",
                  {lost.fork(other, "none", 0)},
                  {{"press", "ann", "none"}});
  on.expect_moved(
    "a fork at a later revision", {lost.fork(other, key.id, 4)}, {session});
  on.expect_moved("a fork of a session that is removed before",
                  {lost.remove(key), lost.fork(other, key.id, 1)},
                  {session});
  on.expect_moved(
    "a fork under a used id", {lost.fork(key, key.id, 1)}, {session});
  on.expect_same("the fork", session_of(on, other), nullptr);
  on.commit({make.append(key), make.fork(other, key.id, 4)});
  on.expect_same(
    "at an event of the same call", ids_in(on, other), numbered_ids(4));
}

void a_fork_of_another_incarnation_is_moved(run& on) {
  auto make = make_parent(on, 3);
  const auto incarnation
    = on.kept().load_session(key, {}).value().value().incarnation;
  if (incarnation == 0)
    return;
  auto right = fork_at(make, other, 2);
  right.past->incarnation = incarnation;
  on.commit(std::move(right));
  on.commit(make.remove(key));
  on.commit({make.create(key), make.append(key), make.append(key)});
  auto late = make.fork(third, key.id, 2);
  late.past->incarnation = incarnation;
  on.expect_moved("a fork of the removed session", {late}, {session});
  on.expect_moved("the same, removed and created again in the same call",
                  {make.remove(key),
                   make.create(key),
                   [&] {
                     auto again = make.fork(third, key.id, 0);
                     again.past->incarnation = incarnation;
                     return again;
                   }()},
                  {session});
  on.expect_same("the fork", session_of(on, third), nullptr);
}

void one_call_may_fork_and_remove_the_parent(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"n", 1}}),
             make.append(key, {{"user:n", 1}}),
             make.append(key),
             make.fork(other, key.id, 1, {{"n", 1}}),
             make.remove(key),
             make.append(other)});
  on.expect_same("the parent", session_of(on, key), nullptr);
  on.expect_same("events", ids_in(on, other), {"event-1", "event-3"});
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 1}}, 1));
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

void a_past_may_have_writes(run& on) {
  change_maker make;
  on.commit({make.create(key), make.append(key)});
  on.commit(make.write(session, {{"w", 1}}));
  on.commit({make.append(key), make.write(session, {{"w", 2}})});
  on.commit({make.fork(other, key.id, 4, {{"w", 2}}), make.append(other)});
  on.expect_same(
    "events", ids_in(on, other), {"event-1", "event-2", "event-3"});
  const auto fork
    = on.kept().load_session(other, {.events_max = 2, .ids_max = all}).value();
  on.expect_same(
    "its newest events", ids_of(fork->events), {"event-2", "event-3"});
  on.expect_same("number of hashes", fork->id_hashes.size(), 3);
  for (const auto after : {1U, 2U, 3U, 4U, 5U}) {
    const auto newer
      = on.kept()
          .load_session(other,
                        {.events_max = all, .ids_max = all, .after = after})
          .value();
    const auto count = after < 3 ? 2U : after < 5 ? 1U : 0U;
    on.expect_same(fmt::format("number of events after {}", after),
                   newer->events.size(),
                   count);
    on.expect_same(fmt::format("number of hashes after {}", after),
                   newer->id_hashes.size(),
                   count);
  }
}

// Several thousand events, so that a store has put them away in more than one
// place.
void a_long_past_is_shared(run& on) {
  constexpr int event_count = 3'000;
  change_maker make;
  on.commit(make.create(key));
  for (int number = 0; number < event_count;) {
    std::vector<store_change> changes;
    changes.reserve(500);
    for (int next = 0; next < 500; ++next)
      changes.push_back(make.append(key, {{"n", ++number}}));
    on.commit(changes);
  }
  on.commit({make.fork(other, key.id, 2'900, {{"n", 2'900}}),
             make.append(other, {{"n", 0}})});
  const auto compare = [&] {
    on.expect_same("number of events", ids_in(on, other).size(), 2'901);
    on.expect_same(
      "events by id",
      ids_of(found(on, other, {"event-1", "event-2901", "event-2900"})),
      {"event-1", nullptr, "event-2900"});
    for (const int revision : {1, 511, 1'024, 2'100, 2'899, 2'900})
      on.expect_same(
        fmt::format("keys at {}", revision),
        shown(on.kept()
                .load_session_at(other, static_cast<std::uint64_t>(revision), 0)
                .value()
                .value()
                .scope.keys),
        {{"n", revision}});
  };
  compare();
  on.reopen();
  on.commit(make.remove(key));
  compare();
  on.reopen();
  compare();
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

} // namespace

std::vector<conformance_check> fork_checks() {
#define TROUPE_CHECK(name, ...)                                                \
  make_check(#name, name, {forks __VA_OPT__(, ) __VA_ARGS__})
  using enum store_promise;
  return {
    TROUPE_CHECK(a_fork_has_the_past_of_its_parent),
    TROUPE_CHECK(a_fork_begins_at_any_revision),
    TROUPE_CHECK(a_fork_loads_as_its_parent_was, revisions, lasting),
    TROUPE_CHECK(a_fork_may_be_forked),
    TROUPE_CHECK(a_fork_that_begins_before_its_parent_outlives_it),
    TROUPE_CHECK(a_fork_outlives_its_parent),
    TROUPE_CHECK(a_fork_outlives_its_parent_when_opened_again, lasting),
    TROUPE_CHECK(forks_go_with_their_user),
    TROUPE_CHECK(a_fork_of_what_is_not_there_is_moved),
    TROUPE_CHECK(a_fork_of_another_incarnation_is_moved),
    TROUPE_CHECK(one_call_may_fork_and_remove_the_parent),
    TROUPE_CHECK(a_past_may_have_writes),
    TROUPE_CHECK(a_long_past_is_shared, revisions, lasting),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
