// Checks of `store::commit`: the data that it writes and the owners that it
// names as moved.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

namespace troupe::conformance {

namespace {

using namespace names;

void an_empty_place_holds_nothing(run& on) {
  on.expect_same("app", scope_of(on, app), nullptr);
  on.expect_same("user", scope_of(on, user), nullptr);
  on.expect_same("session", session_of(on, key), nullptr);
  on.expect_same(
    "events", shown(on.kept().load_events(key, 1, 10).value()), json::array());
  on.expect_same(
    "list", shown(on.kept().list(query_of("press")).value()), json::array());
  on.commit(std::vector<store_change>());
}

void a_new_session_is_at_revision_0_with_its_state(run& on) {
  change_maker make;
  on.commit(make.create(key, {{"topic", "owls"}}, 7'000'001));
  on.expect_same("session",
                 session_of(on, key),
                 {{"scope", made_scope({{"topic", "owls"}}, 0)},
                  {"last_update_time", 7'000'001},
                  {"events", json::array()},
                  {"id_hashes", json::array()}});
  on.expect_same("user", scope_of(on, user), made_scope(json::object(), 0));
  on.expect_same("app", scope_of(on, app), made_scope(json::object(), 0));
  on.commit(make.create(other));
  on.expect_same("a session without state",
                 session_of(on, other).value("/scope"_json_pointer, json()),
                 made_scope(json::object(), 0));
}

void initial_state_reaches_user_and_app(run& on) {
  change_maker make;
  on.commit(make.create(
    key, {{"topic", "owls"}, {"user:name", "Ann"}, {"app:theme", "dark"}}));
  on.expect_same("session",
                 session_of(on, key).value("/scope"_json_pointer, json()),
                 made_scope({{"topic", "owls"}}, 0));
  on.expect_same("user", scope_of(on, user), made_scope({{"name", "Ann"}}, 1));
  on.expect_same("app", scope_of(on, app), made_scope({{"theme", "dark"}}, 1));
  on.commit(make.create(other, {{"user:name", nullptr}, {"app:n", 1}}));
  on.expect_same(
    "user after an erase", scope_of(on, user), made_scope(json::object(), 2));
  on.expect_same("app after a second session",
                 scope_of(on, app),
                 made_scope({{"n", 1}, {"theme", "dark"}}, 2));
}

void an_append_writes_each_scope_that_it_touches(run& on) {
  change_maker make;
  on.commit(make.create(key, {{"gone", 1}}));
  const auto first
    = make.append(key, {{"a", 1}, {"gone", nullptr}, {"user:b", {1, nullptr}}});
  const auto second = make.append(key, {{"app:c", {{"d", nullptr}}}});
  on.commit(first);
  on.commit(second);
  on.expect_same(
    "session",
    session_of(on, key),
    {{"scope", made_scope({{"a", 1}}, 2)},
     {"last_update_time", 1'000'000},
     {"events", shown(std::vector{first.event, second.event})},
     {"id_hashes", {id_hash(first.event->id), id_hash(second.event->id)}}});
  on.expect_same(
    "user", scope_of(on, user), made_scope({{"b", {1, nullptr}}}, 1));
  on.expect_same(
    "app", scope_of(on, app), made_scope({{"c", {{"d", nullptr}}}}, 1));
}

void a_write_changes_its_owner_alone(run& on) {
  change_maker make;
  on.commit(make.create(key, {{"user:n", 1}, {"app:n", 1}}));
  on.commit(make.write(user, {{"n", 2}, {"more", true}}));
  on.commit(make.write(app, {{"n", nullptr}}));
  on.expect_same(
    "user", scope_of(on, user), made_scope({{"more", true}, {"n", 2}}, 2));
  on.expect_same("app", scope_of(on, app), made_scope(json::object(), 2));
  on.expect_same("session",
                 session_of(on, key).value("/scope"_json_pointer, json()),
                 made_scope(json::object(), 0));
  on.commit(make.write({"press", "bob"}, {{"n", 1}}));
  on.expect_same("a user that did not exist",
                 scope_of(on, {"press", "bob"}),
                 made_scope({{"n", 1}}, 1));
  on.commit(make.write({"radio"}, {{"n", 1}}));
  on.expect_same("an app that did not exist",
                 scope_of(on, {"radio"}),
                 made_scope({{"n", 1}}, 1));
}

// The runtime keeps the ids of writes in keys that users cannot write.
void a_write_may_have_reserved_keys(run& on) {
  change_maker make;
  const json id{{"id", "w"}, {"value", nullptr}};
  for (const auto& owner : {app, user}) {
    on.commit(make.write(owner, {{"n", 1}, {"__write/0", id}}));
    on.commit(make.write(owner, {{"n", nullptr}, {"__write/63", id}}));
    on.expect_same("keys",
                   scope_of(on, owner),
                   made_scope({{"__write/0", id}, {"__write/63", id}}, 2));
  }
}

// The revision of the write stays without an event.
void a_write_to_a_session_is_a_revision_without_an_event(run& on) {
  change_maker make;
  on.commit(make.create(key, {{"n", 0}}, 1'000));
  const auto first = make.append(key, {{"n", 1}}, 2'000);
  const auto written = make.write(session, {{"n", 2}, {"w", 1}}, 5'000);
  const auto last = make.append(key, {{"n", 3}}, 3'000);
  on.commit({first, written, last});
  on.expect_same(
    "session",
    session_of(on, key),
    {{"scope", made_scope({{"n", 3}, {"w", 1}}, 3)},
     {"last_update_time", 5'000},
     {"events", shown(std::vector{first.event, last.event})},
     {"id_hashes", {id_hash(first.event->id), id_hash(last.event->id)}}});
  const auto load = [&on](std::uint64_t from, std::uint64_t to) {
    return ids_of(on.kept().load_events(key, from, to).value());
  };
  on.expect_same("event 1", load(1, 1), {first.event->id});
  on.expect_same("event 2", load(2, 2), json::array());
  on.expect_same("event 3", load(3, 3), {last.event->id});
  on.expect_moved("append on the revision before a write",
                  {[] {
                    change_maker stale;
                    stale.create(key);
                    stale.append(key);
                    return stale.append(key);
                  }()},
                  {session});
}

void changes_of_one_call_build_on_each_other(run& on) {
  change_maker make;
  std::vector<store_change> changes = {make.create(key)};
  for (int number = 1; number <= 100; ++number)
    changes.push_back(make.append(key,
                                  {{"n", number},
                                   {fmt::format("k{}", number % 7), number},
                                   {"user:n", number},
                                   {"app:n", number}}));
  on.commit(changes);
  std::vector<event_ptr> said;
  for (const auto& change : changes)
    if (change.kind == change_kind::append)
      said.push_back(change.event);
  on.expect_same(
    "events", shown(on.kept().load_events(key, 1, 100).value()), shown(said));
  const auto loaded = session_of(on, key);
  on.expect_same(
    "revision", loaded.value("/scope/revision"_json_pointer, json()), 100);
  on.expect_same("a key of the session",
                 loaded.value("/scope/keys/k3"_json_pointer, json()),
                 94);
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 100}}, 100));
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 100}}, 100));
}

void one_call_may_create_remove_and_create_again(run& on) {
  change_maker make;
  std::vector<store_change> changes;
  for (int round = 1; round <= 3; ++round) {
    changes.push_back(make.create(key, {{"round", round}}));
    changes.push_back(make.append(key, {{"app:n", round}}));
    if (round < 3)
      changes.push_back(make.remove(key));
  }
  changes.push_back(make.append(key, {{"last", true}}));
  on.commit(changes);
  on.expect_same("session",
                 session_of(on, key).value("/scope"_json_pointer, json()),
                 made_scope({{"last", true}, {"round", 3}}, 2));
  on.expect_same("events",
                 ids_of(on.kept().load_events(key, 1, 9).value()),
                 {"event-3", "event-4"});
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 3}}, 3));
}

void sessions_share_the_revisions_of_their_user_and_app(run& on) {
  change_maker make;
  on.commit({make.create(key),
             make.create(other),
             make.create({"press", "bob", "s1"})});
  on.commit(
    {make.append(key, {{"user:n", 1}, {"app:n", 1}}),
     make.append(other, {{"user:n", 2}, {"app:n", 2}}),
     make.append({"press", "bob", "s1"}, {{"user:n", 3}, {"app:n", 3}})});
  on.expect_same("ann", scope_of(on, user), made_scope({{"n", 2}}, 2));
  on.expect_same(
    "bob", scope_of(on, {"press", "bob"}), made_scope({{"n", 3}}, 1));
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 3}}, 3));
}

// -- moved ----

void a_change_that_does_not_build_on_what_is_stored_is_moved(run& on) {
  change_maker make;
  on.commit(
    {make.create(key), make.append(key, {{"user:n", 1}, {"app:n", 1}})});
  const auto before = session_of(on, key);
  const auto touching = [](std::uint64_t session_revision,
                           std::optional<std::uint64_t> user_revision,
                           std::optional<std::uint64_t> app_revision) {
    auto state = json::object({{"x", 1}});
    if (user_revision)
      state["user:x"] = 1;
    if (app_revision)
      state["app:x"] = 1;
    store_change made;
    made.owner = session;
    made.event = make_event("stale", state);
    made.session_revision = session_revision;
    made.user_revision = user_revision;
    made.app_revision = app_revision;
    return std::vector{made};
  };
  on.expect_moved("session behind", touching(1, 2, 2), {session});
  on.expect_moved("session ahead", touching(3, 2, 2), {session});
  on.expect_moved("user behind", touching(2, 1, 2), {user});
  on.expect_moved("user ahead", touching(2, 3, 2), {user});
  on.expect_moved("app behind", touching(2, 2, 1), {app});
  on.expect_moved("app ahead", touching(2, {}, 3), {app});
  on.expect_moved("session and app", touching(1, 2, 3), {session, app});
  on.expect_moved("all", touching(9, 9, 9), {session, user, app});
  on.expect_same("session", session_of(on, key), before);
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 1}}, 1));
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 1}}, 1));
  on.commit(touching(2, 2, 2));
}

void a_stale_write_is_moved(run& on) {
  change_maker make;
  on.commit(
    {make.create(key), make.append(key, {{"user:n", 1}, {"app:n", 1}})});
  for (const auto& owner : {session, user, app}) {
    change_maker stale;
    on.expect_moved(
      to_string(owner), {stale.write(owner, {{"n", 0}})}, {owner});
  }
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 1}}, 1));
  change_maker ahead;
  ahead.write({"radio"}, {{"n", 1}});
  on.expect_moved("an app that does not exist",
                  {ahead.write({"radio"}, {{"n", 2}})},
                  {{"radio"}});
  on.expect_same("the app", scope_of(on, {"radio"}), nullptr);
}

void create_of_an_existing_session_is_moved(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"a", 1}}), make.append(key)});
  change_maker again;
  on.expect_moved("create", {again.create(key, {{"b", 2}})}, {session});
  on.expect_same("session",
                 session_of(on, key).value("/scope"_json_pointer, json()),
                 made_scope({{"a", 1}}, 1));
  change_maker twice;
  on.expect_moved("create twice in one call",
                  {twice.create(other), twice.create(other)},
                  {owner_of(other)});
  on.expect_same("the other session", session_of(on, other), nullptr);
}

void what_needs_a_session_that_does_not_exist_is_moved(run& on) {
  change_maker make;
  on.expect_moved("append", {make.append(key)}, {session});
  change_maker writer;
  on.expect_moved("write", {writer.write(session, {{"a", 1}})}, {session});
  on.expect_moved("remove", {make.remove(key)}, {session});
  change_maker twice;
  on.commit(twice.create(key));
  on.expect_moved("remove twice in one call",
                  {twice.remove(key), twice.remove(key)},
                  {session});
  on.expect("the session is still there", !session_of(on, key).is_null());
  on.expect_same("app", scope_of(on, app), made_scope(json::object(), 0));
}

void a_removal_may_need_a_revision(run& on) {
  change_maker make;
  on.commit(make.create(key));
  on.commit(make.append(key));
  const auto removal_at = [](std::uint64_t revision) {
    auto made = change_maker().remove(key);
    made.session_revision = revision + 1;
    return made;
  };
  on.expect_moved("an earlier revision", {removal_at(0)}, {session});
  on.expect_moved("a later revision", {removal_at(2)}, {session});
  on.expect_moved(
    "an append in the same call", {make.append(key), removal_at(1)}, {session});
  on.expect("the session is still there", !session_of(on, key).is_null());
  change_maker again;
  again.create(key);
  again.append(key);
  on.commit({again.append(key), removal_at(2)});
  on.expect("the session is gone", session_of(on, key).is_null());
  on.expect_moved("a session that does not exist", {removal_at(2)}, {session});
}

void a_moved_change_leaves_nothing_of_the_others(run& on) {
  change_maker make;
  on.commit({make.create(key), make.create({"press", "bob", "b"})});
  const auto list = shown(on.kept().list(query_of("press")).value());
  change_maker stale;
  const auto behind = stale.write(user, {{"n", 1}});
  on.commit(make.write(user, {{"n", 5}}));
  on.expect_moved("in the middle",
                  {make.create(other, {{"app:n", 1}}),
                   make.append(key, {{"a", 1}}),
                   behind,
                   make.append(key, {{"app:n", 2}}),
                   make.remove({"press", "bob", "b"}),
                   make.write({"radio"}, {{"n", 1}})},
                  {user});
  on.expect_same("a new session", session_of(on, other), nullptr);
  on.expect_same("app", scope_of(on, app), made_scope(json::object(), 0));
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 5}}, 1));
  on.expect_same("another app", scope_of(on, {"radio"}), nullptr);
  on.expect_same(
    "events", shown(on.kept().load_events(key, 1, 9).value()), json::array());
  auto after = shown(on.kept().list(query_of("press")).value());
  for (auto& row : after)
    if (row["key"][1] == "ann")
      row["user"] = json::object();
  on.expect_same("the list", after, list);
}

// A caller that commits a group learns from one answer which owners to load
// again.
void all_owners_that_have_moved_are_named_once(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"app:n", 1}}), make.create(other)});
  on.commit(make.append(other));
  change_maker stale;
  stale.create(key);
  stale.create(other);
  const session_key unknown{"press", "bob", "none"};
  on.expect_moved("a group",
                  {stale.append(key, {{"app:n", 2}, {"user:n", 1}}),
                   stale.append(key, {{"app:n", 3}, {"user:n", 2}}),
                   stale.append(other),
                   stale.append(other),
                   stale.remove(unknown)},
                  {app, owner_of(other), owner_of(unknown)});
}

} // namespace

std::vector<conformance_check> commit_checks() {
#define TROUPE_CHECK(name) make_check(#name, name)
  return {
    TROUPE_CHECK(an_empty_place_holds_nothing),
    TROUPE_CHECK(a_new_session_is_at_revision_0_with_its_state),
    TROUPE_CHECK(initial_state_reaches_user_and_app),
    TROUPE_CHECK(an_append_writes_each_scope_that_it_touches),
    TROUPE_CHECK(a_write_changes_its_owner_alone),
    TROUPE_CHECK(a_write_may_have_reserved_keys),
    TROUPE_CHECK(a_write_to_a_session_is_a_revision_without_an_event),
    TROUPE_CHECK(changes_of_one_call_build_on_each_other),
    TROUPE_CHECK(one_call_may_create_remove_and_create_again),
    TROUPE_CHECK(sessions_share_the_revisions_of_their_user_and_app),
    TROUPE_CHECK(a_change_that_does_not_build_on_what_is_stored_is_moved),
    TROUPE_CHECK(a_stale_write_is_moved),
    TROUPE_CHECK(create_of_an_existing_session_is_moved),
    TROUPE_CHECK(what_needs_a_session_that_does_not_exist_is_moved),
    TROUPE_CHECK(a_removal_may_need_a_revision),
    make_check("a_moved_change_leaves_nothing_of_the_others",
               a_moved_change_leaves_nothing_of_the_others,
               {store_promise::mixed_apps}),
    TROUPE_CHECK(all_owners_that_have_moved_are_named_once),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
