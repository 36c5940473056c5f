// The samples of docs/state.md about sessions, events and scopes.
//
// structure.pages_show_compiled_code compares the page with this source.

#include "page_fixture.hpp"

#include <chrono>
#include <string>
#include <vector>

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(complete_example)

BOOST_AUTO_TEST_CASE(the_complete_example_shows_the_scopes) {
  const troupe::testing::printed_text printed;

  auto runtime = troupe::runtime::open().value();
  auto& sessions = runtime.sessions();

  // The first session, with initial state in three scopes.
  const auto first = sessions
                       .create({"my_app", "alice", "s1"},
                               {{"app:theme", "dark"},
                                {"user:language", "en"},
                                {"context", "session1"}})
                       .value();

  // The second session of the same user.
  const auto second
    = sessions.create({"my_app", "alice", "s2"}, {{"context", "session2"}})
        .value();

  const auto& state = second.state();
  std::cout << state.get("app:theme") << '\n'     // Shared by all users.
            << state.get("user:language") << '\n' // Shared by her sessions.
            << state.get("context") << '\n';      // Only in this session.

  BOOST_TEST(printed.text() == "\"dark\"\n\"en\"\n\"session2\"\n");
  BOOST_TEST(first.state().get("context") == "session1");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(sessions_page, troupe::testing::page_fixture)

BOOST_AUTO_TEST_CASE(a_session_is_followed) {
  for (const auto* const text : {"Hello!", "Goodbye!", "One more thing."}) {
    troupe::event said;
    said.author = "user";
    said.content = troupe::user_text(text);
    sessions.append_event(key, std::move(said)).value();
  }

  auto news = sessions.follow(key, {.from = 0}); // 0: all events.
  for (const auto& said : news) {
    std::cout << said->author << ": " << said->text() << '\n';
    if (said->text() == "Goodbye!")
      break;
  }

  news.next().then([](const troupe::result<troupe::event_ptr>& next) {
    if (next && *next)
      std::cout << "And then: " << (*next)->text() << '\n';
  });

  BOOST_TEST(printed.text()
             == "user: Hello!\nuser: Goodbye!\nAnd then: One more thing.\n");
}

BOOST_AUTO_TEST_CASE(a_state_is_followed) {
  const auto press = sessions.state_of_app("press");
  auto changes = press.follow({.from = press.snapshot().value().revision});
  press.set("app:motto", "Hoot!").value();
  press.set("app:motto", "To whit!").value();
  for (const auto& change : changes) {
    std::cout << "revision " << change.revision << '\n';
    for (const auto& each : change.keys)
      std::cout << each.key << " is " << each.after.value_or(nullptr) << '\n';
    if (change.revision == 2)
      break;
  }

  BOOST_TEST(printed.text().ends_with("app:motto is \"To whit!\"\n"));
}

BOOST_AUTO_TEST_CASE(a_session_is_created_with_state_in_every_scope) {
  const auto session = runtime.sessions()
                         .create({"my_app", "user_123"}, // A new id.
                                 {{"app:version", "1.0.0"},
                                  {"user:name", "Alice"},
                                  {"topic", "Getting started"}})
                         .value();

  BOOST_TEST(session.key().id.size() == 36U);
  BOOST_TEST(session.revision() == 0U);
  BOOST_TEST(session.events().empty());
  BOOST_TEST(sessions.app_state("my_app").value()
             == troupe::json::parse(R"({"version": "1.0.0"})"));

  const auto& state = session.state();
  if (const auto topic = state.find("topic"))
    std::cout << "Topic: " << topic->data() << '\n';
  const auto version = state.get<std::string>("app:version");
  const auto rounds = state.get("rounds", 0); // 0: there is no such key.
  for (const auto& [name, value] : state)
    std::cout << name << ": " << value << '\n';

  BOOST_TEST(printed.text()
             == "Topic: \"Getting started\"\n"
                "app:version: \"1.0.0\"\n"
                "topic: \"Getting started\"\n"
                "user:name: \"Alice\"\n");
  BOOST_TEST(version == "1.0.0");
  BOOST_TEST(rounds == 0);
}

BOOST_AUTO_TEST_CASE(a_temp_key_or_null_of_the_initial_state_is_dropped) {
  const auto made
    = sessions.create({"my_app", "ben"}, {{"temp:x", 1}, {"y", nullptr}})
        .value();
  BOOST_TEST(made.state().all() == troupe::json::object());
}

BOOST_AUTO_TEST_CASE(a_session_is_found_or_made_read_listed_and_removed) {
  const troupe::session_key chat("my_app", "ann", "chat");
  const auto session
    = sessions.get_or_create(chat, {{"topic", "owls"}}).value();
  const auto newest = sessions.get(chat, {.num_recent_events = 20}).value();
  for (const auto& said : newest.events())
    std::cout << said->author << ": " << said->text() << '\n';
  for (const auto& each : sessions.list({"my_app", "ann"}).value().sessions)
    std::cout << each.key().id << " has " << each.revision() << " events\n";
  const bool existed = sessions.remove(chat).value();

  BOOST_TEST(existed);
  BOOST_TEST(session.state().get("topic") == "owls");
  const std::string listed = printed.text();
  BOOST_TEST(listed.find("chat has 0 events\n") != std::string::npos);
  BOOST_TEST(listed.find("s1 has 0 events\n") != std::string::npos);
  BOOST_TEST(troupe::testing::code_of(sessions.get(chat).get()) == "not_found");
}

BOOST_AUTO_TEST_CASE(an_event_is_appended_with_its_delta) {
  auto said = troupe::event(troupe::text("She is back."));
  said.author = "system";
  said.actions.state_delta
    = troupe::delta::from_json({{"counter", 42},
                                {"user:last_seen", "2024-01-15"},
                                {"temp:step", 1},    // Not stored.
                                {"draft", nullptr}}) // Erases the key.
        .value();
  const auto stored = sessions.append_event(key, said).value();

  BOOST_TEST(stored->id.size() == 36U);
  BOOST_TEST(stored->author == "system");
  BOOST_TEST((stored->timestamp != troupe::timestamp()));
  BOOST_TEST(state()
             == troupe::json::parse(
               R"({"counter": 42, "user:last_seen": "2024-01-15"})"));

  const auto wire = troupe::to_json(*stored);
  BOOST_TEST(wire["actions"]["stateDelta"]
             == troupe::json::parse(
               R"({"counter": 42, "draft": null,
                   "user:last_seen": "2024-01-15"})"));
}

BOOST_AUTO_TEST_CASE(the_manual_update_of_adk_is_one_append) {
  const auto session
    = sessions
        .create({"state_app_manual", "user2", "session2"},
                {{"user:login_count", 0}, {"task_status", "idle"}})
        .value();
  const auto now = runtime.environment()->now();

  troupe::event login;
  login.invocation_id = "inv_login_update";
  login.author = "system";
  login.timestamp = now;
  auto& changes = login.actions.state_delta;
  changes
    .record("task_status", troupe::operation_kind::set, troupe::json("active"))
    .value();
  changes
    .record("user:login_count", troupe::operation_kind::add, troupe::json(1))
    .value();
  changes
    .record("user:last_login_ts",
            troupe::operation_kind::set,
            troupe::json(troupe::to_seconds(now)))
    .value();
  changes
    .record(
      "temp:validation_needed", troupe::operation_kind::set, troupe::json(true))
    .value();
  sessions.append_event(session.key(), login).value();

  const auto updated = sessions.get(session.key()).value();
  std::cout << updated.state().all() << '\n';

  BOOST_TEST(updated.state().get("user:login_count") == 1);
  BOOST_TEST(updated.state().get("task_status") == "active");
  BOOST_TEST(updated.state().get("user:last_login_ts")
             == troupe::to_seconds(now));
  BOOST_TEST(!updated.state().contains("temp:validation_needed"));
  BOOST_TEST(updated.events().back()->invocation_id == "inv_login_update");
}

BOOST_AUTO_TEST_CASE(an_event_is_read_from_the_wire_form) {
  const auto wire = troupe::json::parse(R"({
    "author": "system",
    "content": {"role": "user", "parts": [{"text": "One more visit."}]},
    "actions": {
      "stateDelta": {"topic": "owls", "draft": null},
      "stateOps": [{"op": "add", "key": "app:visits", "value": 1},
                   {"op": "union", "key": "user:tags", "value": ["new"]}]
    }})");
  const auto said = troupe::event_from_json(wire).value();
  sessions.append_event(key, said).value();

  BOOST_TEST(state()
             == troupe::json::parse(
               R"({"app:visits": 1, "topic": "owls", "user:tags": ["new"]})"));
}

BOOST_AUTO_TEST_CASE(an_event_takes_effect_once_and_on_its_revision) {
  auto said = troupe::event(troupe::text("Paid."));
  said.id = "payment-17"; // Sent again under this id, it takes effect once.
  said.author = "system";
  const auto known = sessions.get(key).value().revision();
  const auto stored
    = sessions.append_event(key, said, {.expected_revision = known}).get();
  if (!stored && stored.error().code() == troupe::errc::conflict)
    std::cout << "Another event came first: read again.\n";

  BOOST_TEST(troupe::testing::code_of(stored) == "ok");
  BOOST_TEST((sessions.append_event(key, said).value() == stored.value()));
  BOOST_TEST(sessions.get(key).value().revision() == known + 1);
  auto late = troupe::event(troupe::text("Late."));
  BOOST_TEST(
    troupe::testing::code_of(
      sessions.append_event(key, late, {.expected_revision = known}).get())
    == "conflict");
}

BOOST_AUTO_TEST_CASE(the_events_of_a_run_are_taken_by_loop_or_by_next) {
  const auto greeter = troupe::custom(
    "greeter", [](troupe::invocation_context& context) -> troupe::agent_run {
      co_await context.emit(troupe::text("Hello."));
    });

  for (const auto& said : runtime.run(greeter, key, "Hi!"))
    std::cout << said->author << ": " << said->text() << '\n';

  auto run = runtime.run(greeter, key, "Hi again!", {.deadline = 30s});
  while (const auto said = run.next().value()) // Null at the end.
    std::cout << said->author << ": " << said->text() << '\n';

  BOOST_TEST(printed.text() == "greeter: Hello.\ngreeter: Hello.\n");
  BOOST_TEST(sessions.get(key).value().revision() == 4U);
}

BOOST_AUTO_TEST_CASE(the_prefixes_have_names) {
  const auto settings = std::string(troupe::key_prefix_app) + "settings";
  const auto preferences = std::string(troupe::key_prefix_user) + "preferences";
  const auto step = std::string(troupe::key_prefix_temp) + "current_step";

  BOOST_TEST(settings == "app:settings");
  BOOST_TEST(preferences == "user:preferences");
  BOOST_TEST(step == "temp:current_step");
}

// The differences that docs/state.md lists.

BOOST_AUTO_TEST_CASE(there_is_no_session_without_a_user) {
  BOOST_TEST(troupe::testing::code_of(sessions.create({"my_app", ""}).get())
             == "invalid_argument");
  BOOST_TEST(troupe::testing::code_of(sessions.create({"", "ann"}).get())
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(there_is_no_store_of_vertex_ai) {
  BOOST_TEST(troupe::testing::code_of(
               troupe::runtime::open({.store = "vertexai:projects/p"}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_run_and_an_append_on_a_missing_session_fail) {
  const troupe::session_key missing("my_app", "ann", "none");
  const auto silent = troupe::custom(
    "silent",
    [](troupe::invocation_context&) -> troupe::agent_run { co_return; });
  const auto ended = runtime.run(silent, missing, "Hello?").wait().get();
  if (!ended && ended.error().code() == troupe::errc::not_found)
    sessions.create(missing).value();

  BOOST_TEST(troupe::testing::code_of(ended) == "not_found");
  BOOST_TEST(sessions.get(missing).value().revision() == 0U);
  const troupe::session_key other("my_app", "ann", "neither");
  BOOST_TEST(
    troupe::testing::code_of(
      sessions.append_event(other, troupe::event(troupe::text("?"))).get())
    == "not_found");
}

BOOST_AUTO_TEST_CASE(a_second_creation_is_refused_and_ids_are_trimmed) {
  BOOST_TEST(
    troupe::testing::code_of(sessions.create({"my_app", "ann", " s1 "}).get())
    == "already_exists");
}

BOOST_AUTO_TEST_SUITE_END()
