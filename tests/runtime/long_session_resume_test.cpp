// Runs that resume far back in a long session, and conversations that continue
// there.

#include "long_session.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(long_sessions)

BOOST_FIXTURE_TEST_CASE(a_run_goes_on_from_a_pause_far_back, long_session) {
  const auto model
    = scripted({{"buyer", {calling("order"), {.text = "bought"}}}});
  const auto buyer = llm({.name = "buyer",
                          .model = model,
                          .tools = {order()},
                          .include_contents = include_contents::none});
  std::string call;
  {
    runtime_fixture on(options());
    auto started = on.runtime.run(buyer, here, "buy");
    BOOST_TEST(code_of(started.wait().get()) == "ok");
    call = started.waits_for().at(0);
    long_session::add(on, 3'001, 3'700);
  }
  runtime_fixture on(options());
  const auto before = read();
  const content answer(
    "user", {part(function_response{call, "order", json{{"ok", true}}})});
  BOOST_TEST(run_on(on, buyer, answer) == "buyer=bought | ok");
  // Events before the message of the first run were not read.
  BOOST_TEST(read() - before < 2 * 1'100U);
}

BOOST_FIXTURE_TEST_CASE(an_agent_that_goes_on_sees_its_earlier_events,
                        long_session) {
  sight seen;
  const auto waits
    = llm({.name = "waits",
           .model = scripted({{"waits", {calling("order"), {.text = "x"}}}}),
           .tools = {order()},
           .include_contents = include_contents::none});
  const auto root
    = custom({.name = "root",
              .run = [&seen, waits](invocation_context& context) -> agent_run {
                if (!context.is_resumed())
                  co_await context.emit(text("mine"));
                seen = look(context);
                co_await context.run(waits);
              },
              .reads = history_extent::none()},
             {waits});
  runtime_fixture on(options());
  auto started = on.runtime.run(root, here, "buy");
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  const auto call = started.waits_for().at(0);
  long_session::add(on, 3'001, 3'050);
  BOOST_TEST(
    run_on(on,
           root,
           content("user",
                   {part(function_response{call, "order", json{{"ok", 1}}})}))
    == "waits=x | ok");
  BOOST_TEST_REQUIRE(seen.texts.size() > 2U);
  BOOST_TEST(seen.texts.at(0) == "buy");
  BOOST_TEST(seen.texts.at(1) == "mine");
}

// The search for the call reads the whole history, and keeps none of it.
BOOST_FIXTURE_TEST_CASE(an_answer_to_no_call_is_refused, long_session) {
  runtime_fixture on(options());
  const witness ear;
  const auto writer = llm({.name = "writer",
                           .model = ear.model(),
                           .include_contents = include_contents::none});
  const content answer(
    "user", {part(function_response{"c1", "order", json::object()})});
  BOOST_TEST(run_on(on, writer, answer) == "| invalid_argument");
  const auto before = read();
  BOOST_TEST(on.events(here).size() == 2'000U);
  BOOST_TEST(read() - before > 1'900U);
}

BOOST_FIXTURE_TEST_CASE(a_conversation_stays_with_who_spoke_far_back,
                        long_session) {
  const auto tree = [] {
    return llm(
      {.name = "desk",
       .model = scripted(
         {{"desk", {calling("transfer_to_agent", {{"agent_name", "clerk"}})}}}),
       .include_contents = include_contents::none},
      {llm({.name = "clerk",
            .model = scripted({{"clerk", {{.text = "yes"}}}}),
            .include_contents = include_contents::none})});
  };
  runtime_fixture on(options());
  BOOST_TEST(run_on(on, tree()) == "desk= desk= clerk=yes | ok");
  long_session::add(on, 3'001, 3'500);
  BOOST_TEST(run_on(on, tree()) == "clerk=yes | ok");
}

BOOST_FIXTURE_TEST_CASE(a_conversation_of_strangers_begins_at_the_root,
                        long_session) {
  {
    runtime_fixture other(place.beside());
    add(other, 3'001, 8'000);
  }
  const auto tree = llm({.name = "desk",
                         .model = scripted({{"desk", {{.text = "yes"}}}}),
                         .include_contents = include_contents::none},
                        {llm({.name = "clerk",
                              .model = scripted({{"clerk", {{.text = "no"}}}}),
                              .include_contents = include_contents::none})});
  runtime_fixture on(options());
  const auto before = read();
  BOOST_TEST(run_on(on, tree) == "desk=yes | ok");
  BOOST_TEST(read() - before < 4'600U);
}

BOOST_AUTO_TEST_SUITE_END()
