// Agents as tools of other agents.

#include "troupe/agents/agent_tool.hpp"

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(agent_tools)

namespace {

scripted_reply asking(const std::string& name, const std::string& request) {
  return calling(name, {{"request", request}});
}

/// An agent that calls tools in these turns, then says "done".
agent caller(std::vector<scripted_reply> turns, std::vector<tool> tools) {
  turns.push_back({.text = "done"});
  return asks("boss", scripted({{"boss", std::move(turns)}}), std::move(tools));
}

/// A turn that calls a tool several times.
scripted_reply asking_many(const std::string& name, std::size_t count) {
  scripted_reply reply;
  for (std::size_t index = 0; index < count; ++index)
    reply.function_calls.push_back(
      {"", name, json{{"request", std::to_string(index)}}});
  return reply;
}

} // namespace

BOOST_AUTO_TEST_CASE(its_last_words_are_the_result) {
  agent_fixture on;
  const auto helper
    = llm({.name = "helper",
           .description = "Helps.",
           .model = scripted({{"helper", {{.text = "${input}!"}}}})});
  const auto made = agent_tool(helper);
  BOOST_TEST(made.name() == "helper");
  BOOST_TEST(made.description() == "Helps.");
  BOOST_TEST(on.perform(caller({asking("helper", "hi")}, {made}))
             == "boss= boss= boss=done | ok");
  BOOST_TEST(responses(on, on.key) == json::parse(R"([{"result": "hi!"}])"));
  // The helper's events are not in the session.
  for (const auto& said : on.events(on.key))
    BOOST_TEST(said->author != "helper");
}

BOOST_AUTO_TEST_CASE(it_sees_and_changes_the_state_of_its_caller) {
  agent_fixture on;
  BOOST_TEST(on.append(on.key, {{"topic", "owls"}, {"user:n", 1}}) == "ok");
  const auto helper
    = custom("helper", [](invocation_context& context) -> agent_run {
        context.state().set("heard", context.state().get<std::string>("topic"));
        context.state().add("user:n", 1);
        context.state().add("app:n", 1);
        context.state().set("temp:inside", 1);
        co_await context.emit(text("first"));
        // A step reads the state of the event it has emitted, as in any run.
        context.state().add("user:n", context.state().get<int>("user:n"));
        co_await context.emit(
          text("{}", context.state().get<int>("temp:inside")));
      });
  const auto looks = tool_of("looks", [](const json&, tool_context& context) {
    return json(context.state().contains("temp:inside"));
  });
  on.perform(caller({asking("helper", "go"), calling("looks")},
                    {agent_tool(helper), looks}));
  BOOST_TEST(
    on.state_now()
    == json(
      {{"topic", "owls"}, {"heard", "owls"}, {"user:n", 4}, {"app:n", 1}}));
  BOOST_TEST(responses(on, on.key)
             == json::parse(R"([{"result": "1"}, {"result": false}])"));
}

BOOST_AUTO_TEST_CASE(it_reads_temp_keys_of_its_caller_and_keeps_its_own) {
  agent_fixture on;
  const auto helper
    = custom("helper", [](invocation_context& context) -> agent_run {
        const auto topic = context.state().get<std::string>("temp:topic", "?");
        context.state().set("temp:topic", "mice");
        co_await context.emit(
          text("{} {}", topic, context.state().get<std::string>("temp:topic")));
      });
  const auto looks = tool_of("looks", [](const json&, tool_context& context) {
    return context.state().get("temp:topic");
  });
  const auto boss = caller({asking("helper", "go"), calling("looks")},
                           {agent_tool(helper), looks});
  BOOST_TEST(
    on.perform(sequential("all",
                          {custom("first",
                                  [](invocation_context& context) -> agent_run {
                                    context.state().set("temp:topic", "owls");
                                    co_return;
                                  }),
                           boss}))
    == "boss= boss= boss= boss= boss=done | ok");
  BOOST_TEST(
    responses(on, on.key)
    == json::parse(R"([{"result": "owls mice"}, {"result": "owls"}])"));
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(operations_of_concurrent_agents_all_count) {
  agent_fixture on;
  constexpr std::size_t count = 40;
  const auto helper
    = custom("helper", [](invocation_context& context) -> agent_run {
        context.state().add("n", 1);
        context.state().append("all", context.user_content().text());
        co_await context.emit(text("x"));
      });
  on.perform(caller({asking_many("helper", count)}, {agent_tool(helper)}));
  BOOST_TEST(on.state_now()["n"] == count);
  BOOST_TEST(on.state_now()["all"].size() == count);
}

BOOST_AUTO_TEST_CASE(it_hears_its_own_conversation_only) {
  agent_fixture on;
  const auto heard = std::make_shared<std::vector<std::string>>();
  const auto listens = std::make_shared<made_model>(
    [heard](const model_request& request, const model_reply& reply) {
      for (const auto& each : request.contents)
        heard->push_back(each->role + ": " + each->text());
      reply(model_response(content("model", {part("ok")})));
    });
  on.perform(caller({asking("helper", "hi")},
                    {agent_tool(llm({.name = "helper", .model = listens}))}));
  BOOST_TEST(*heard == std::vector<std::string>({"user: hi"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_schema_gives_its_arguments_and_its_value) {
  agent_fixture on;
  const json_schema in(json::parse(
    R"({"type": "object", "properties": {"city": {"type": "string"}},
        "required": ["city"]})"));
  const json_schema out(json::parse(R"({"type": "object"})"));
  const auto helper
    = llm({.name = "helper",
           .model = scripted({{"helper", {{.text = R"({"sun": true})"}}}}),
           .output_schema = out,
           .input_schema = in});
  const auto made = agent_tool(helper);
  BOOST_TEST(made.parameters() == in.text());
  BOOST_TEST(agent_tool(sequential("steps", {helper})).parameters()
             == in.text());
  on.perform(caller({calling("helper", {{"town", "Rome"}}),
                     calling("helper", {{"city", "Rome"}})},
                    {made}));
  const auto told = responses(on, on.key);
  BOOST_TEST(told[0].value("error", "").find("'city'") != std::string::npos);
  BOOST_TEST(told[1] == json({{"sun", true}}));
}

BOOST_AUTO_TEST_CASE(a_failed_agent_is_an_error_result_and_changes_nothing) {
  agent_fixture on;
  const auto helper
    = custom("helper", [](invocation_context& context) -> agent_run {
        context.state().set("ghost", 1);
        co_await context.emit(text("x"));
        throw std::runtime_error("broken");
      });
  BOOST_TEST(on.perform(caller({asking("helper", "go")}, {agent_tool(helper)}))
             == "boss= boss= boss=done | ok");
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("broken") != std::string::npos, told);
  BOOST_TEST(on.state_now() == json::object());
}

BOOST_AUTO_TEST_CASE(an_agent_that_runs_above_is_a_circular_call) {
  agent_fixture on;
  // Agents are identified by name, so this one is the same agent.
  const auto inner = says("boss", "never");
  on.perform(caller({asking("boss", "go")}, {agent_tool(inner)}));
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("already running above") != std::string::npos, told);
}

BOOST_AUTO_TEST_CASE(workflows_and_hand_overs_work_inside) {
  agent_fixture on;
  const auto model = scripted(
    {{"desk", {calling("transfer_to_agent", {{"agent_name", "expert"}})}},
     {"expert", {{.text = "solved"}}}});
  const auto desk = llm({.name = "desk", .model = model},
                        {llm({.name = "expert", .model = model})});
  const auto both = sequential(
    "both", {parallel("lanes", {adds("one", "n"), adds("two", "n")}), desk});
  on.perform(caller({asking("both", "go")}, {agent_tool(both)}));
  BOOST_TEST(responses(on, on.key) == json::parse(R"([{"result": "solved"}])"));
  BOOST_TEST(on.state_now()["n"] == 2);
}

BOOST_AUTO_TEST_CASE(its_result_can_be_the_answer) {
  agent_fixture on;
  const auto made
    = agent_tool(says("helper", "42"), {.skip_summarization = true});
  BOOST_TEST(on.perform(caller({asking("helper", "go")}, {made}))
             == "boss= boss= | ok");
}

BOOST_AUTO_TEST_CASE(model_calls_inside_count_for_the_run) {
  agent_fixture on;
  const auto helper = asks("helper", scripted({{"helper", {{.text = "x"}}}}));
  BOOST_TEST(on.perform(caller({asking("helper", "go")}, {agent_tool(helper)}),
                        {.model_calls_max = 1})
             == "boss= boss= | limit_exceeded");
}

BOOST_AUTO_TEST_CASE(cancelling_ends_the_agent_inside) {
  agent_fixture on;
  const auto started = std::make_shared<tally>();
  const auto ended = std::make_shared<tally>();
  const auto helper
    = custom("helper", [=](invocation_context& context) -> agent_run {
        started->add();
        try {
          co_await context.sleep(24h);
        } catch (const error&) {
          ended->add();
          throw;
        }
      });
  auto run = on.runtime.run(
    caller({asking_many("helper", 5)}, {agent_tool(helper)}), on.key, "go");
  started->await(5);
  run.cancel();
  BOOST_TEST(agent_fixture::show(std::move(run)) == "boss= | cancelled");
  BOOST_TEST(ended->count() == 5U);
}

BOOST_AUTO_TEST_CASE(an_agent_that_takes_too_long_is_told_to_the_model) {
  const auto time = std::make_shared<watched_environment>(1);
  agent_fixture on(runtime_fixture::in(time));
  const auto ended = std::make_shared<tally>();
  const auto helper
    = custom("helper", [=](invocation_context& context) -> agent_run {
        try {
          co_await context.sleep(24h);
        } catch (const error&) {
          ended->add();
          throw;
        }
      });
  auto run = on.runtime.run(
    caller({asking("helper", "go")}, {agent_tool(helper, {.timeout = 50ms})}),
    on.key,
    "go");
  time->timers.await(2);
  time->advance(50ms);
  BOOST_TEST(agent_fixture::show(std::move(run))
             == "boss= boss= boss=done | ok");
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("50 ms") != std::string::npos, told);
  BOOST_TEST(ended->count() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
