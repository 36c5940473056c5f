// Checks of a place: reopened, opened twice, and read by many threads.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

#include <atomic>
#include <thread>

namespace troupe::conformance {

namespace {

using namespace names;

json everything(store& kept) {
  auto all_rows = shown(kept.list(query_of("press", all)).value());
  auto sessions = json::array();
  for (const auto& row : all_rows)
    sessions.push_back(shown(kept
                               .load_session({row["key"][0].get<std::string>(),
                                              row["key"][1].get<std::string>(),
                                              row["key"][2].get<std::string>()},
                                             {all, all})
                               .value()));
  return {{"rows", all_rows},
          {"sessions", sessions},
          {"user", shown(kept.load_scope(user).value())},
          {"app", shown(kept.load_scope(app).value())}};
}

void what_was_committed_is_there_when_opened_again(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"a", 1}, {"user:b", 2.5}}),
             make.create(other),
             make.append(other, {{"app:c", "雪"}}),
             make.create({"press", "bob", "s1"})});
  for (int number = 0; number < 50; ++number)
    on.commit(make.append(key, {{"n", number}, {"app:n", number}}));
  on.commit({make.remove(other), make.remove_user("press", "bob")});
  for (int round = 0; round < 2; ++round) {
    const auto before = everything(on.kept());
    on.reopen();
    on.expect_same("everything", everything(on.kept()), before);
    on.expect_same("the removed session",
                   shown(on.kept().load_session(other, {}).value()),
                   nullptr);
    on.expect_same("the removed user",
                   shown(on.kept().load_scope({"press", "bob"}).value()),
                   nullptr);
    on.commit(make.append(key, {{"user:round", round}, {"app:n", nullptr}}));
  }
  on.reopen();
  on.expect_same(
    "events", on.kept().load_events(key, 1, all).value().size(), 52);
}

void an_empty_place_opens_again(run& on) {
  on.reopen();
  on.reopen();
  change_maker make;
  on.commit(make.create(key));
  on.reopen();
  on.expect("the session", on.kept().load_session(key, {}).value().has_value());
}

// -- two stores on one place ----

void a_store_sees_what_another_has_committed(run& on) {
  const auto second = on.open();
  change_maker make;
  for (int number = 0; number < 10; ++number) {
    const session_key next{"press", "ann", std::to_string(number)};
    on.commit({make.create(next, {{"app:n", number}}),
               make.append(next, {{"user:n", number}, {"n", number}})});
    on.expect_same("everything", everything(*second), everything(on.kept()));
    const auto outcome
      = second->commit(std::vector{make.append(next, {{"app:n", -number}})})
          .value();
    on.expect_same("the moved owners", shown(outcome.moved), json::array());
    on.expect_same("everything, the other way round",
                   everything(on.kept()),
                   everything(*second));
    if (number % 3 == 2)
      on.commit(make.remove(next));
  }
  on.expect_same("the findings of the second",
                 second->check([](double) {}).value(),
                 json::array());
  second->close().value();
}

void the_second_of_two_writers_is_moved(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit({make.create(key), make.create(other)});
  auto late = make;
  on.commit(make.append(key, {{"app:n", 1}}));
  const auto outcome
    = second
        ->commit(std::vector{late.append(other, {{"user:n", 1}}),
                             late.append(other, {{"app:n", 1}})})
        .value();
  on.expect_same("the moved owners", shown(outcome.moved), shown({app}));
  on.expect_same("the user",
                 shown(second->load_scope(user).value()),
                 {{"keys", json::object()}, {"revision", 0}});
  change_maker again;
  const auto created = second->commit(std::vector{again.create(key)}).value();
  on.expect_same("the owners moved by a create",
                 shown(created.moved),
                 shown({owner_of(key)}));
  on.commit(make.remove(other));
  const auto appended = second
                          ->commit(std::vector{make.append(key),
                                               [&make] {
                                                 change_maker stale = make;
                                                 stale.create(other);
                                                 return stale.append(other);
                                               }()})
                          .value();
  on.expect_same("the owners moved by a removal",
                 shown(appended.moved),
                 shown({owner_of(other)}));
  second->close().value();
}

// The new owners reach the same revisions as the removed ones.
void what_others_have_made_again_has_moved_once(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit({make.create(key), make.append(key, {{"n", 1}, {"user:n", 1}})});
  auto old = make;
  second->changed_elsewhere().value();
  on.commit(make.remove_user(key.app, key.user));
  change_maker again;
  on.commit({again.create(key), again.append(key, {{"n", 2}, {"user:n", 2}})});
  const auto late = std::vector{old.append(key, {{"n", 3}, {"user:n", 3}})};
  on.expect_same("the owners removed in between",
                 shown(second->commit(late).value().moved),
                 shown({user, owner_of(key)}));
  on.expect_same("the owners moved after the report",
                 shown(second->commit(late).value().moved),
                 json::array());
  on.commit(again.remove(key));
  on.commit(again.create(key));
  second->changed_elsewhere().value();
  on.expect_same(
    "the owners reported before",
    shown(second->commit(std::vector{again.append(key)}).value().moved),
    json::array());
  second->close().value();
}

// Returns the reported changes by owner; a later report replaces an earlier
// one.
json told_by(store& asked) {
  auto told = json::object();
  for (const auto& changed : asked.changed_elsewhere().value())
    told[to_string(changed.owner)]
      = changed.revision ? json(*changed.revision) : json();
  return told;
}

void a_store_tells_what_others_have_changed(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit(make.create(key));
  told_by(on.kept());
  told_by(*second);
  on.expect_same("nothing has happened", told_by(*second), json::object());
  on.commit({make.append(key, {{"app:n", 1}}),
             make.append(key, {{"n", 1}}),
             make.write(user, {{"n", 1}})});
  on.expect_same("others",
                 told_by(*second),
                 {{"press", 1}, {"press/ann", 1}, {"press/ann/s1", 2}});
  on.expect_same("reported once", told_by(*second), json::object());
  on.expect_same("not its own changes", told_by(on.kept()), json::object());
  second->commit(std::vector{make.append(key, {{"user:n", 2}})}).value();
  on.expect_same("the other way round",
                 told_by(on.kept()),
                 {{"press/ann", 2}, {"press/ann/s1", 3}});
  on.expect_same("not the second's own", told_by(*second), json::object());
  on.commit(make.append(key));
  second->commit(std::vector{make.append(key)}).value();
  on.expect_same(
    "the newest of all stores", told_by(*second), {{"press/ann/s1", 5}});
  second->close().value();
}

void a_store_tells_what_others_have_removed(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit({make.create(key),
             make.create(other),
             make.create({"press", "bob", "b"}, {{"user:n", 1}})});
  told_by(*second);
  on.commit(make.remove(key));
  on.expect_same("a session", told_by(*second), {{"press/ann/s1", nullptr}});
  on.commit(make.remove_user("press", "bob"));
  on.expect_same("a user and its sessions",
                 told_by(*second),
                 {{"press/bob", nullptr}, {"press/bob/b", nullptr}});
  on.commit({make.remove(other), make.create(other), make.append(other)});
  on.expect_same(
    "a session that came back", told_by(*second), {{"press/ann/s2", 1}});
  second->close().value();
}

// -- threads ----

// Each append sets the same number in all three scopes: the session's revision.
void a_load_sees_all_of_a_change_or_none_of_it(run& on) {
  constexpr std::uint64_t append_count = 100;
  change_maker make;
  on.commit(make.create(key, {{"n", 0}, {"user:n", 0}, {"app:n", 0}}));
  std::atomic<std::uint64_t> committed = 0;
  const auto number_of = [](const state_map& keys) {
    const auto* found = keys.find("n");
    return found ? found->data() : json();
  };
  const auto read = [&] {
    const auto least = committed.load();
    const auto loaded = on.kept()
                          .load_session(key, {.events_max = 1, .ids_max = 1})
                          .value()
                          .value();
    const auto revision = loaded.scope.revision;
    on.expect("a load misses an earlier commit", revision >= least);
    on.expect_same("a session's key", number_of(loaded.scope.keys), revision);
    on.expect_same(
      "the newest event",
      loaded.events.empty() ? json() : json(loaded.events.back()->id),
      revision == 0 ? json() : json(fmt::format("event-{}", revision)));
    for (const auto& row : on.kept().list(query_of("press")).value()) {
      on.expect("a list misses an earlier commit", row.revision >= revision);
      on.expect_same(
        "the session of a row", number_of(row.session), row.revision);
      on.expect_same("the user of a row", number_of(row.user), row.revision);
      on.expect_same("the app of a row", number_of(row.app), row.revision);
    }
    const auto scope = on.kept().load_scope(user).value().value();
    on.expect_same("a user's key", number_of(scope.keys), scope.revision - 1);
  };
  std::vector<std::jthread> readers;
  readers.reserve(3);
  for (int thread = 0; thread < 3; ++thread)
    readers.emplace_back([&] {
      on.attempt([&] {
        while (committed < append_count)
          read();
      });
    });
  on.attempt([&] {
    while (committed < append_count) {
      const auto number = committed + 1;
      on.commit(make.append(
        key, {{"n", number}, {"user:n", number}, {"app:n", number}}));
      committed = number;
    }
  });
  committed = append_count; // Set after a failure too: the readers wait for it.
}

void progress_goes_up_to_one(run& on) {
  change_maker make;
  for (int number = 0; number < 20; ++number)
    on.commit(make.create({"press", "ann", std::to_string(number)}));
  double last = 0;
  bool rises = true;
  on.kept()
    .check([&](double done) {
      rises = rises && done >= last;
      last = done;
    })
    .value();
  on.expect("progress of check() rises", rises);
  on.expect_same("progress of check() in the end", last, 1.0);
}

} // namespace

std::vector<conformance_check> place_checks() {
#define TROUPE_CHECK(name, ...) make_check(#name, name, {__VA_ARGS__})
  using enum store_promise;
  return {
    TROUPE_CHECK(a_load_sees_all_of_a_change_or_none_of_it),
    TROUPE_CHECK(progress_goes_up_to_one),
    TROUPE_CHECK(an_empty_place_opens_again, lasting),
    TROUPE_CHECK(what_was_committed_is_there_when_opened_again, lasting),
    TROUPE_CHECK(a_store_sees_what_another_has_committed, shared),
    TROUPE_CHECK(the_second_of_two_writers_is_moved, shared),
    TROUPE_CHECK(what_others_have_made_again_has_moved_once, shared),
    TROUPE_CHECK(a_store_tells_what_others_have_changed, shared, told),
    TROUPE_CHECK(a_store_tells_what_others_have_removed, shared, told),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
