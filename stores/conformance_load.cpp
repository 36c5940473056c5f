// The checks of the loads: which events, which ids, and how much of them.

#include "troupe/stores/conformance_run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::conformance {

namespace {

const session_key key{"press", "ann", "s1"};
const owner_name app{"press"};

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
    ids.emplace_back(change.said->id);
    hashes.emplace_back(id_hash(change.said->id));
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

// As names of anything they are bytes without a meaning.
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
          "a\xcc\x88", // The same letter, in two characters.
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

} // namespace

std::vector<conformance_check> load_checks() {
#define TROUPE_CHECK(name) make_check(#name, name)
  return {
    TROUPE_CHECK(a_session_loads_as_many_events_and_ids_as_asked),
    TROUPE_CHECK(ranges_of_events_are_cut_to_what_exists),
    TROUPE_CHECK(the_last_update_is_the_newest_time),
    TROUPE_CHECK(a_scope_may_have_ten_thousand_keys),
    TROUPE_CHECK(ids_may_hold_any_character),
    TROUPE_CHECK(key_names_may_hold_any_character),
    TROUPE_CHECK(scopes_do_not_mix),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
