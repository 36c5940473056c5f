// Checks of open runs: marks of changes open and close them, and holders give
// signs of life.

#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::conformance {

namespace {

using namespace names;

const std::string first_holder = "holder-1";
const std::string other_holder = "holder-2";

run_mark opening(std::string id,
                 std::string holder = first_holder,
                 std::string agent = "writer") {
  return {std::move(id), std::move(agent), std::move(holder)};
}

run_mark closing(std::string id, std::string holder = {}) {
  return {.invocation_id = std::move(id),
          .holder = std::move(holder),
          .opens = false};
}

store_change marked(store_change change, std::vector<run_mark> marks) {
  change.runs = std::move(marks);
  return change;
}

store_change close_of(const session_key& of, std::vector<run_mark> marks) {
  store_change made;
  made.kind = change_kind::close_runs;
  made.owner = owner_of(of);
  made.runs = std::move(marks);
  return made;
}

// "app/user/session id agent holder" of each run.
json lines_of(const std::vector<open_run>& runs) {
  auto shown = json::array();
  for (const auto& each : runs)
    shown.push_back(fmt::format("{} {} {} {}",
                                to_string(each.key),
                                each.invocation_id,
                                each.agent,
                                each.holder));
  return shown;
}

std::vector<open_run> runs_in(store& kept, const run_query& query = {}) {
  return kept.list_runs(query).value();
}

json listed(run& on, const run_query& query = {}) {
  return lines_of(runs_in(on.kept(), query));
}

// Longer than any check takes.
constexpr std::chrono::hours long_lease{24};

run_mark opening_alone(std::string id,
                       std::string holder = first_holder,
                       std::chrono::microseconds lease = long_lease) {
  auto mark = opening(std::move(id), std::move(holder));
  mark.alone_after = lease;
  return mark;
}

run_mark taking(std::string id,
                std::string from,
                std::optional<std::chrono::microseconds> silent_for = {}) {
  auto mark = opening(std::move(id), other_holder);
  mark.taken_from = {std::move(from), silent_for};
  return mark;
}

// "app/user/session id other" of each run, sorted.
json lines_of(const std::vector<kept_out_run>& runs) {
  std::vector<std::string> lines;
  for (const auto& each : runs)
    lines.push_back(fmt::format(
      "{} {} {}", to_string(each.session), each.invocation_id, each.other));
  std::ranges::sort(lines);
  return lines;
}

// Commits changes that no other process has made stale.
void expect_kept_out(run& on,
                     std::string_view what,
                     const std::vector<store_change>& changes,
                     const json& expected) {
  const auto outcome = on.kept().commit(changes).value();
  on.expect_same(fmt::format("the moved owners: {}", what),
                 shown(outcome.moved),
                 json::array());
  on.expect_same(fmt::format("the runs that are kept out: {}", what),
                 lines_of(outcome.kept_out),
                 expected);
}

void expect_opened(run& on,
                   std::string_view what,
                   const std::vector<store_change>& changes) {
  expect_kept_out(on, what, changes, json::array());
}

void expect_sound(run& on) {
  on.expect_same("damage", on.kept().check({}).value(), json::array());
}

void a_run_is_open_until_it_is_closed(run& on) {
  change_maker make;
  on.commit(make.create(key));
  on.expect_same("at first", listed(on), json::array());
  on.commit(marked(make.append(key), {opening("run-1")}));
  on.expect_same("opened", listed(on), {"press/ann/s1 run-1 writer holder-1"});
  on.commit(make.append(key));
  on.expect_same("after an event", listed(on).size(), 1);
  on.commit(close_of(key, {closing("run-1", first_holder)}));
  on.expect_same("closed", listed(on), json::array());
  expect_sound(on);
}

void creations_and_writes_open_runs_too(run& on) {
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  on.commit(marked(make.write(session, {{"a", 1}}), {opening("run-2")}));
  on.expect_same("opened", listed(on).size(), 2);
  on.commit(marked(make.append(key), {closing("run-1"), closing("run-2")}));
  on.expect_same("closed by an event", listed(on), json::array());
}

void a_close_touches_no_scope(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"a", 1}}),
             marked(make.append(key, {{"user:n", 1}, {"app:n", 1}}),
                    {opening("run-1")})});
  const auto before = session_of(on, key);
  on.commit(close_of(key, {closing("run-1")}));
  on.expect_same("the session", session_of(on, key), before);
  on.expect_same("the user", scope_of(on, user), made_scope({{"n", 1}}, 1));
  on.commit(make.append(key, {{"app:n", 2}}));
  expect_sound(on);
}

void closes_of_missing_runs_have_no_effect(run& on) {
  change_maker make;
  on.commit(close_of(key, {closing("run-1")}));
  on.commit(marked(make.create(key), {opening("run-1")}));
  on.commit(close_of(key, {closing("run-2")}));
  on.commit(close_of(other, {closing("run-1")}));
  on.expect_same("the run", listed(on).size(), 1);
}

void a_second_opening_replaces_the_holder(run& on) {
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  const auto before = runs_in(on.kept());
  on.commit(
    marked(make.append(key), {opening("run-1", other_holder, "editor")}));
  const auto after = runs_in(on.kept());
  on.expect_same(
    "the run", lines_of(after), {"press/ann/s1 run-1 editor holder-2"});
  on.expect("its time stays",
            before.size() == 1 && after.size() == 1
              && before[0].opened == after[0].opened);
  on.expect("the new holder is alive",
            after.size() == 1 && after[0].silent.has_value());
}

void a_former_holder_does_not_close_a_run(run& on) {
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1", other_holder)}));
  on.commit(close_of(key, {closing("run-1", first_holder)}));
  on.expect_same("closed by another", listed(on).size(), 1);
  on.commit(close_of(key, {closing("run-1", other_holder)}));
  on.expect_same("closed by its holder", listed(on).size(), 0);
}

// A process leaves a run open by such a mark, for others to recover.
void a_change_without_an_event_hands_a_run_over(run& on) {
  change_maker make;
  on.commit({make.create(key),
             marked(make.append(key), {opening("run-1"), opening("run-2")})});
  const auto before = session_of(on, key);
  const auto opened = runs_in(on.kept()).at(0).opened;
  on.commit(close_of(key, {opening("run-1", other_holder), closing("run-2")}));
  const auto after = runs_in(on.kept());
  on.expect_same(
    "the runs", lines_of(after), {"press/ann/s1 run-1 writer holder-2"});
  on.expect("its time stays", after.size() == 1 && after[0].opened == opened);
  on.expect("the new holder is alive",
            after.size() == 1 && after[0].silent.has_value());
  on.expect_same("the session", session_of(on, key), before);
  on.commit(close_of(key, {closing("run-1", first_holder)}));
  on.expect_same("closed by the former holder", listed(on).size(), 1);
  auto tried = make;
  expect_kept_out(on,
                  "by the run of the new holder",
                  {marked(tried.append(key), {opening_alone("run-3")})},
                  {"press/ann/s1 run-3 run-1"});
  on.commit(close_of(key, {closing("run-1", other_holder)}));
  on.expect_same("closed by the new holder", listed(on), json::array());
  expect_sound(on);
}

// A mark whose holder has lost the run meanwhile, or whose run has ended.
void a_run_is_handed_over_by_its_holder_alone(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  const auto handed = [](const std::string& id, const std::string& from) {
    auto mark = opening(id, "holder-3");
    mark.held_by = from;
    return close_of(key, {std::move(mark)});
  };
  on.commit(handed("run-1", other_holder));
  on.expect_same(
    "by another one", listed(on), {"press/ann/s1 run-1 writer holder-1"});
  on.commit(handed("run-2", first_holder));
  on.expect_same("of a run that is not open", listed(on).size(), 1);
  on.commit(handed("run-1", first_holder));
  on.expect_same(
    "by its holder", listed(on), {"press/ann/s1 run-1 writer holder-3"});
  auto second = opening("run-1", first_holder);
  second.held_by = "holder-3";
  auto third = opening("run-1", other_holder);
  third.held_by = first_holder;
  on.commit(close_of(key, {std::move(second), std::move(third)}));
  on.expect_same(
    "twice in one commit", listed(on), {"press/ann/s1 run-1 writer holder-2"});
  expect_sound(on);
}

void marks_of_one_commit_take_effect_in_order(run& on) {
  change_maker make;
  on.commit({make.create(key),
             marked(make.append(key),
                    {opening("run-1"), closing("run-1"), opening("run-2")}),
             marked(make.append(key),
                    {closing("run-2"), opening("run-2", other_holder)}),
             close_of(key, {closing("run-2", first_holder)}),
             marked(make.append(key), {opening("run-3")}),
             close_of(key, {closing("run-3", first_holder)})});
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-2 writer holder-2"});
}

void a_refused_commit_opens_and_closes_nothing(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  auto late = make;
  on.commit(make.append(key));
  on.expect_moved("a late event",
                  {marked(late.append(key), {opening("run-2")}),
                   close_of(key, {closing("run-1")})},
                  {session});
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-1 writer holder-1"});
}

void runs_go_with_their_session(run& on) {
  change_maker make;
  on.commit({marked(make.create(key), {opening("run-1")}),
             marked(make.create(other), {opening("run-2")}),
             marked(make.create({"press", "bob", "s1"}), {opening("run-3")})});
  on.commit(make.remove(key));
  on.expect_same("a removed session", listed(on).size(), 2);
  on.commit(make.create(key));
  on.expect_same("of another incarnation", listed(on).size(), 2);
  on.commit(close_of(key, {closing("run-1")}));
  on.commit(make.remove_user("press", "ann"));
  on.expect_same(
    "a removed user", listed(on), {"press/bob/s1 run-3 writer holder-1"});
  on.commit(
    {marked(make.create(other), {opening("run-4")}), make.remove(other)});
  on.expect_same("removed by the same commit", listed(on).size(), 1);
  expect_sound(on);
}

void a_fork_has_no_open_runs(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  on.commit(make.fork(other, key.id, 1));
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-1 writer holder-1"});
  // The parent stays, without names, for its fork.
  on.commit(make.remove(key));
  on.expect_same("of a removed parent", listed(on), json::array());
  expect_sound(on);
}

// Runs of one commit may have the same time; they are listed by id then.
void a_list_has_pages_the_oldest_first(run& on) {
  change_maker make;
  json expected = json::array();
  for (int number = 0; number < 7; ++number) {
    const session_key next{
      number % 2 == 0 ? "press" : "radio", "ann", fmt::format("s{}", number)};
    const auto id = fmt::format("run-{}", number);
    on.commit(marked(make.create(next), {opening(id)}));
    expected.push_back(
      fmt::format("{} {} writer holder-1", to_string(next), id));
  }
  run_query query;
  query.limit = 3;
  auto found = json::array();
  bool is_in_order = true;
  timestamp last = timestamp::min();
  for (int page = 0; page < 4; ++page) {
    const auto rows = runs_in(on.kept(), query);
    for (const auto& each : rows)
      is_in_order
        = is_in_order && std::exchange(last, each.opened) <= each.opened;
    for (const auto& line : lines_of(rows))
      found.push_back(line);
    on.expect("the size of a page", rows.size() <= 3);
    if (!rows.empty())
      query.behind = position_of(rows.back());
  }
  on.expect("the order", is_in_order);
  on.expect_same("all runs", found.size(), 7);
  for (const auto& line : expected)
    on.expect(fmt::format("{} is listed", line.get<std::string>()),
              std::ranges::find(found, line) != found.end());
  on.expect_same("of an app", listed(on, {.app = "radio"}).size(), 3);
  on.expect_same("of an app without runs", listed(on, {.app = "x"}).size(), 0);
  run_query of_session;
  of_session.session = session_key{"press", "ann", "s4"};
  on.expect_same("of a session",
                 listed(on, of_session),
                 {"press/ann/s4 run-4 writer holder-1"});
  of_session.behind = position_of(runs_in(on.kept(), of_session).at(0));
  on.expect_same("behind it", listed(on, of_session), json::array());
}

void names_of_runs_are_bytes(run& on) {
  change_maker make;
  const session_key odd{"präss", "a b'\"", "雪"};
  on.commit(marked(make.create(odd), {opening("läuft", "h'\"%", "\\雪")}));
  on.expect_same("the run",
                 listed(on),
                 {fmt::format("{} läuft \\雪 h'\"%", to_string(odd))});
  on.commit(close_of(odd, {closing("läuft", "h'\"%")}));
  on.expect_same("closed", listed(on), json::array());
}

// -- runs that open alone ----

void a_run_of_another_holder_keeps_a_run_out(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"a", 1}}),
             make.create(other),
             marked(make.append(key), {opening("run-1")})});
  const auto before = session_of(on, key);
  const auto of_other = session_of(on, other);
  auto tried = make;
  const auto late = marked(tried.append(key, {{"a", 2}, {"user:n", 1}}),
                           {opening_alone("run-2", other_holder)});
  expect_kept_out(on,
                  "a busy session",
                  {tried.append(other), late, tried.append(key)},
                  {"press/ann/s1 run-2 run-1"});
  on.expect_same("the session", session_of(on, key), before);
  on.expect_same("the other session", session_of(on, other), of_other);
  on.expect_same("the user", scope_of(on, user), made_scope(json::object(), 0));
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-1 writer holder-1"});
  on.commit(close_of(key, {closing("run-1")}));
  expect_opened(on, "a session that is free", {late});
  on.expect_same("opened", listed(on), {"press/ann/s1 run-2 writer holder-2"});
  expect_sound(on);
}

void a_run_opens_beside_runs_of_its_holder(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  expect_opened(on,
                "the same holder",
                {marked(make.append(key), {opening_alone("run-2")})});
  expect_opened(on,
                "both in one commit",
                {marked(make.append(key),
                        {opening_alone("run-3"), opening_alone("run-4")})});
  on.expect_same("the runs", listed(on).size(), 4);
}

void a_run_that_need_not_be_alone_opens_beside_any(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  expect_opened(on,
                "without a lease",
                {marked(make.append(key), {opening("run-2", other_holder)})});
  on.expect_same("the runs", listed(on).size(), 2);
}

void runs_of_other_sessions_keep_no_run_out(run& on) {
  change_maker make;
  const session_key namesake{"radio", "ann", "s1"};
  on.commit({make.create(key),
             marked(make.create(other), {opening("run-1")}),
             marked(make.create(namesake), {opening("run-2")})});
  expect_opened(
    on,
    "a free session",
    {marked(make.append(key), {opening_alone("run-1", other_holder)})});
  on.expect_same("the runs", listed(on).size(), 3);
}

void a_run_does_not_keep_itself_out(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  expect_opened(
    on,
    "taken over",
    {marked(make.append(key), {opening_alone("run-1", other_holder)})});
  on.expect_same("the run", listed(on), {"press/ann/s1 run-1 writer holder-2"});
}

void a_run_without_a_known_holder_keeps_no_run_out(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  on.kept().remove_holder(first_holder).value();
  expect_opened(
    on,
    "the holder was removed",
    {marked(make.append(key), {opening_alone("run-2", other_holder)})});
  on.kept().renew_holder(first_holder).value();
  auto tried = make;
  expect_kept_out(
    on,
    "the holder is back",
    {marked(tried.append(key), {opening_alone("run-3", "holder-3")})},
    {"press/ann/s1 run-3 run-1"});
}

// The clock of the store runs on by itself.
void a_silent_holder_keeps_no_run_out(run& on) {
  const std::chrono::milliseconds lease(1);
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  const auto is_silent
    = [&] { return runs_in(on.kept()).at(0).silent.value() > lease; };
  while (!is_silent()) {
  }
  auto tried = make;
  expect_kept_out(
    on,
    "not silent for so long",
    {marked(tried.append(key), {opening_alone("run-2", other_holder)})},
    {"press/ann/s1 run-2 run-1"});
  expect_opened(
    on,
    "silent for longer",
    {marked(make.append(key), {opening_alone("run-2", other_holder, lease)})});
  on.expect_same("the runs", listed(on).size(), 2);
}

void a_run_is_compared_with_the_marks_before_it(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  auto tried = make;
  expect_kept_out(
    on,
    "closed after it",
    {marked(tried.append(key),
            {opening_alone("run-2", other_holder), closing("run-1")})},
    {"press/ann/s1 run-2 run-1"});
  expect_opened(
    on,
    "closed before it",
    {marked(make.append(key),
            {closing("run-1"), opening_alone("run-2", other_holder)})});
  tried = make;
  expect_kept_out(
    on,
    "opened before it",
    {close_of(key, {closing("run-2")}),
     marked(tried.append(key), {opening("run-3")}),
     marked(tried.append(key), {opening_alone("run-4", other_holder)})},
    {"press/ann/s1 run-4 run-3"});
  expect_opened(on,
                "in a session that is created again",
                {make.remove(key),
                 make.create(key),
                 marked(make.append(key), {opening_alone("run-5")})});
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-5 writer holder-1"});
  expect_opened(
    on,
    "in a session of a user that is created again",
    {make.remove_user("press", "ann"),
     marked(make.create(key), {opening_alone("run-6", other_holder)})});
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-6 writer holder-2"});
  expect_sound(on);
}

void each_run_that_is_kept_out_is_named(run& on) {
  change_maker make;
  on.commit({marked(make.create(key), {opening("run-1")}),
             marked(make.create(other), {opening("run-2")})});
  auto tried = make;
  expect_kept_out(
    on,
    "two sessions",
    {marked(tried.append(key), {opening_alone("run-3", other_holder)}),
     marked(tried.append(other), {opening_alone("run-4", other_holder)}),
     marked(tried.append(other), {opening_alone("run-5", first_holder)})},
    {"press/ann/s1 run-3 run-1", "press/ann/s2 run-4 run-2"});
  on.expect_same("the runs", listed(on).size(), 2);
}

// -- runs that are taken ----

void a_run_is_taken_from_the_holder_that_has_it(run& on) {
  change_maker make;
  on.commit({make.create(key, {{"a", 1}}),
             marked(make.append(key), {opening("run-1")})});
  const auto before = session_of(on, key);
  auto tried = make;
  expect_kept_out(
    on,
    "another one has it",
    {marked(tried.append(key, {{"a", 2}}), {taking("run-1", "holder-3")})},
    {"press/ann/s1 run-1 run-1"});
  tried = make;
  expect_kept_out(on,
                  "it is not open",
                  {marked(tried.append(key), {taking("run-2", first_holder)})},
                  {"press/ann/s1 run-2 run-2"});
  on.expect_same("the session", session_of(on, key), before);
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-1 writer holder-1"});
  expect_opened(on,
                "its holder",
                {marked(make.append(key), {taking("run-1", first_holder)})});
  on.expect_same("taken", listed(on), {"press/ann/s1 run-1 writer holder-2"});
  expect_sound(on);
}

// The clock of the store runs on by itself.
void a_run_is_taken_from_a_silent_holder(run& on) {
  const std::chrono::milliseconds lease(1);
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  auto tried = make;
  expect_kept_out(
    on,
    "it is alive",
    {marked(tried.append(key), {taking("run-1", first_holder, long_lease)})},
    {"press/ann/s1 run-1 run-1"});
  const auto is_silent
    = [&] { return runs_in(on.kept()).at(0).silent.value() > lease; };
  while (!is_silent()) {
  }
  expect_opened(
    on,
    "it was silent for longer",
    {marked(make.append(key), {taking("run-1", first_holder, lease)})});
  on.kept().remove_holder(other_holder).value();
  auto again = opening("run-1", first_holder);
  again.taken_from = {other_holder, long_lease};
  expect_opened(
    on, "it is not known", {marked(make.append(key), {std::move(again)})});
  on.expect_same("the run", listed(on), {"press/ann/s1 run-1 writer holder-1"});
}

void a_run_is_taken_after_the_marks_before_it(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  auto tried = make;
  expect_kept_out(on,
                  "closed before it",
                  {close_of(key, {closing("run-1")}),
                   marked(tried.append(key), {taking("run-1", first_holder)})},
                  {"press/ann/s1 run-1 run-1"});
  tried = make;
  expect_kept_out(
    on,
    "given a sign of life before it",
    {close_of(key, {opening("run-1")}),
     marked(tried.append(key), {taking("run-1", first_holder, long_lease)})},
    {"press/ann/s1 run-1 run-1"});
  auto left = opening("run-1", "holder-3");
  left.held_by = first_holder;
  expect_opened(on,
                "left before it",
                {close_of(key, {std::move(left)}),
                 marked(make.append(key), {taking("run-1", "holder-3")})});
  on.expect_same("taken", listed(on), {"press/ann/s1 run-1 writer holder-2"});
}

void moved_owners_are_named_also_with_runs_that_are_kept_out(run& on) {
  change_maker make;
  on.commit({make.create(key), marked(make.append(key), {opening("run-1")})});
  auto late = make;
  on.commit(make.append(key));
  on.expect_moved(
    "a late run",
    {marked(late.append(key), {opening_alone("run-2", other_holder)})},
    {session});
  on.expect_same("the runs", listed(on).size(), 1);
}

// -- holders ----

std::optional<std::chrono::microseconds> silence(store& kept) {
  return runs_in(kept).at(0).silent;
}

// The clock of the store runs on, so only bounds are known.
void signs_of_life_end_the_silence_of_a_holder(run& on) {
  using clock = std::chrono::steady_clock;
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  const auto first = silence(on.kept());
  on.expect("an opening is a sign of life", first.has_value());
  const auto second = silence(on.kept());
  on.expect("the silence grows", second && first && *second >= *first);
  // Clocks of different machines differ in speed by less.
  const auto margin = std::chrono::milliseconds(100);
  const auto since = clock::now();
  on.kept().renew_holder(first_holder).value();
  const auto renewed = silence(on.kept());
  on.expect("a renewal ends the silence",
            renewed && *renewed <= clock::now() - since + margin);
  on.kept().renew_holder(other_holder).value();
  on.expect("the holder of another run does not matter",
            silence(on.kept()).has_value());
}

void a_removed_holder_is_unknown(run& on) {
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  on.kept().remove_holder(other_holder).value();
  on.expect("another one was removed", silence(on.kept()).has_value());
  on.kept().remove_holder(first_holder).value();
  on.expect("its run has no holder", !silence(on.kept()));
  on.expect_same("the run stays", listed(on).size(), 1);
  on.kept().renew_holder(first_holder).value();
  on.expect("it is known again", silence(on.kept()).has_value());
}

void holders_are_renewed_before_anything_is_stored(run& on) {
  on.kept().renew_holder(first_holder).value();
  on.kept().remove_holder(other_holder).value();
  on.expect_same("the runs", listed(on), json::array());
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  on.expect_same("a run", listed(on).size(), 1);
}

// -- opened again, and shared ----

void runs_are_there_when_opened_again(run& on) {
  change_maker make;
  on.commit({make.create(key),
             make.create(other),
             marked(make.append(key), {opening("run-1")}),
             marked(make.append(other), {opening("run-2")})});
  on.commit(close_of(other, {closing("run-2")}));
  const auto before = runs_in(on.kept()).at(0).opened;
  on.kept().remove_holder(first_holder).value();
  on.reopen();
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-1 writer holder-1"});
  on.expect("their time", runs_in(on.kept()).at(0).opened == before);
  on.expect("their holder", !silence(on.kept()));
  on.commit(marked(make.append(key), {closing("run-1")}));
  on.reopen();
  on.expect_same("closed", listed(on), json::array());
  expect_sound(on);
}

void runs_of_one_store_are_listed_by_another(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  on.expect_same("opened",
                 lines_of(runs_in(*second)),
                 {"press/ann/s1 run-1 writer holder-1"});
  second->renew_holder(first_holder).value();
  on.expect("renewed by the second", silence(on.kept()).has_value());
  second->remove_holder(first_holder).value();
  on.expect("removed by the second", !silence(on.kept()));
  const auto take_over
    = marked(make.append(key), {opening("run-1", other_holder)});
  second->commit({&take_over, 1}).value();
  on.commit(close_of(key, {closing("run-1", first_holder)}));
  on.expect_same(
    "taken over", listed(on), {"press/ann/s1 run-1 writer holder-2"});
  const auto close = close_of(key, {closing("run-1", other_holder)});
  second->commit({&close, 1}).value();
  on.expect_same("closed", listed(on), json::array());
  second->close().value();
}

void a_run_is_kept_out_by_one_of_another_store(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit(make.create(key));
  auto late = make;
  on.commit(marked(make.append(key), {opening_alone("run-1")}));
  const auto stale
    = marked(late.append(key), {opening_alone("run-2", other_holder)});
  on.expect_same("begun at the same time",
                 shown(second->commit({&stale, 1}).value().moved),
                 shown({session}));
  auto tried = make;
  const auto next
    = marked(tried.append(key), {opening_alone("run-2", other_holder)});
  on.expect_same("begun later",
                 lines_of(second->commit({&next, 1}).value().kept_out),
                 {"press/ann/s1 run-2 run-1"});
  on.commit(close_of(key, {closing("run-1", first_holder)}));
  const auto outcome = second->commit({&next, 1}).value();
  on.expect_same("closed: moved", shown(outcome.moved), json::array());
  on.expect_same("closed", lines_of(outcome.kept_out), json::array());
  on.expect_same("the run", listed(on), {"press/ann/s1 run-2 writer holder-2"});
  second->close().value();
}

void marks_and_holders_move_no_owner(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  second->changed_elsewhere().value();
  on.kept().renew_holder(first_holder).value();
  on.commit(close_of(key, {closing("run-1")}));
  on.kept().remove_holder(first_holder).value();
  on.expect_same(
    "the changes told", second->changed_elsewhere().value().size(), 0);
  const auto next = make.append(key);
  on.expect_same("the owners moved",
                 shown(second->commit({&next, 1}).value().moved),
                 json::array());
  second->close().value();
}

// The commit that only closes runs builds on nothing, and so nothing moves.
void a_close_of_a_session_that_others_removed_has_no_effect(run& on) {
  const auto second = on.open();
  change_maker make;
  on.commit(marked(make.create(key), {opening("run-1")}));
  const auto close = close_of(key, {closing("run-1")});
  on.commit(make.remove(key));
  on.expect_same("after the removal",
                 shown(second->commit({&close, 1}).value().moved),
                 json::array());
  on.commit(marked(make.create(key), {opening("run-2")}));
  on.expect_same("after another creation",
                 shown(second->commit({&close, 1}).value().moved),
                 json::array());
  on.expect_same(
    "the runs", listed(on), {"press/ann/s1 run-2 writer holder-1"});
  second->close().value();
}

} // namespace

std::vector<conformance_check> open_run_checks() {
#define TROUPE_CHECK(name, ...) make_check(#name, name, {runs, __VA_ARGS__})
  using enum store_promise;
  return {
    TROUPE_CHECK(a_run_is_open_until_it_is_closed),
    TROUPE_CHECK(creations_and_writes_open_runs_too),
    TROUPE_CHECK(a_close_touches_no_scope),
    TROUPE_CHECK(closes_of_missing_runs_have_no_effect),
    TROUPE_CHECK(a_second_opening_replaces_the_holder),
    TROUPE_CHECK(a_former_holder_does_not_close_a_run),
    TROUPE_CHECK(a_change_without_an_event_hands_a_run_over),
    TROUPE_CHECK(a_run_is_handed_over_by_its_holder_alone),
    TROUPE_CHECK(marks_of_one_commit_take_effect_in_order),
    TROUPE_CHECK(a_refused_commit_opens_and_closes_nothing),
    TROUPE_CHECK(runs_go_with_their_session),
    TROUPE_CHECK(a_fork_has_no_open_runs, forks),
    TROUPE_CHECK(a_list_has_pages_the_oldest_first),
    TROUPE_CHECK(names_of_runs_are_bytes),
    TROUPE_CHECK(a_run_of_another_holder_keeps_a_run_out),
    TROUPE_CHECK(a_run_opens_beside_runs_of_its_holder),
    TROUPE_CHECK(a_run_that_need_not_be_alone_opens_beside_any),
    TROUPE_CHECK(runs_of_other_sessions_keep_no_run_out),
    TROUPE_CHECK(a_run_does_not_keep_itself_out),
    TROUPE_CHECK(a_run_without_a_known_holder_keeps_no_run_out),
    TROUPE_CHECK(a_silent_holder_keeps_no_run_out),
    TROUPE_CHECK(a_run_is_compared_with_the_marks_before_it),
    TROUPE_CHECK(each_run_that_is_kept_out_is_named),
    TROUPE_CHECK(a_run_is_taken_from_the_holder_that_has_it),
    TROUPE_CHECK(a_run_is_taken_from_a_silent_holder),
    TROUPE_CHECK(a_run_is_taken_after_the_marks_before_it),
    TROUPE_CHECK(moved_owners_are_named_also_with_runs_that_are_kept_out),
    TROUPE_CHECK(signs_of_life_end_the_silence_of_a_holder),
    TROUPE_CHECK(a_removed_holder_is_unknown),
    TROUPE_CHECK(holders_are_renewed_before_anything_is_stored),
    TROUPE_CHECK(runs_are_there_when_opened_again, lasting),
    TROUPE_CHECK(runs_of_one_store_are_listed_by_another, shared),
    TROUPE_CHECK(a_run_is_kept_out_by_one_of_another_store, shared),
    TROUPE_CHECK(marks_and_holders_move_no_owner, shared, told),
    TROUPE_CHECK(a_close_of_a_session_that_others_removed_has_no_effect,
                 shared),
  };
#undef TROUPE_CHECK
}

} // namespace troupe::conformance
