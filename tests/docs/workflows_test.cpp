// The samples of docs/workflows.md, and of "Recovery" in docs/agents.md.

#include "troupe/agents/agent.hpp"
#include "troupe/agents/open_call.hpp"
#include "troupe/agents/workflow.hpp"
#include "troupe/agents/workflow_progress.hpp"

#include "page_fixture.hpp"

#include <chrono>
#include <future>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

BOOST_AUTO_TEST_SUITE(workflows_page)

BOOST_FIXTURE_TEST_CASE(a_letter_is_written_and_checked,
                        troupe::testing::page_fixture) {
  using namespace troupe;
  using namespace std::chrono_literals;
  const auto model = testing::saying({{.text = "Dear Ann"}});

  const auto writer = llm({.name = "writer", .model = model});

  const auto letters = workflow({
    .name = "letters",
    .nodes = {
      {.work = writer},
      {.name = "check", .work = [](node_context& context) {
         const auto draft = context.input().get<std::string>();
         context.state().add("checked", 1);
         return node_output(draft, {draft.size() < 400 ? "good" : "long"});
       }},
      {.name = "send", .work = [](node_context& context) {
         return json{{"sent", context.input()}};
       }},
    },
    .edges = {
      {"START", "writer"},
      {"writer", "check"},
      {"check", "send", {"good"}},
      {.from = "check", .to = "writer", .otherwise = true},
    },
  });

  auto started = runtime.run(letters, key, "a letter to Ann");
  event_ptr last;
  while (auto next = started.next().get().value())
    last = next;
  BOOST_TEST(output_of(*last) == json({{"sent", "Dear Ann"}}));

  std::ostringstream lines;
  workflow_progress seen(letters);
  for (const auto& each : sessions.get(key).value().events())
    seen.add(each).value();
  for (const auto& each : seen.workflows())
    for (const auto& node : each.nodes)
      lines << node.name << ": " << to_string(node.state) << "\n";
  BOOST_TEST(lines.str() == "writer: done\ncheck: done\nsend: done\n");
}

BOOST_FIXTURE_TEST_CASE(lines_are_counted, troupe::testing::page_fixture) {
  using namespace troupe;

  const auto reviews = workflow({
    .name = "reviews",
    .nodes = {
      {.name = "split", .work = [](node_context& context) {
         auto lines = json::array();
         std::istringstream text(context.input().get<std::string>());
         for (std::string line; std::getline(text, line);)
           lines.push_back(line);
         return lines;
       }},
      {.name = "count",
       .work = map_over{
         .work = [](node_context& context) {
           return context.input().get<std::string>().size();
         },
         .lanes_max = 8,
       }},
    },
    .edges = {{"START", "split"}, {"split", "count"}},
  });

  auto started = runtime.run(reviews, key, "one\nthree");
  event_ptr last;
  while (auto next = started.next().get().value())
    last = next;
  BOOST_TEST(output_of(*last) == json({3, 5}));
}

// The run begins its wait, and is cancelled then.
BOOST_FIXTURE_TEST_CASE(a_reminder_waits, troupe::testing::page_fixture) {
  using namespace troupe;
  using namespace std::chrono_literals;

  const auto reminder = workflow({
    .name = "reminder",
    .nodes = {
      {.name = "remind",
       .work = [](node_context& context) -> task<std::optional<node_output>> {
         co_await context.sleep_for(24h);
         co_return node_output("It is time.");
       }},
    },
    .edges = {{"START", "remind"}},
  });

  auto started = runtime.run(reminder, key, "remind me");
  bool has_begun = false;
  while (!has_begun)
    has_begun
      = to_text(started.next().get().value()->extra.data()).find("\"due\"")
        != std::string::npos;
  started.cancel();
  BOOST_TEST(!started.wait().get().has_value());
}

BOOST_FIXTURE_TEST_CASE(two_prices_are_compared,
                        troupe::testing::page_fixture) {
  using namespace troupe;
  using namespace std::chrono_literals;

  const auto price_of = [](int price) {
    return [price](node_context&) -> task<std::optional<node_output>> {
      co_return node_output(price);
    };
  };

  const auto cheapest = workflow({
    .name = "cheapest",
    .nodes = {
      {.name = "north",
       .work = price_of(30),
       .retry = {.attempts_max = 3, .first_delay = 200ms},
       .timeout = 5s},
      {.name = "south", .work = price_of(20)},
      {.name = "both", .work = join()},
      {.name = "choose", .work = [](node_context& context) {
         const auto& prices = context.input();
         return prices.at("north") < prices.at("south") ? "north" : "south";
       }},
    },
    .edges = {
      {"START", "north"},
      {"START", "south"},
      {"north", "both"},
      {"south", "both"},
      {"both", "choose"},
    },
    .output_key = "cheapest",
  });

  auto started = runtime.run(cheapest, key, "compare");
  BOOST_TEST(started.wait().get().has_value());
  BOOST_TEST(state().at("cheapest") == "south");
}

BOOST_FIXTURE_TEST_CASE(an_order_asks_how_many, troupe::testing::page_fixture) {
  using namespace troupe;

  const auto orders = workflow({
    .name = "orders",
    .nodes = {
      {.name = "amount", .work = [](node_context& context) {
         const json_schema number(json{{"type", "integer"}, {"minimum", 1}});
         return context.ask("How many?", number);
       }},
      {.name = "order", .work = [](node_context& context) {
         return json{{"ordered", context.input()}};
       }},
    },
    .edges = {{"START", "amount"}, {"amount", "order"}},
  });

  runtime.run(orders, key, "an order").wait().value();
  for (const auto& call : runtime.sessions().open_calls(key).value())
    runtime.run(orders, key, troupe::answer(call, 3)).wait().value();
  const auto events = runtime.sessions().get(key).value().events();
  BOOST_TEST(output_of(*events.back()) == json({{"ordered", 3}}));
}

BOOST_AUTO_TEST_CASE(open_runs_are_recovered) {
  using namespace troupe;
  const troupe::testing::temporary_folder folder;
  const auto address = "sqlite:" + (folder.path() / "runs.db").string();
  const auto root
    = troupe::custom("root", [](invocation_context& context) -> agent_run {
        content said("model", {part("done")});
        co_await context.emit(std::move(said));
      });
  session_key key;
  {
    auto first = troupe::runtime::open({.store = address}).value();
    key = first.sessions().create({"press", "ann", "s1"}).value().key();
    std::promise<void> begun;
    const auto waits = troupe::custom(
      "root", [&begun](invocation_context& context) -> agent_run {
        begun.set_value();
        co_await context.sleep(std::chrono::hours(1));
      });
    first.run(waits, key, "go").detach();
    begun.get_future().wait();
  }
  auto runtime = troupe::runtime::open({.store = address}).value();
  for (const auto& left : runtime.unfinished("press").value())
    if (left.is_free && left.agent == root.name())
      if (const auto ended
          = runtime.recover(root, left.session, left.invocation_id)
              .wait()
              .get();
          !ended)
        std::cerr << left.invocation_id << ": " << to_string(ended.error())
                  << "\n";
  const auto events = runtime.sessions().get(key).value().events();
  BOOST_TEST(events.back()->text() == "done");
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_waits, troupe::testing::page_fixture) {
  using namespace troupe;
  using namespace std::chrono_literals;

  const auto waiting = workflow({
    .name = "waiting",
    .nodes
    = {{.name = "pause",
        .work = [](node_context& context) -> task<std::optional<node_output>> {
          co_await context.sleep(1ms);
          co_return node_output(context.key());
        }}},
    .edges = {{"START", "pause"}},
  });

  auto started = runtime.run(waiting, key, "go");
  BOOST_TEST(started.wait().get().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
