// Checks of the loads: which events and ids they return, and how many; and that
// no loss is reported.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::conformance {

namespace {

using namespace names;

json tail_of(const std::vector<json>& whole, std::size_t count) {
  auto tail = json::array();
  const auto first = whole.size() - std::min(count, whole.size());
  for (auto index = first; index < whole.size(); ++index)
    tail.push_back(whole[index]);
  return tail;
}

void a_session_loads_as_many_events_and_ids_as_asked(run& on) {
  constexpr int event_count = 10;
  change_maker make;
  on.commit(make.create(key));
  std::vector<json> ids;
  std::vector<json> hashes;
  for (int number = 1; number <= event_count; ++number) {
    auto change = make.append(key, {{"n", number}});
    ids.emplace_back(change.event->id);
    hashes.emplace_back(id_hash(change.event->id));
    on.commit(std::move(change));
  }
  const std::vector<std::size_t> counts
    = {0, 1, event_count - 1, event_count, event_count + 1, all};
  for (const auto events_max : counts)
    for (const auto ids_max : counts) {
      const auto what
        = fmt::format("events_max {}, ids_max {}", events_max, ids_max);
      const auto loaded
        = on.kept()
            .load_session(key, {.events_max = events_max, .ids_max = ids_max})
            .value();
      on.expect(what + ": the session", loaded.has_value());
      if (!loaded)
        continue;
      on.expect_same(
        what + ": events", ids_of(loaded->events), tail_of(ids, events_max));
      on.expect_same(
        what + ": hashes", loaded->id_hashes, tail_of(hashes, ids_max));
      on.expect_same(what + ": revision", loaded->scope.revision, event_count);
    }
}

void a_session_loads_what_came_after_a_number(run& on) {
  constexpr std::uint64_t event_count = 10;
  change_maker make;
  on.commit(make.create(key));
  std::vector<json> ids;
  std::vector<json> hashes;
  for (std::uint64_t number = 1; number <= event_count; ++number) {
    auto change = make.append(key, {{"n", number}});
    ids.emplace_back(change.event->id);
    hashes.emplace_back(id_hash(change.event->id));
    on.commit(std::move(change));
  }
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  for (const auto after :
       {std::uint64_t{1}, event_count - 1, event_count, event_count + 5, last})
    for (const auto most : {std::size_t{2}, all}) {
      const auto what = fmt::format("after {}, at most {}", after, most);
      const auto loaded
        = on.kept()
            .load_session(key,
                          {.events_max = most, .ids_max = most, .after = after})
            .value()
            .value();
      const auto count = std::min<std::size_t>(
        most, event_count - std::min(after, event_count));
      on.expect_same(
        what + ": events", ids_of(loaded.events), tail_of(ids, count));
      on.expect_same(
        what + ": hashes", loaded.id_hashes, tail_of(hashes, count));
      on.expect_same(what + ": revision", loaded.scope.revision, event_count);
      on.expect_same(what + ": the newest value",
                     shown(loaded.scope.keys),
                     json{{"n", event_count}});
    }
}

void ranges_of_events_are_cut_to_what_exists(run& on) {
  change_maker make;
  on.commit(make.create(key));
  for (int number = 1; number <= 10; ++number)
    on.commit(make.append(key));
  const auto max = std::numeric_limits<std::uint64_t>::max();
  const auto ids = [](int first, int last) {
    auto list = json::array();
    for (int number = first; number <= last; ++number)
      list.push_back(fmt::format("event-{}", number));
    return list;
  };

  struct range {
    std::uint64_t first;
    std::uint64_t last;
    json ids;
  };

  for (const auto& asked : {range{1, 10, ids(1, 10)},
                            range{1, 1, ids(1, 1)},
                            range{10, 10, ids(10, 10)},
                            range{3, 7, ids(3, 7)},
                            range{7, 99, ids(7, 10)},
                            range{11, 11, json::array()},
                            range{11, 99, json::array()},
                            range{7, 3, json::array()},
                            range{1, max, ids(1, 10)},
                            range{max, max, json::array()}})
    on.expect_same(
      fmt::format("events {} to {}", asked.first, asked.last),
      ids_of(on.kept().load_events(key, asked.first, asked.last).value()),
      asked.ids);
  on.expect_same(
    "events of an unknown session",
    shown(on.kept().load_events({"press", "ann", "none"}, 1, max).value()),
    json::array());
}

// Compares the answers of `load_session_at` with the states of each revision.
void expect_revisions(run& on, const std::vector<json>& states) {
  for (std::uint64_t revision = 0; revision < states.size(); ++revision) {
    const auto what = fmt::format("revision {}", revision);
    const auto past = on.kept().load_session_at(key, revision, 3).value();
    on.expect(what + ": the session", past.has_value());
    if (!past)
      continue;
    on.expect_same(what + ": keys", shown(past->scope.keys), states[revision]);
    on.expect_same(what, past->scope.revision, revision);
    on.expect_same(what + ": number of events",
                   past->events.size(),
                   std::min<std::uint64_t>(3, revision));
    if (!past->events.empty())
      on.expect_same(what + ": newest event",
                     past->events.back()->id,
                     fmt::format("event-{}", revision));
  }
  const auto beyond = on.kept().load_session_at(key, states.size(), 3);
  on.expect("a revision beyond the newest",
            !beyond && beyond.error().code() == errc::not_found);
}

void a_session_loads_as_it_was(run& on) {
  change_maker make;
  on.expect("a session that does not exist",
            !on.kept().load_session_at(key, 0, 1).value());
  on.commit(make.create(key, {{"made", true}, {"n", 0}}));
  on.commit(make.append(key, {{"n", 1}, {"list", {1, 2}}}));
  on.commit({make.append(key, {{"made", nullptr}}), make.append(key)});
  on.commit(make.append(key, {{"made", "again"}, {"n", nullptr}}));
  const json two = {{"n", 1}, {"list", {1, 2}}};
  expect_revisions(on,
                   {{{"made", true}, {"n", 0}},
                    {{"made", true}, {"n", 1}, {"list", {1, 2}}},
                    two,
                    two,
                    {{"made", "again"}, {"list", {1, 2}}}});
}

// Long enough for a store to keep states in between.
void a_long_session_loads_as_it_was(run& on) {
  constexpr int event_count = 2'000;
  change_maker make;
  on.commit(make.create(key, {{"made", true}}));
  std::vector<store_change> changes;
  for (int number = 1; number <= event_count; ++number) {
    changes.push_back(
      make.append(key, {{fmt::format("k{}", number % 7), number}}));
    if (changes.size() == 50)
      on.commit(std::exchange(changes, {}));
  }
  const auto expected = [](int revision) {
    json keys = {{"made", true}};
    for (int number = std::max(1, revision - 6); number <= revision; ++number)
      keys[fmt::format("k{}", number % 7)] = number;
    return keys;
  };
  const auto compare = [&] {
    for (const int revision :
         {0, 1, 6, 511, 512, 513, 1'023, 1'024, 1'537, 1'999, 2'000}) {
      const auto what = fmt::format("revision {}", revision);
      const auto past
        = on.kept()
            .load_session_at(key, static_cast<std::uint64_t>(revision), 1)
            .value();
      on.expect(what + ": the session", past.has_value());
      if (past)
        on.expect_same(
          what + ": keys", shown(past->scope.keys), expected(revision));
    }
  };
  compare();
  on.reopen();
  compare();
}

// A store without the history of users and apps returns nothing.
void a_session_has_the_shared_state_of_its_time(run& on) {
  const session_key other{key.app, key.user, "other"};
  change_maker make;
  on.commit(make.create(key, {{"user:n", 0}}));
  on.commit(make.create(other, {{"app:n", 10}}));
  on.commit(make.append(key, {{"user:n", 1}, {"app:m", true}}));
  on.commit({make.append(other, {{"user:n", 2}, {"app:n", nullptr}}),
             make.append(key, {{"n", 1}})});
  on.commit(make.append(other, {{"user:n", nullptr}}));
  const auto compare = [&on](const session_key& whose,
                             std::uint64_t revision,
                             const json& user,
                             const json& app) {
    const auto found = on.kept().load_shared_state_at(whose, revision).value();
    if (found)
      on.expect_same(fmt::format("{} at {}", to_string(whose), revision),
                     {shown(found->user), shown(found->app)},
                     {user, app});
  };
  const auto compare_all = [&] {
    const json none = json::object();
    compare(key, 0, {{"n", 0}}, none);
    compare(other, 0, {{"n", 0}}, {{"n", 10}});
    compare(key, 1, {{"n", 1}}, {{"n", 10}, {"m", true}});
    compare(other, 1, {{"n", 2}}, {{"m", true}});
    compare(key, 2, {{"n", 2}}, {{"m", true}});
    compare(other, 2, none, {{"m", true}});
    on.expect("a revision that is not there",
              !on.kept().load_shared_state_at(key, 3).value());
  };
  compare_all();
  on.reopen();
  compare_all();
}

void a_session_made_again_has_its_own_past(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"n", 1}}), make.append(key, {{"n", 2}})});
  on.commit(make.remove(key));
  on.expect("the past of a removed session",
            !on.kept().load_session_at(key, 0, 1).value());
  on.commit(make.create(key, {{"n", 3}}));
  on.expect_same(
    "keys at 0",
    shown(on.kept().load_session_at(key, 0, 1).value().value().scope.keys),
    {{"n", 3}});
  on.expect("revision 1 of the new session",
            !on.kept().load_session_at(key, 1, 1));
}

void the_last_update_is_the_newest_time(run& on) {
  change_maker make;
  on.commit(make.create(key, json::object(), -5'000'001));
  const auto time = [&on] {
    return on.kept()
      .load_session(key, {})
      .value()
      .value()
      .last_update_time.time_since_epoch()
      .count();
  };
  on.expect_same("before 1970", time(), -5'000'001);
  for (const auto& [next, expected] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{
         {-6'000'000, -5'000'001},
         {-5'000'000, -5'000'000},
         {1'763'712'345'678'901, 1'763'712'345'678'901},
         {1'763'712'345'678'900, 1'763'712'345'678'901},
         {0, 1'763'712'345'678'901},
         {253'402'300'798'999'999, 253'402'300'798'999'999}}) {
    on.commit(make.append(key, json::object(), next));
    on.expect_same(fmt::format("after {}", next), time(), expected);
  }
  on.commit({make.append(key, json::object(), 1),
             make.append(key, json::object(), 253'402'300'799'000'000),
             make.append(key, json::object(), 2)});
  on.expect_same("in one call", time(), 253'402'300'799'000'000);
}

void a_scope_may_have_ten_thousand_keys(run& on) {
  constexpr int key_count = 10'000;
  auto keys = json::object();
  for (int number = 0; number < key_count; ++number)
    keys[fmt::format("key-{}", number)] = number;
  change_maker make;
  on.commit(make.create(key));
  on.commit(make.write(app, keys));
  on.commit(make.write(owner_of(key), keys));
  json changed = {{"key-5000", "changed"}, {"key-1", nullptr}};
  on.commit(make.write(app, changed));
  on.commit(make.append(key, changed));
  keys["key-5000"] = "changed";
  keys.erase("key-1");
  on.expect_same("app",
                 shown(on.kept().load_scope(app).value()),
                 {{"keys", keys}, {"revision", 2}});
  on.expect_same(
    "session",
    shown(on.kept().load_session(key, {}).value().value().scope.keys),
    keys);
}

// Ids are bytes without a meaning.
std::vector<std::string> strange_ids() {
  return {"'",
          "\"quoted\"",
          "100%",
          "_",
          "a/b",
          "a",
          "A",
          "two\nlines",
          "\t",
          "' OR 1=1 --",
          "'; DROP TABLE events; --",
          "\\",
          "\\x27",
          "$1",
          "?1",
          ":name",
          "null",
          "0",
          "1",
          "01",
          "\x01\x1f\x7f",
          "ä",
          "a\xcc\x88", // Same letter, in two characters.
          "雪",
          "🦉",
          std::string(512, 'x'),
          std::string(511, 'x') + "y"};
}

void ids_may_hold_any_character(run& on) {
  const auto ids = strange_ids();
  change_maker make;
  std::vector<session_key> keys;
  for (const auto& id : ids)
    for (const auto& one :
         {session_key{id, "u", "s"}, {"a", id, "s"}, {"a", "u", id}})
      if (std::ranges::find(keys, one) == keys.end())
        keys.push_back(one);
  for (const auto& one : keys) {
    auto name = to_string(one);
    on.commit({make.create(one, {{"name", name}}),
               make.append(one, make_event("id of " + name, {{"n", 1}}))});
  }
  for (const auto& one : keys) {
    const auto name = to_string(one);
    const auto loaded = on.kept().load_session(one, {}).value();
    on.expect(name + ": the session", loaded.has_value());
    if (loaded)
      on.expect_same(
        name, shown(loaded->scope.keys), {{"n", 1}, {"name", name}});
    on.expect_same(name + ": events",
                   ids_of(on.kept().load_events(one, 1, 9).value()),
                   {"id of " + name});
  }
  for (const auto& id : ids) {
    auto query = query_of("a", all);
    query.user = id;
    on.expect_same(
      "rows of user " + id, on.kept().list(query).value().size(), 1);
    query.app = id;
    query.user = "u";
    on.expect_same("rows of app " + id,
                   on.kept().list(query).value().size(),
                   id == "a" ? ids.size() + 1 : 1);
  }
  for (const auto& one : keys)
    on.commit(make.remove(one));
  on.expect_same(
    "rows in the end", on.kept().list(query_of("a")).value().size(), 0);
}

void key_names_may_hold_any_character(run& on) {
  auto names = strange_ids();
  std::erase_if(names,
                [](const std::string& name) { return name.size() > 256; });
  for (const auto& more : {"a.b.c",
                           "a[0]",
                           "$.a",
                           "app:x",
                           "user:x",
                           " ",
                           " padded ",
                           "constructor",
                           "{}"})
    names.emplace_back(more);
  names.emplace_back(256, 'k');
  auto keys = json::object();
  for (const auto& name : names)
    keys[name] = "value of " + name;
  change_maker make;
  on.commit(make.create(key));
  on.commit(make.write(app, keys));
  on.expect_same("app",
                 shown(on.kept().load_scope(app).value()),
                 {{"keys", keys}, {"revision", 1}});
  auto erased = json::object();
  for (const auto& name : names)
    erased[name] = nullptr;
  on.commit(make.write(app, erased));
  on.expect_same("app after the erases",
                 shown(on.kept().load_scope(app).value()),
                 {{"keys", json::object()}, {"revision", 2}});
}

void scopes_do_not_mix(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"n", 1}, {"user:n", 2}, {"app:n", 3}}),
             make.create({"press", "press", "press"}, {{"n", 4}}),
             make.create({"press", "ann", "press"}, {{"user:m", 5}})});
  on.expect_same("app",
                 shown(on.kept().load_scope(app).value()),
                 {{"keys", {{"n", 3}}}, {"revision", 1}});
  on.expect_same("user",
                 shown(on.kept().load_scope({"press", "ann"}).value()),
                 {{"keys", {{"m", 5}, {"n", 2}}}, {"revision", 2}});
  on.expect_same("a user named as its app",
                 shown(on.kept().load_scope({"press", "press"}).value()),
                 {{"keys", json::object()}, {"revision", 0}});
}

// More events than any default loads.
void all_ids_of_a_long_session_load(run& on) {
  constexpr std::size_t event_count = 5'000;
  constexpr std::size_t events_at_once = 1'000;
  change_maker make;
  on.commit(make.create(key));
  std::vector<json> hashes;
  while (hashes.size() < event_count) {
    std::vector<store_change> changes;
    while (changes.size() < events_at_once) {
      changes.push_back(make.append(key));
      hashes.emplace_back(id_hash(changes.back().event->id));
    }
    on.commit(changes);
  }
  for (const auto ids_max : {std::size_t{4'096}, event_count - 1, all}) {
    const auto loaded
      = on.kept()
          .load_session(key, {.events_max = 1, .ids_max = ids_max})
          .value();
    on.expect_same(fmt::format("ids_max {}", ids_max),
                   loaded ? json(loaded->id_hashes) : json(),
                   tail_of(hashes, ids_max));
  }
}

// -- events by id ----

std::vector<event_ptr>
found(run& on, const session_key& in, const std::vector<std::string>& ids) {
  return on.kept().find_events(in, ids).value();
}

void events_are_found_by_their_ids(run& on) {
  constexpr int event_count = 200;
  change_maker make;
  on.commit(make.create(key));
  std::vector<event_ptr> said;
  for (int number = 0; number < event_count; ++number) {
    said.push_back(make_event(fmt::format("e{}", number), {{"n", number}}));
    on.commit(make.append(key, said.back()));
  }
  on.expect_same("no ids", found(on, key, {}).size(), 0);
  on.expect_same(
    "one id", shown(found(on, key, {"e0"})), shown(std::vector{said.front()}));
  on.expect_same("ids that no event has",
                 ids_of(found(on, key, {"", "e", "E0", "e200", "e0 "})),
                 std::vector<json>(5));
  on.expect_same("some of each, one of them twice",
                 shown(found(on, key, {"e199", "none", "e0", "e7", "e0"})),
                 shown(std::vector<event_ptr>{
                   said[199], nullptr, said[0], said[7], said[0]}));
  std::vector<std::string> ids;
  for (int number = event_count; number-- > 0;)
    ids.push_back(fmt::format("e{}", number));
  std::ranges::reverse(said);
  on.expect_same("all", shown(found(on, key, ids)), shown(said));
}

void ids_of_equal_hashes_are_told_apart(run& on) {
  const std::string one = "id-149599";
  const std::string other = "id-312382";
  on.expect_same("their hashes", id_hash(one), id_hash(other));
  change_maker make;
  on.commit({make.create(key), make.append(key, make_event(one))});
  on.expect_same("with the first of them",
                 ids_of(found(on, key, {other, one})),
                 {nullptr, one});
  on.commit({make.append(key), make.append(key, make_event(other))});
  on.expect_same("with both",
                 ids_of(found(on, key, {other, one, other})),
                 {other, one, other});
}

void ids_are_found_in_their_own_session_alone(run& on) {
  const session_key beside{"press", "ann", "s2"};
  const session_key elsewhere{"press", "bob", "s1"};
  change_maker make;
  const auto mine = make_event("same", {{"n", 1}});
  const auto theirs = make_event("same", {{"n", 2}});
  on.commit({make.create(key),
             make.create(beside),
             make.create(elsewhere),
             make.append(key, mine),
             make.append(beside, theirs),
             make.append(elsewhere, make_event("other"))});
  on.expect_same(
    "one session", shown(found(on, key, {"same"})), shown(std::vector{mine}));
  on.expect_same("the session beside it",
                 shown(found(on, beside, {"same"})),
                 shown(std::vector{theirs}));
  on.expect_same(
    "an id of another user", ids_of(found(on, key, {"other"})), {nullptr});
  on.expect_same("a session that does not exist",
                 ids_of(found(on, {"press", "ann", "none"}, {"same", "other"})),
                 {nullptr, nullptr});
}

void ids_go_with_their_session(run& on) {
  change_maker make;
  const auto before = make_event("same", {{"n", 1}});
  const auto behind = make_event("same", {{"n", 2}});
  on.commit({make.create(key), make.append(key, before), make.append(key)});
  on.commit(make.remove(key));
  on.expect_same("removed", ids_of(found(on, key, {"same"})), {nullptr});
  on.commit(make.create(key));
  on.expect_same("created again", ids_of(found(on, key, {"same"})), {nullptr});
  on.commit(make.append(key, behind));
  on.expect_same("with an event of that id",
                 shown(found(on, key, {"same", "event-1"})),
                 shown(std::vector<event_ptr>{behind, nullptr}));
  on.commit(make.remove_user("press", "ann"));
  on.expect_same(
    "with its user removed", ids_of(found(on, key, {"same"})), {nullptr});
}

void events_are_found_when_opened_again(run& on) {
  change_maker make;
  on.commit({make.create(key),
             make.append(key, make_event("first")),
             make.append(key, make_event("second"))});
  on.reopen();
  on.expect_same("ids",
                 ids_of(found(on, key, {"second", "none", "first"})),
                 {"second", nullptr, "first"});
}

// -- lost commits ----

void nothing_is_lost_while_all_is_kept(run& on) {
  change_maker make;
  const auto expect_none = [&on](std::string_view what) {
    const auto lost = on.kept().take_lost_history();
    on.expect_same(
      fmt::format("the warning {}", what), lost ? lost->warning : "", "");
  };
  expect_none("of an empty place");
  on.commit({make.create(key), make.append(key, {{"n", 1}, {"app:n", 1}})});
  expect_none("after a commit");
  on.expect_moved("a second creation", {make.create(key)}, {owner_of(key)});
  expect_none("after a refused commit");
  on.kept().changed_elsewhere().value();
  expect_none("after a query for other changes");
  on.commit(make.remove(key));
  expect_none("after a removal");
  on.commit(make.create(key));
  on.commit(make.remove_user("press", "ann"));
  expect_none("after the removal of a user");
}

void nothing_is_lost_beside_others(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit({make.create(key), make.append(key)});
  on.expect("another store commits",
            second->commit(std::vector{make.append(key)}).has_value());
  on.expect("another store looks", second->changed_elsewhere().has_value());
  on.kept().changed_elsewhere().value();
  on.commit(make.append(key));
  on.expect("lost commits", !on.kept().take_lost_history());
  on.expect("lost commits of the other", !second->take_lost_history());
  second->close().value();
}

} // namespace

std::vector<conformance_check> load_checks() {
#define TROUPE_CHECK(name, ...) make_check(#name, name, {__VA_ARGS__})
  using enum store_promise;
  return {
    TROUPE_CHECK(a_session_loads_as_many_events_and_ids_as_asked),
    TROUPE_CHECK(a_session_loads_what_came_after_a_number),
    TROUPE_CHECK(ranges_of_events_are_cut_to_what_exists),
    TROUPE_CHECK(a_session_loads_as_it_was, revisions),
    TROUPE_CHECK(a_long_session_loads_as_it_was, revisions, lasting),
    TROUPE_CHECK(a_session_has_the_shared_state_of_its_time),
    TROUPE_CHECK(a_session_made_again_has_its_own_past, revisions),
    TROUPE_CHECK(the_last_update_is_the_newest_time),
    TROUPE_CHECK(a_scope_may_have_ten_thousand_keys),
    TROUPE_CHECK(ids_may_hold_any_character),
    TROUPE_CHECK(key_names_may_hold_any_character),
    TROUPE_CHECK(scopes_do_not_mix),
    TROUPE_CHECK(all_ids_of_a_long_session_load),
    TROUPE_CHECK(events_are_found_by_their_ids),
    TROUPE_CHECK(ids_of_equal_hashes_are_told_apart),
    TROUPE_CHECK(ids_are_found_in_their_own_session_alone),
    TROUPE_CHECK(ids_go_with_their_session),
    TROUPE_CHECK(events_are_found_when_opened_again, lasting),
    TROUPE_CHECK(nothing_is_lost_while_all_is_kept),
    TROUPE_CHECK(nothing_is_lost_beside_others, shared),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
