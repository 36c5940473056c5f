// Checks of `store::list`, `list_by_name`, `list_users` and `list_apps`: order,
// filters, limits and pages.

#include "troupe/stores/conformance/run.hpp"
#include "troupe/stores/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace troupe::conformance {

namespace {

json keys_of(const std::vector<session_row>& rows) {
  auto list = json::array();
  for (const auto& row : rows)
    list.push_back(row.key.user + "/" + row.key.id);
  return list;
}

json keys_at(run& on, const row_query& query) {
  return keys_of(on.kept().list(query).value());
}

row_position position_of(const session_row& row) {
  return {row.last_update_time, row.key.user, row.key.id};
}

// Ann's session changes keys of all three scopes; bob's has none.
void commit_state_of_all_scopes(run& on) {
  change_maker make;
  const session_key key{"press", "ann", "s1"};
  on.commit({make.create(key, {{"a", 1}, {"user:b", 2}, {"app:c", 3}}, 1'000),
             make.create({"press", "bob", "s1"}, json::object(), 500)});
  on.commit(make.append(key, {{"a", 4}, {"app:c", nullptr}}, 2'000));
}

void rows_carry_the_state_of_all_three_scopes(run& on) {
  commit_state_of_all_scopes(on);
  on.expect_same("rows",
                 shown(on.kept().list(query_of("press")).value()),
                 {{{"key", {"press", "ann", "s1"}},
                   {"session", {{"a", 4}}},
                   {"user", {{"b", 2}}},
                   {"app", json::object()},
                   {"revision", 1},
                   {"last_update_time", 2'000}},
                  {{"key", {"press", "bob", "s1"}},
                   {"session", json::object()},
                   {"user", json::object()},
                   {"app", json::object()},
                   {"revision", 0},
                   {"last_update_time", 500}}});
}

void rows_come_newest_first_then_by_user_and_id(run& on) {
  change_maker make;
  on.commit({make.create({"press", "b", "x"}, json::object(), 5),
             make.create({"press", "a", "z"}, json::object(), 5),
             make.create({"press", "a", "y"}, json::object(), 5),
             make.create({"press", "a", "old"}, json::object(), -7),
             make.create({"press", "c", "new"}, json::object(), 9),
             // The order is that of the bytes, not of a language.
             make.create({"press", "a", "Z"}, json::object(), 5),
             make.create({"press", "a", "ä"}, json::object(), 5),
             make.create({"press", "B", "x"}, json::object(), 5),
             make.create({"radio", "a", "y"}, json::object(), 8)});
  const json sorted
    = {"c/new", "B/x", "a/Z", "a/y", "a/z", "a/ä", "b/x", "a/old"};
  on.expect_same("all users", keys_at(on, query_of("press")), sorted);
  auto query = query_of("press");
  query.user = "a";
  on.expect_same(
    "one user", keys_at(on, query), {"a/Z", "a/y", "a/z", "a/ä", "a/old"});
  query.user = "nobody";
  on.expect_same("an unknown user", keys_at(on, query), json::array());
  on.expect_same(
    "an unknown app", keys_at(on, query_of("none")), json::array());
  on.commit(make.append({"press", "a", "old"}, json::object(), 10));
  on.expect_same(
    "after an append", keys_at(on, query_of("press", 2)), {"a/old", "c/new"});
}

void a_limit_cuts_the_list(run& on) {
  change_maker make;
  for (int number = 0; number < 5; ++number)
    on.commit(make.create({"press", "ann", std::to_string(number)}));
  for (const std::size_t limit : {std::size_t{0},
                                  std::size_t{1},
                                  std::size_t{4},
                                  std::size_t{5},
                                  std::size_t{6},
                                  all})
    on.expect_same(fmt::format("limit {}", limit),
                   keys_at(on, query_of("press", limit)).size(),
                   std::min(limit, std::size_t{5}));
}

void pages_show_every_row_once(run& on) {
  change_maker make;
  std::vector<store_change> changes;
  changes.reserve(60);
  for (int number = 0; number < 60; ++number)
    changes.push_back(make.create(
      {"press", fmt::format("u{}", number * 7 % 5), fmt::format("s{}", number)},
      json::object(),
      number * 13 % 4 - 1));
  on.commit(changes);
  for (const auto& user :
       {std::optional<std::string>(), std::optional<std::string>("u2")}) {
    auto query = query_of("press", all);
    query.user = user;
    const auto whole = keys_at(on, query);
    on.expect_same("rows in one go", whole.size(), user ? 12 : 60);
    for (const std::size_t limit : {1U, 7U, 12U, 59U}) {
      auto paged = json::array();
      query.limit = limit;
      query.behind.reset();
      while (paged.size() <= whole.size()) {
        const auto page = on.kept().list(query).value();
        if (page.empty())
          break;
        for (const auto& shown_key : keys_of(page))
          paged.push_back(shown_key);
        query.behind = position_of(page.back());
      }
      on.expect_same(fmt::format("pages of {}", limit), paged, whole);
    }
  }
}

void a_position_need_not_be_that_of_a_row(run& on) {
  change_maker make;
  on.commit({make.create({"press", "a", "x"}, json::object(), 5),
             make.create({"press", "c", "x"}, json::object(), 5),
             make.create({"press", "c", "y"}, json::object(), 3)});
  const auto behind = [&on](std::int64_t time,
                            const std::string& user,
                            const std::string& session) {
    auto query = query_of("press");
    query.behind = row_position{microseconds(time), user, session};
    return keys_at(on, query);
  };
  on.expect_same("before all",
                 behind(std::numeric_limits<std::int64_t>::max(), "", ""),
                 {"a/x", "c/x", "c/y"});
  on.expect_same("between users", behind(5, "b", "z"), {"c/x", "c/y"});
  on.expect_same("between ids", behind(5, "a", "w"), {"a/x", "c/x", "c/y"});
  on.expect_same("between times", behind(4, "", ""), {"c/y"});
  on.expect_same("behind all",
                 behind(std::numeric_limits<std::int64_t>::min(), "z", "z"),
                 json::array());
}

void names_come_in_the_order_of_their_bytes(run& on) {
  change_maker make;
  on.commit({make.create({"press", "b", "x"}, json::object(), 5),
             make.create({"press", "a", "z"}, json::object(), 7),
             make.create({"press", "a", "y"}, json::object(), 3),
             make.create({"press", "a", "Z"}, json::object(), 5),
             make.create({"press", "a", "ä"}, json::object(), 9),
             make.create({"press", "B", "x"}, json::object(), 1),
             make.create({"press", "gone", "x"}, json::object(), 1),
             make.create({"radio", "a", "y"}, json::object(), 8)});
  on.commit(make.remove({"press", "gone", "x"}));
  const json sorted = {"B/x", "a/Z", "a/y", "a/z", "a/ä", "b/x"};
  const auto names_at = [&on](const name_query& query) {
    return keys_of(on.kept().list_by_name(query).value());
  };
  on.expect_same("all users", names_at({.app = "press"}), sorted);
  on.expect_same("one user",
                 names_at({.app = "press", .user = "a"}),
                 {"a/Z", "a/y", "a/z", "a/ä"});
  on.expect_same("an unknown app", names_at({.app = "none"}), json::array());
  on.commit(make.append({"press", "b", "x"}, json::object(), 10));
  on.expect_same("after an append", names_at({.app = "press"}), sorted);
  for (const std::size_t limit : {1U, 2U, 4U, 6U}) {
    auto paged = json::array();
    name_query query{.app = "press", .limit = limit};
    while (paged.size() <= sorted.size()) {
      const auto page = on.kept().list_by_name(query).value();
      if (page.empty())
        break;
      for (const auto& shown_key : keys_of(page))
        paged.push_back(shown_key);
      query.behind = page.back().key;
    }
    on.expect_same(fmt::format("pages of {}", limit), paged, sorted);
  }
}

void names_start_behind_any_key(run& on) {
  change_maker make;
  on.commit({make.create({"press", "a", "x"}),
             make.create({"press", "c", "x"}),
             make.create({"press", "c", "y"})});
  const auto behind = [&on](const std::optional<std::string>& asked,
                            const std::string& user,
                            const std::string& session) {
    return keys_of(
      on.kept()
        .list_by_name({.app = "press",
                       .user = asked,
                       .behind = session_key("press", user, session)})
        .value());
  };
  on.expect_same("between users", behind({}, "b", "z"), {"c/x", "c/y"});
  on.expect_same("between ids", behind({}, "c", "x1"), {"c/y"});
  on.expect_same("behind all", behind({}, "z", "z"), json::array());
  on.expect_same("a later user", behind("c", "a", "y"), {"c/x", "c/y"});
  on.expect_same("an earlier user", behind("a", "c", "a"), json::array());
}

void named_rows_are_those_of_a_list(run& on) {
  commit_state_of_all_scopes(on);
  on.expect_same("rows",
                 shown(on.kept().list_by_name({.app = "press"}).value()),
                 shown(on.kept().list(query_of("press")).value()));
}

// Reads the names that `list(limit, behind)` gives, page by page.
template <class List>
json paged(const List& list, std::size_t limit) {
  auto names = json::array();
  std::string behind;
  for (int pages = 0; pages < 100; ++pages) {
    const std::vector<std::string> page = list(limit, behind).value();
    if (page.empty())
      break;
    for (const auto& name : page)
      names.push_back(name);
    behind = page.back();
  }
  return names;
}

void users_come_in_the_order_of_their_bytes(run& on) {
  change_maker make;
  on.commit({make.create({"press", "b", "x"}),
             make.create({"press", "b", "y"}),
             make.create({"press", "ä", "x"}),
             make.create({"press", "a", "x"}),
             make.create({"press", "ab", "x"}),
             make.create({"press", "B", "x"}),
             make.create({"press", "gone", "x"}),
             make.create({"pres", "c", "x"}),
             make.create({"radio", "a", "y"})});
  on.commit(make.remove_user("press", "gone"));
  const auto users = [&on](std::size_t limit, const std::string& behind) {
    return on.kept().list_users({"press", limit, behind});
  };
  const json sorted = {"B", "a", "ab", "b", "ä"};
  for (const std::size_t limit : {std::size_t{1}, std::size_t{2}, all})
    on.expect_same(
      fmt::format("pages of {}", limit), paged(users, limit), sorted);
  on.expect_same(
    "no user", json(users(0, "").value()), json(std::vector<std::string>()));
  on.expect_same("behind no user", json(users(2, "aa").value()), {"ab", "b"});
  on.expect_same("an unknown app",
                 json(on.kept().list_users({"none"}).value()),
                 json::array());
  on.reopen();
  on.expect_same("after a restart", paged(users, all), sorted);
}

// The default of `list_users` finds only users with sessions. A store that
// finds apps finds all users, too.
void users_without_sessions_are_listed(run& on) {
  change_maker make;
  on.commit({make.create({"press", "ann", "s1"}),
             make.create({"press", "bob", "s1"}, {{"user:k", 1}}),
             make.create({"press", "dan", "s1"})});
  on.commit({make.remove({"press", "ann", "s1"}),
             make.remove({"press", "bob", "s1"}),
             make.write({"press", "cyd"}, {{"k", 1}})});
  const json users = on.kept().list_users({"press"}).value();
  if (on.kept().list_apps({}) || users != json::array({"dan"}))
    on.expect_same("users", users, {"ann", "bob", "cyd", "dan"});
}

void apps_come_in_the_order_of_their_bytes(run& on) {
  change_maker make;
  on.commit({make.create({"press", "ann", "x"}),
             make.create({"press", "bob", "x"}),
             make.create({"Press", "ann", "x"}),
             make.create({"press 2", "ann", "x"}),
             make.create({"ärger", "ann", "x"}),
             make.create({"kept", "ann", "x"}, {{"app:k", 1}}),
             make.create({"gone", "ann", "x"}, {{"app:k", 1}}),
             make.create({"gone 2", "ann", "x"})});
  const auto apps = [&on](std::size_t limit, const std::string& behind) {
    return on.kept().list_apps({limit, behind});
  };
  // The default of `list_apps`.
  if (const auto listed = apps(1, "");
      !listed && listed.error().code() == errc::invalid_argument)
    return;
  on.commit(make.write({"gone"}, {{"k", nullptr}}));
  on.commit({make.remove_user("gone", "ann"),
             make.remove_user("gone 2", "ann"),
             make.remove_user("kept", "ann")});
  const json sorted = {"Press", "kept", "press", "press 2", "ärger"};
  for (const std::size_t limit : {std::size_t{1}, std::size_t{2}, all})
    on.expect_same(
      fmt::format("pages of {}", limit), paged(apps, limit), sorted);
  on.expect_same(
    "no app", json(apps(0, "").value()), json(std::vector<std::string>()));
  on.expect_same(
    "behind no app", json(apps(2, "gone").value()), {"kept", "press"});
  on.reopen();
  on.expect_same("after a restart", paged(apps, all), sorted);
}

} // namespace

std::vector<conformance_check> list_checks() {
#define TROUPE_CHECK(name) make_check(#name, name)
  return {
    TROUPE_CHECK(rows_carry_the_state_of_all_three_scopes),
    TROUPE_CHECK(rows_come_newest_first_then_by_user_and_id),
    TROUPE_CHECK(a_limit_cuts_the_list),
    TROUPE_CHECK(pages_show_every_row_once),
    TROUPE_CHECK(a_position_need_not_be_that_of_a_row),
    TROUPE_CHECK(names_come_in_the_order_of_their_bytes),
    TROUPE_CHECK(names_start_behind_any_key),
    TROUPE_CHECK(named_rows_are_those_of_a_list),
    TROUPE_CHECK(users_come_in_the_order_of_their_bytes),
    TROUPE_CHECK(users_without_sessions_are_listed),
    TROUPE_CHECK(apps_come_in_the_order_of_their_bytes),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
