// Checks of removals: the data that goes and the data that stays.

#include "troupe/stores/conformance/run.hpp"

namespace troupe::conformance {

namespace {

using namespace names;

void what_a_removed_session_did_to_user_and_app_stays(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"user:created", 1}}),
             make.append(key, {{"a", 1}, {"user:n", 1}, {"app:n", 1}})});
  on.commit(make.remove(key));
  on.expect_same("session", session_of(on, key), nullptr);
  on.expect_same(
    "events", shown(on.kept().load_events(key, 1, 9).value()), json::array());
  on.expect_same(
    "list", shown(on.kept().list(query_of("press")).value()), json::array());
  on.expect_same(
    "user", scope_of(on, user), made_scope({{"created", 1}, {"n", 1}}, 2));
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 1}}, 1));
}

void a_session_that_is_created_again_starts_anew(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"old", 1}}, 9'000'000),
             make.append(key, {{"older", 1}}, 9'000'000),
             make.append(key)});
  on.commit(make.remove(key));
  on.commit(make.create(key, {{"new", 1}}, 1'000'000));
  on.expect_same("session",
                 session_of(on, key),
                 {{"scope", made_scope({{"new", 1}}, 0)},
                  {"last_update_time", 1'000'000},
                  {"events", json::array()},
                  {"id_hashes", json::array()}});
  const auto said = make_event("again", {{"n", 1}});
  on.commit(make.append(key, said));
  on.expect_same("its events",
                 shown(on.kept().load_events(key, 1, 9).value()),
                 shown(std::vector{said}));
}

// A store without such numbers gives 0 to all sessions.
void a_session_that_is_created_again_has_another_incarnation(run& on) {
  const auto incarnation
    = [&on] { return on.kept().load_session(key, {}).value()->incarnation; };
  change_maker make;
  on.commit(make.create(key));
  const auto first = incarnation();
  on.commit(make.append(key));
  on.expect_same("after an event", incarnation(), first);
  on.commit(make.remove(key));
  on.commit({make.create(key), make.create(other)});
  on.expect_same("is another one", incarnation() != first || first == 0, true);
}

void removing_a_session_leaves_the_others(run& on) {
  const session_key same_id{"press", "bob", "s1"};
  const session_key same_user{"radio", "ann", "s1"};
  change_maker make;
  on.commit({make.create(key),
             make.create(other, {{"a", 1}}),
             make.create(same_id, {{"b", 1}}),
             make.create(same_user, {{"c", 1}})});
  on.commit({make.append(other), make.append(same_id), make.append(same_user)});
  std::vector<json> before;
  for (const auto& kept : {other, same_id, same_user})
    before.push_back(session_of(on, kept));
  on.commit(make.remove(key));
  std::size_t index = 0;
  for (const auto& kept : {other, same_id, same_user})
    on.expect_same(to_string(kept), session_of(on, kept), before[index++]);
}

void a_removed_user_takes_its_sessions_along(run& on) {
  const session_key bobs{"press", "bob", "s1"};
  const session_key namesakes{"radio", "ann", "s1"};
  change_maker make;
  on.commit({make.create(key, {{"user:n", 1}, {"app:n", 1}}),
             make.append(key),
             make.create(other),
             make.create(bobs, {{"user:n", 2}}),
             make.create(namesakes, {{"user:n", 3}})});
  on.commit(make.remove_user("press", "ann"));
  on.expect_same("user", scope_of(on, user), nullptr);
  on.expect_same("session", session_of(on, key), nullptr);
  on.expect_same("its second session", session_of(on, other), nullptr);
  on.expect_same(
    "events", shown(on.kept().load_events(key, 1, 9).value()), json::array());
  on.expect_same("app", scope_of(on, app), made_scope({{"n", 1}}, 1));
  on.expect_same(
    "another user", scope_of(on, {"press", "bob"}), made_scope({{"n", 2}}, 1));
  on.expect_same("the same user of another app",
                 scope_of(on, {"radio", "ann"}),
                 made_scope({{"n", 3}}, 1));
  on.expect("the sessions of others",
            !session_of(on, bobs).is_null()
              && !session_of(on, namesakes).is_null());
  on.expect_same("rows", on.kept().list(query_of("press")).value().size(), 1);
  on.commit({make.create(key), make.append(key, {{"user:n", 9}})});
  on.expect_same(
    "the user, back again", scope_of(on, user), made_scope({{"n", 9}}, 1));
  on.expect_same("its session, back again",
                 ids_of(on.kept().load_events(key, 1, 9).value()),
                 {"event-2"});
}

void removing_an_unknown_user_changes_nothing(run& on) {
  change_maker make;
  on.commit(make.create(key, {{"user:n", 1}}));
  on.commit(make.remove_user("press", "nobody"));
  on.expect_same(
    "the unknown user", scope_of(on, {"press", "nobody"}), nullptr);
  on.expect_same("user", scope_of(on, user), made_scope({{"n", 1}}, 1));
}

void one_call_may_remove_a_user_and_bring_it_back(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"user:n", 1}}), make.create(other)});
  on.commit({make.append(key, {{"user:n", 2}}),
             make.remove_user("press", "ann"),
             make.create(other, {{"user:m", 1}}),
             make.append(other, {{"a", 1}})});
  on.expect_same("user", scope_of(on, user), made_scope({{"m", 1}}, 1));
  on.expect_same("the first session", session_of(on, key), nullptr);
  on.expect_same("the second session",
                 session_of(on, other).value("/scope"_json_pointer, json()),
                 made_scope({{"a", 1}}, 1));
  change_maker late;
  late.create(key);
  on.expect_moved("append behind the removal of its user in one call",
                  {late.remove_user("press", "ann"),
                   [&late] {
                     late.create(other);
                     late.append(other);
                     return late.append(other);
                   }()},
                  {owner_of(other)});
}

} // namespace

std::vector<conformance_check> removal_checks() {
#define TROUPE_CHECK(name) make_check(#name, name)
  return {
    TROUPE_CHECK(what_a_removed_session_did_to_user_and_app_stays),
    TROUPE_CHECK(a_session_that_is_created_again_starts_anew),
    TROUPE_CHECK(a_session_that_is_created_again_has_another_incarnation),
    TROUPE_CHECK(removing_a_session_leaves_the_others),
    TROUPE_CHECK(a_removed_user_takes_its_sessions_along),
    TROUPE_CHECK(removing_an_unknown_user_changes_nothing),
    TROUPE_CHECK(one_call_may_remove_a_user_and_bring_it_back),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
