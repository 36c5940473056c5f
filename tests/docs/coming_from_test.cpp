// The programs of docs/coming_from.md.
//
// structure.pages_show_compiled_code compares the page with this source.

#include "troupe/agents/function_tool.hpp"
#include "troupe/agents/open_call.hpp"
#include "troupe/models/open_model.hpp"

#include "page_fixture.hpp"

#include <string>
#include <tuple>
#include <vector>

BOOST_AUTO_TEST_SUITE(coming_from_page)

// -- ADK Python ----

struct order_query {
  int order = 0;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("order", &order_query::order));
};

// 1: the runner and its session service.
void ask_shop(troupe::runtime& runtime, const troupe::model_ptr& model) {
  const auto order_status = troupe::function_tool( // 2
    {.name = "order_status", .description = "Tells where an order is."},
    [](const order_query& query, troupe::tool_context& context) {
      context.state().set("user:last_order", query.order); // 3
      return "on the way";
    });

  const auto clerk = troupe::llm({.name = "clerk", // 4
                                  .model = model,
                                  .instruction = "Help {user:name?}.",
                                  .tools = {order_status},
                                  .output_key = "answer"});
  const auto checker = troupe::llm(
    {.name = "checker", .model = model, .instruction = "Check: {answer}"});
  const auto desk = troupe::sequential("desk", {clerk, checker}); // 5

  const auto session = runtime.sessions()
                         .create({"shop", "ann"}, {{"user:name", "Ann"}}) // 6
                         .value();

  for (const auto& event : // 7
       runtime.run(desk, session.key(), "Where is order 17?"))
    if (troupe::is_final(*event))
      std::cout << event->author << ": " << event->text() << '\n';

  const auto held = runtime.sessions().get(session.key()).value(); // 8
  std::cout << held.state().get("user:last_order") << '\n';
}

BOOST_AUTO_TEST_CASE(the_program_of_adk_python) {
  const troupe::testing::temporary_folder folder;
  auto runtime = troupe::runtime::open(
                   {.store = "sqlite:" + (folder.path() / "shop.db").string()})
                   .value();
  const troupe::testing::printed_text printed;
  ask_shop(runtime,
           std::make_shared<troupe::scripted_model>(troupe::script{
             {"clerk",
              {troupe::testing::calling("order_status", {{"order", 17}}),
               {.text = "It is on the way."}}},
             {"checker", {{.text = "${instruction}"}}}}));
  BOOST_TEST(printed.text()
             == "clerk: It is on the way.\n"
                "checker: Check: It is on the way.\n17\n");
}

// -- ADK-Rust ----

void ask_both(troupe::runtime& runtime, const troupe::model_ptr& model) {
  const auto left = troupe::llm( // 1
    {.name = "left", .model = model, .instruction = "Speak for {topic}."});
  const auto right = troupe::llm(
    {.name = "right", .model = model, .instruction = "Speak against {topic}."});
  const auto both = troupe::parallel("both", {left, right}); // 2

  const troupe::session_key key("shop", "ann", "s1"); // 3
  runtime.sessions().create(key, {{"topic", "owls"}}).value();

  auto run = runtime.run(both, key, "Go!");     // 4
  while (const auto event = run.next().value()) // 5
    std::cout << event->author << ": " << event->text() << '\n';

  troupe::event noted; // 6
  noted.author = "system";
  noted.actions.state_delta
    = troupe::delta::from_json({{"app:debates", 1}}).value();
  runtime.sessions().append_event(key, noted).value(); // 7
}

BOOST_FIXTURE_TEST_CASE(the_program_of_adk_rust,
                        troupe::testing::page_fixture) {
  ask_both(runtime, troupe::testing::echo());
  const auto said = printed.text();
  BOOST_TEST(said.find("left: Speak for owls.\n") != std::string::npos);
  BOOST_TEST(said.find("right: Speak against owls.\n") != std::string::npos);
  BOOST_TEST(sessions.app_state("shop").value()["debates"] == 1);
}

// -- Potato Agent ----

void talk(const std::string& file, const troupe::model_ptr& model) {
  auto runtime = troupe::runtime::open({.store = file}).value();     // 1
  const auto agent = troupe::llm({.name = "agent", .model = model}); // 2

  const troupe::session_key key("my_app", "user_42", "session_abc"); // 3
  runtime.sessions().get_or_create(key).value();
  auto session = runtime.sessions().state(key); // 4
  session.set("city", "Berlin").value();        // 5

  runtime
    .run(agent, key, "Remember that I prefer metric units.") // 6
    .wait()
    .value();

  if (const auto city = session.find("city").value()) // 7
    std::cout << city->data() << '\n';
  session.set("user:units", "metric").value(); // 8
}

BOOST_AUTO_TEST_CASE(the_program_of_potato_agent) {
  const troupe::testing::temporary_folder folder;
  const troupe::testing::printed_text printed;
  for (int program = 0; program < 2; ++program)
    talk("sqlite:" + (folder.path() / "session.db").string(),
         troupe::testing::saying({{.text = "I will."}}));
  BOOST_TEST(printed.text() == "\"Berlin\"\n\"Berlin\"\n");
}

// -- LangGraph ----

troupe::agent_run research(troupe::invocation_context& context) { // 1
  auto& state = context.state();
  state.append("drafts", "on " + state.get<std::string>("temp:item")); // 2
  co_await context.emit(troupe::text("researched"));
}

troupe::agent_run choose(troupe::invocation_context& context) { // 3
  const auto drafts = context.state().get("drafts");
  context.state().set("longest", drafts.at(0));
  co_await context.emit(troupe::text("{} drafts", drafts.size()));
}

troupe::tool ask_editor() { // 4
  return troupe::tool({.name = "ask_editor",
                       .description = "Asks the editor for a decision.",
                       .run =
                         [](const troupe::json&, troupe::tool_context&) {
                           return troupe::json(); // The answer comes later.
                         },
                       .long_running = true});
}

void write_report(troupe::runtime& runtime, const troupe::model_ptr& model) {
  const auto editor
    = troupe::llm({.name = "editor", .model = model, .tools = {ask_editor()}});
  const auto graph = troupe::sequential( // 5
    "report",
    {troupe::map({.name = "all", .items_key = "topics"}, // 6
                 troupe::custom("research", research)),
     troupe::custom("choose", choose),
     editor});

  const troupe::session_key thread("report", "ann", "t1"); // 7
  runtime.sessions().create(thread, {{"topics", {"owls", "bats"}}}).value();
  for (const auto& event : runtime.run(graph, thread, "Go!")) // 8
    std::cout << event->author << '\n';

  for (const auto& call : runtime.sessions().open_calls(thread).value()) // 9
    runtime.run(graph, thread, troupe::answer(call, "print it")).wait().value();

  const auto state = runtime.sessions().get(thread).value().state(); // 10
  std::cout << state.get("drafts").size() << " drafts\n";
}

BOOST_FIXTURE_TEST_CASE(the_program_of_langgraph,
                        troupe::testing::page_fixture) {
  write_report(
    runtime,
    std::make_shared<troupe::scripted_model>(troupe::script{
      {"editor",
       {troupe::testing::calling("ask_editor", troupe::json::object()),
        {.text = "It is in print."}}}}));
  BOOST_TEST(printed.text().ends_with("2 drafts\n"), printed.text());
  const auto held = sessions.get({"report", "ann", "t1"}).value();
  BOOST_TEST(held.events().back()->text() == "It is in print.");
  BOOST_TEST(sessions.open_calls({"report", "ann", "t1"}).value().empty());
}

BOOST_AUTO_TEST_SUITE_END()
