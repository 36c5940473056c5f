// The samples of docs/state.md about changes of state, instructions and stores.
//
// structure.pages_show_compiled_code compares the page with this source.

#include "troupe/agents/function_tool.hpp"
#include "troupe/contexts/instruction_template.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/stores/map_stores.hpp"
#include "troupe/stores/open_store.hpp"

#include "page_fixture.hpp"

#include <optional>
#include <string>
#include <thread>
#include <vector>

BOOST_FIXTURE_TEST_SUITE(state_page, troupe::testing::page_fixture)

// -- agents of the page ----

troupe::agent_run count_visit(troupe::invocation_context& context) {
  auto& state = context.state();
  state.set("temp:step", "greeting"); // Until this run ends.
  state.set("current_intent", "book_flight");
  state.set("user:preferred_language", "fr");
  state.add("app:visits", 1);
  co_await context.emit(
    troupe::text("Visit {}.", state.get<int>("app:visits")));
}

struct search_query {
  std::string words;

  static constexpr auto parameters = std::tuple(
    troupe::parameter("words", &search_query::words, "Words to look for"));
};

troupe::tool make_search() {
  return troupe::function_tool(
    {.name = "search", .description = "Finds pages."},
    [](const search_query& query, troupe::tool_context& context) {
      context.state().add("user_action_count", 1);
      context.state().set("temp:last_operation_status", "success");
      return "One page about " + query.words;
    });
}

void count_naively(troupe::callback_context& context) {
  const auto count = context.state().get("user_action_count", 0);
  context.state().set("user_action_count", count + 1);
}

// The same without the gap between reading and writing.
void count_safely(troupe::callback_context& context) {
  context.state().add("user_action_count", 1);
}

troupe::json doubled(std::optional<troupe::json> points) {
  return points ? points->get<int>() * 2 : 1;
}

troupe::agent_run double_points(troupe::invocation_context& context) {
  const auto points = co_await context.update("user:points", doubled);
  co_await context.emit(troupe::text("{} points.", points.get<int>()));
}

using troupe::testing::code_of;

troupe::json read(const char* text) {
  return troupe::json::parse(text);
}

// -- changes by agents ----

BOOST_AUTO_TEST_CASE(output_key_keeps_the_answer) {
  const auto model = troupe::testing::saying({{.text = "Hello there!"}});
  const auto greeter
    = troupe::llm({.name = "Greeter",
                   .model = model,
                   .instruction = "Generate a short, friendly greeting.",
                   .output_key = "last_greeting"});
  for (const auto& said : runtime.run(greeter, key, "Hello"))
    if (troupe::is_final(*said))
      std::cout << said->text() << '\n';
  std::cout << sessions.get(key).value().state().all() << '\n';

  BOOST_TEST(printed.text()
             == "Hello there!\n{\"last_greeting\":\"Hello there!\"}\n");
}

BOOST_AUTO_TEST_CASE(an_agent_writes_every_scope_with_its_event) {
  const auto counter = troupe::custom("counter", count_visit);
  runtime.run(counter, key, "Good morning!").wait().value();

  BOOST_TEST(state()
             == read(R"({"app:visits": 1, "current_intent": "book_flight",
                         "user:preferred_language": "fr"})"));
  BOOST_TEST(sessions.get(key).value().events().back()->text() == "Visit 1.");
}

BOOST_AUTO_TEST_CASE(tools_and_callbacks_write_through_their_context) {
  const auto clerk
    = troupe::llm({.name = "clerk",
                   .model = troupe::testing::saying(
                     {troupe::testing::calling("search", {{"words", "owls"}}),
                      {.text = "${instruction}"}}),
                   .instruction = "The last one: {temp:last_operation_status?}",
                   .tools = {make_search()},
                   .before_agent = {count_naively},
                   .after_agent = {count_safely}});
  runtime.run(clerk, key, "Owls?").wait().value();
  BOOST_TEST(state() == read(R"({"user_action_count": 3})"));
  // The last event is that of the callback after the agent.
  const auto events = sessions.get(key).value().events();
  BOOST_TEST(events[events.size() - 2]->text() == "The last one: success");
}

BOOST_AUTO_TEST_CASE(a_message_brings_changes_of_its_own) {
  const auto greeter = troupe::llm({.name = "greeter",
                                    .model = troupe::testing::echo(),
                                    .instruction = "{user:name}, {temp:page}"});
  runtime
    .run(greeter, key, {"Hello!", {{"user:name", "Ann"}, {"temp:page", 7}}})
    .wait()
    .value();

  BOOST_TEST(sessions.get(key).value().events().back()->text() == "Ann, 7");
  BOOST_TEST(state() == read(R"({"user:name": "Ann"})"));
}

BOOST_AUTO_TEST_CASE(agents_below_share_temp_and_the_next_run_does_not) {
  const auto says_step
    = [](troupe::invocation_context& context) -> troupe::agent_run {
    co_await context.emit(troupe::text(
      "{}", context.state().get<std::string>("temp:step", "none")));
  };
  const auto both = troupe::sequential("both",
                                       {troupe::custom("counter", count_visit),
                                        troupe::custom("teller", says_step)});
  runtime.run(both, key, "Go!").wait().value();
  BOOST_TEST(sessions.get(key).value().events().back()->text() == "greeting");
  runtime.run(troupe::custom("teller", says_step), key, "And now?")
    .wait()
    .value();
  BOOST_TEST(sessions.get(key).value().events().back()->text() == "none");
}

// -- lost updates ----

BOOST_AUTO_TEST_CASE(a_lost_update_is_told) {
  const auto root = troupe::custom(
    "counter", [&](troupe::invocation_context& context) -> troupe::agent_run {
      const auto points = context.state().get("points", 0);
      auto other = sessions.state(key).set("points", 10);
      (co_await std::move(other)).value();
      context.state().set("points", points + 1);
      co_await context.emit(troupe::event(troupe::text("Counted.")));
    });
  auto run = runtime.run(root, key, "Count!");
  run.wait().value();
  std::cout << run.lost_updates_count() << " lost\n";
  for (const auto& lost : run.lost_updates())
    std::cout << lost.agent << " has overwritten '" << lost.key << "'\n";
  BOOST_TEST(printed.text() == "1 lost\ncounter has overwritten 'points'\n");

  const auto refused
    = runtime
        .run(
          root, key, "Count!", {.lost_updates = troupe::lost_updates::refuse})
        .wait()
        .get();
  BOOST_TEST(code_of(refused) == "conflict");
}

BOOST_AUTO_TEST_CASE(an_update_loses_nothing) {
  const auto points = troupe::custom("points", double_points);
  runtime.run(points, key, "Once!").wait().value();
  sessions.state(key).update("user:points", doubled).value();

  BOOST_TEST(state() == read(R"({"user:points": 2})"));
}

// -- changes from outside ----

BOOST_AUTO_TEST_CASE(a_live_handle_reads_and_writes_without_an_agent) {
  auto state = runtime.sessions().state(key);
  state.set("user_city", "Berlin").value();
  if (const auto city = state.find("user_city").value())
    std::cout << city->data() << '\n';
  state.add("app:visits", 1).value();
  const auto visits = state.get("app:visits", 0).value();
  state.erase("user_city").value();
  const auto snapshot = state.snapshot().value(); // All scopes, one moment.

  BOOST_TEST(printed.text() == "\"Berlin\"\n");
  BOOST_TEST(visits == 1);
  BOOST_TEST(snapshot.all() == read(R"({"app:visits": 1})"));
  BOOST_TEST(sessions.get(key).value().events().back()->author == "system");

  const auto copy = state; // The same session: nothing is copied.
  copy.set("topic", "owls").value();
  BOOST_TEST(state.get<std::string>("topic").value() == "owls");
}

BOOST_AUTO_TEST_CASE(reserved_and_temporary_keys_are_refused_outside_of_runs) {
  auto state = runtime.sessions().state(key);
  BOOST_TEST(code_of(state.set("__ancestor_ids", "x").get())
             == "invalid_argument");
  BOOST_TEST(code_of(state.set("temp:x", 1).get()) == "invalid_argument");
  BOOST_TEST(code_of(state.set("app:user:x", 1).get()) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(app_and_user_state_are_read_without_a_session) {
  runtime.sessions().state(key).set("user:theme", "dark").value();
  runtime.sessions().state(key).set("app:motto", "Hoot!").value();
  std::cout << sessions.user_state("my_app", "ann").value() << '\n'
            << sessions.app_state("my_app").value() << '\n';

  BOOST_TEST(printed.text() == "{\"theme\":\"dark\"}\n{\"motto\":\"Hoot!\"}\n");
}

BOOST_AUTO_TEST_CASE(a_write_is_sent_again_and_compared) {
  auto state = runtime.sessions().state(key);
  // Again with the same id, after an unknown outcome: counts once.
  const troupe::write_options once("visit-2024-01-15");
  state.add("user:visits", 1, once).value();
  state.add("user:visits", 1, once).value();

  BOOST_TEST(state.get<int>("user:visits").value() == 1);
}

BOOST_AUTO_TEST_CASE(app_and_user_state_are_written_without_a_session) {
  const auto app = sessions.state_of_app("my_app");
  app.set("app:motto", "Hoot!").value();
  const auto visit = app.add("app:visits", 1).value();
  std::cout << "visit " << visit.value->data() << '\n';
  const auto ann = sessions.state_of_user("my_app", "ann");
  ann.add_to_set("user:tags", {"reader"}).value();

  BOOST_TEST(printed.text() == "visit 1\n");
  BOOST_TEST(sessions.user_state("my_app", "ann").value()
             == troupe::json::parse(R"({"tags": ["reader"]})"));
}

BOOST_AUTO_TEST_CASE(a_write_without_a_session_has_id_and_condition) {
  const auto app = sessions.state_of_app("my_app");
  // Again with the same id, after an unknown outcome: counts once.
  const troupe::shared_write_options once("import-2024-01-15");
  app.add("app:imports", 1, once).value();
  app.add("app:imports", 1, once).value();

  const auto seen = app.snapshot().value();
  const auto next = seen.state.get("app:round", 0) + 1;
  const troupe::shared_write_options unless_changed("", seen.revision);
  const auto written = app.set("app:round", next, unless_changed).get();
  if (!written && written.error().code() == troupe::errc::conflict)
    std::cout << "Another change came first: read again.\n";

  BOOST_TEST(app.get<int>("app:imports").value() == 1);
  BOOST_TEST(app.get<int>("app:round").value() == 1);
  BOOST_TEST(printed.text() == "");
}

// -- operations ----

BOOST_AUTO_TEST_CASE(every_typed_operation) {
  auto state = runtime.sessions().state(key);
  state.add("app:visits", 1).value();
  state.append("cart", "book").value();
  state.add_to_set("user:tags", {"reader", "owner"}).value();
  state.min("app:fastest_ms", 120).value();
  state.max("app:slowest_ms", 480).value();
  state.merge("user:address", {{"city", "Bonn"}, {"street", nullptr}}).value();
  state.compare_and_set("status", nullptr, "open").value(); // null: absent

  BOOST_TEST(this->state() == read(R"({"app:visits": 1, "cart": ["book"],
                         "user:tags": ["reader", "owner"],
                         "app:fastest_ms": 120, "app:slowest_ms": 480,
                         "user:address": {"city": "Bonn"},
                         "status": "open"})"));
  BOOST_TEST(code_of(state.add("status", 1).get()) == "type_error");
}

BOOST_AUTO_TEST_CASE(a_comparison_fails_if_another_was_first) {
  auto state = runtime.sessions().state(key);
  state.set("status", "open").value();
  const auto taken = state.compare_and_set("status", "open", "mine").get();
  const auto late = state.compare_and_set("status", "open", "also mine").get();
  if (!late && late.error().code() == troupe::errc::conflict)
    std::cout << "Another caller has it: read again.\n";

  BOOST_TEST(code_of(taken) == "ok");
  BOOST_TEST(state.get<std::string>("status").value() == "mine");
  BOOST_TEST(printed.text() == "Another caller has it: read again.\n");
}

BOOST_AUTO_TEST_CASE(a_delta_is_recorded_one_operation_after_the_other) {
  troupe::delta changes;
  changes.record("topic", troupe::operation_kind::set, troupe::json("owls"))
    .value();
  changes
    .record("user:tags",
            troupe::operation_kind::add_to_set,
            troupe::json({"reader", "owner"}))
    .value();
  changes
    .record("status",
            troupe::operation_kind::compare_and_set,
            troupe::json("closed"),
            troupe::json("open")) // The value that it must have.
    .value();

  troupe::event closing(troupe::text("Closed."));
  closing.author = "system";
  closing.actions.state_delta = changes;
  const auto stored = sessions.append_event(key, closing).get();

  BOOST_TEST(code_of(stored) == "conflict"); // The session has no status.
  BOOST_TEST(state() == troupe::json::object());
  sessions.state(key).set("status", "open").value();
  BOOST_TEST(code_of(sessions.append_event(key, closing).get()) == "ok");
  BOOST_TEST(state()
             == read(R"({"topic": "owls", "user:tags": ["reader", "owner"],
                         "status": "closed"})"));
}

BOOST_AUTO_TEST_CASE(no_addition_of_many_threads_is_lost) {
  std::vector<std::jthread> threads;
  for (int each = 0; each < 8; ++each)
    threads.emplace_back([this] {
      auto state = runtime.sessions().state(key);
      for (int count = 0; count < 100; ++count)
        state.add("app:visits", 1).value();
    });
  threads.clear(); // Joins.

  BOOST_TEST(state() == read(R"({"app:visits": 800})"));
}

// -- instructions ----

BOOST_AUTO_TEST_CASE(placeholders_are_replaced_by_state) {
  const auto model = troupe::testing::echo();
  const auto assistant = troupe::llm(
    {.name = "personalized_assistant",
     .model = model,
     .instruction = "You are helping {user:name} with {topic}. Their preferred "
                    "language is {user:language}. {notes?}"});

  auto state = sessions.state(key);
  state.set("user:name", "Alice").value();
  state.set("topic", "owls").value();
  state.set("user:language", "en").value();
  runtime.run(assistant, key, "Hello!").wait().value();
  BOOST_TEST(sessions.get(key).value().events().back()->text()
             == "You are helping Alice with owls. Their preferred language is "
                "en. ");
}

BOOST_AUTO_TEST_CASE(a_missing_key_is_an_error_before_the_model_is_asked) {
  const auto story_generator
    = troupe::llm({.name = "StoryGenerator",
                   .model = troupe::testing::echo(),
                   .instruction = "Write a short story about a cat, focusing "
                                  "on the theme: {topic}."});
  const auto ended = runtime.run(story_generator, key, "Go!").wait().get();
  BOOST_TEST(code_of(ended) == "template_error");

  sessions.state(key).set("topic", "friendship").value();
  runtime.run(story_generator, key, "Go!").wait().value();
  BOOST_TEST(
    sessions.get(key).value().events().back()->text()
    == "Write a short story about a cat, focusing on the theme: friendship.");
}

BOOST_AUTO_TEST_CASE(a_provider_is_used_as_it_is) {
  const auto model = troupe::testing::echo();
  const auto helper = troupe::llm(
    {.name = "template_helper_agent",
     .model = model,
     .instruction = [](const troupe::readonly_context&) -> std::string {
       return "This is an instruction with {{literal_braces}} that will not "
              "be replaced.";
     }});

  runtime.run(helper, key, "Go!").wait().value();
  BOOST_TEST(sessions.get(key).value().events().back()->text()
             == "This is an instruction with {{literal_braces}} that will not "
                "be replaced.");
}

BOOST_AUTO_TEST_CASE(a_provider_can_replace_placeholders_itself) {
  const auto model = troupe::testing::echo();
  const auto helper = troupe::llm(
    {.name = "dynamic_template_helper_agent",
     .model = model,
     .instruction = [](const troupe::readonly_context& context)
       -> troupe::task<std::string> {
       auto filled = co_await troupe::inject_session_state(
         "This is a {adjective} instruction with {{literal_braces}}.", context);
       co_return filled.value();
     }});

  sessions.state(key).set("adjective", "short").value();
  runtime.run(helper, key, "Go!").wait().value();
  BOOST_TEST(sessions.get(key).value().events().back()->text()
             == "This is a short instruction with {{literal_braces}}.");
}

BOOST_AUTO_TEST_CASE(values_of_instructions_and_names_with_dots) {
  auto state = sessions.state(key);
  state.set("list", troupe::json::array({1, "two"})).value();
  state.set("user:preferences.theme", "dark").value();
  const auto snapshot = state.snapshot().value();
  const auto filled = troupe::inject_session_state(
    R"({list} { user:preferences.theme } {"json": true} {no.such.key})",
    snapshot,
    "page");
  BOOST_TEST(filled.value()
             == R"([1,"two"] dark {"json": true} {no.such.key})");
}

BOOST_AUTO_TEST_SUITE_END()

// -- stores ----

BOOST_AUTO_TEST_SUITE(state_stores)

BOOST_AUTO_TEST_CASE(state_survives_the_program_in_a_file) {
  const troupe::testing::temporary_folder folder;
  const auto file = "sqlite:" + (folder.path() / "session.db").string();
  const auto model = troupe::testing::saying({{.text = "I will."}});
  const auto agent = troupe::llm({.name = "agent", .model = model});

  const troupe::session_key key("my_app", "user_42", "session_abc");
  {
    auto runtime = troupe::runtime::open({.store = file}).value();
    runtime.sessions().get_or_create(key).value();
    runtime.run(agent, key, "Remember that I prefer metric units.")
      .wait()
      .value(); // Committed: a killed program has lost nothing.
    runtime.sessions().state(key).set("user:units", "metric").value();
  }
  auto later = troupe::runtime::open({.store = file}).value();
  const auto session = later.sessions().get(key).value();

  BOOST_TEST(session.events().size() == 3U);
  BOOST_TEST(session.state().get("user:units") == "metric");
}

BOOST_AUTO_TEST_CASE(paths_that_lead_elsewhere_are_refused) {
  for (const std::string path : {"../x.db", "a?b.db", "a#b.db", "%2e%2e/x.db"})
    BOOST_TEST(troupe::testing::code_of(
                 troupe::runtime::open({.store = "sqlite:" + path}))
                 == "invalid_argument",
               path);
}

BOOST_AUTO_TEST_CASE(whole_maps_of_an_app_a_user_and_a_session) {
  const troupe::testing::temporary_folder folder;
  const auto file = "sqlite:" + (folder.path() / "state.db").string();

  const auto store = troupe::open_store(file).value();
  const auto clock = troupe::system_environment();
  const auto maps = troupe::make_map_stores(*store, *clock);
  const troupe::session_key key("my_app", "user_42", "session_abc");
  maps.sessions->save(key, {{"user_city", "Berlin"}}).value();
  maps.users->save("my_app", "user_42", {{"units", "metric"}}).value();
  maps.apps->save("my_app", {{"motto", "Hoot!"}}).value();
  const auto city = maps.sessions->load(key).value()->at("user_city");
  maps.sessions->remove(key).value();

  BOOST_TEST(city == "Berlin");
  BOOST_TEST(!maps.sessions->load(key).value().has_value());
  BOOST_TEST(maps.users->load("my_app", "user_42").value()->at("units")
             == "metric");
  BOOST_TEST(maps.apps->load("my_app").value()->at("motto") == "Hoot!");
}

BOOST_AUTO_TEST_SUITE_END()
