// Questions of nodes: their events, their answers, and the runs that go on.

#include "troupe/agents/turns/question.hpp"

#include "troupe/agents/agent_tool.hpp"
#include "troupe/contexts/first_invocation.hpp"
#include "troupe/core/rewind.hpp"

#include "../runtime/staged_store.hpp"
#include "workflow_nodes.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(workflow_questions)

namespace {

using calls = std::shared_ptr<std::atomic<int>>;

calls no_calls() {
  return std::make_shared<std::atomic<int>>(0);
}

json_schema type(const std::string& name) {
  auto schema = json::object();
  schema["type"] = name;
  return json_schema(std::move(schema));
}

/// A node that asks once and gives the answer.
workflow_node asker(std::string name,
                    std::optional<json_schema> schema = {},
                    const calls& count = no_calls()) {
  return function(name, [name, schema, count](node_context& context) {
    ++*count;
    return context.ask(name + "?", schema);
  });
}

/// A workflow of nodes one behind the other.
agent chain(std::vector<workflow_node> nodes, std::string name = "w") {
  std::vector<workflow_edge> edges;
  std::string last = workflow_start;
  for (const auto& each : nodes) {
    edges.push_back({last, each.name});
    last = each.name;
  }
  return workflow(
    {.name = std::move(name), .nodes = std::move(nodes), .edges = edges});
}

/// A workflow of two nodes at the same time and a join.
agent both(workflow_node one, workflow_node two) {
  const auto first = one.name;
  const auto second = two.name;
  return workflow(
    {.name = "w",
     .nodes = {std::move(one), std::move(two), {.name = "j", .work = join()}},
     .edges
     = {{"START", first}, {"START", second}, {first, "j"}, {second, "j"}}});
}

struct question_fixture : pause_fixture {
  using pause_fixture::pause_fixture;

  bool has_ended(const std::string& part) {
    return ends(*this, key).find(part) != std::string::npos;
  }

  static bool tells(const std::string& part) {
    return last_reason().find(part) != std::string::npos;
  }

  /// Answers the open question with this index.
  std::string give(const agent& root, json value, std::size_t index = 0) {
    return answer(root, {{"result", std::move(value)}}, index);
  }

  std::size_t size() { return events(key).size(); }

  /// Number of events that ask.
  std::size_t asked() {
    std::size_t count = 0;
    for (const auto& each : events(key))
      count += each->long_running_tool_ids.size();
    return count;
  }
};

bool is_ok(const std::string& line) {
  return line.ends_with("| ok");
}

/// The first invocations of events, from number `from` on. Rewinds belong to
/// none.
std::set<std::string> first_runs(const event_slice& events,
                                 std::size_t from = 1) {
  std::set<std::string> ids;
  for (std::size_t index = from - 1; index < events.size(); ++index)
    if (!is_rewind(*events[index]))
      ids.insert(first_invocation(*events[index]));
  return ids;
}

using ids = std::set<std::string>;

} // namespace

// -- questions ----

BOOST_FIXTURE_TEST_CASE(a_function_gets_the_answer, question_fixture) {
  const auto count = no_calls();
  const auto root = chain({asker("a", {}, count), passes("b")});
  BOOST_TEST(is_ok(go(root)));
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(ends(*this, key) == "");
  BOOST_TEST(is_ok(give(root, "blue")));
  BOOST_TEST(waits.empty());
  BOOST_TEST(count->load() == 2);
  BOOST_TEST(has_ended(R"x(w@1/a@1="blue" w@1/b@1="b(\"blue\")" )x"));
}

BOOST_FIXTURE_TEST_CASE(a_coroutine_gets_the_answer, question_fixture) {
  const auto root = chain({function(
    "a", [](node_context& context) -> task<std::optional<node_output>> {
      const auto name = context.ask("Who?").get<std::string>();
      context.state().set("name", name);
      co_await context.sleep(1us);
      co_return node_output("Hello " + name);
    })});
  go(root);
  BOOST_TEST(is_ok(give(root, "Ann")));
  BOOST_TEST(has_ended(R"(w@1/a@1="Hello Ann")"));
  BOOST_TEST(state_now().at("name") == "Ann");
}

BOOST_FIXTURE_TEST_CASE(the_input_is_the_same_after_the_answer,
                        question_fixture) {
  const auto root = chain({function("a",
                                    [](node_context& context) {
                                      context.ask("?");
                                      return context.input();
                                    }),
                           function("b", [](node_context& context) {
                             context.ask("?");
                             return context.input();
                           })});
  go(root);
  give(root, 1);
  BOOST_TEST(is_ok(give(root, 2)));
  BOOST_TEST(ends(*this, key) == R"(w@1/a@1="go" w@1/b@1="go" w@1="go". )");
}

BOOST_FIXTURE_TEST_CASE(a_question_is_a_call_as_in_adk, question_fixture) {
  const auto root = chain({function("a", [](node_context& context) {
    return context.ask("How many?", type("integer"), json{{"least", 1}});
  })});
  go(root);
  const auto all = events(key);
  const auto& asked = *all[2];
  const auto id = all[1]->invocation_id + "/w@1/a@1/question-1";
  BOOST_TEST(asked.id == id);
  BOOST_TEST(asked.author == "w");
  BOOST_TEST(asked.content.role == "model");
  BOOST_TEST(path_in(asked) == "w@1/a@1");
  BOOST_TEST(asked.long_running_tool_ids == std::vector<std::string>{id});
  const auto* call = asked.content.parts.at(0).call();
  BOOST_TEST_REQUIRE(call != nullptr);
  BOOST_TEST(call->id == id);
  BOOST_TEST(call->name == "adk_request_input");
  auto args = json::object();
  args["interruptId"] = id;
  args["message"] = "How many?";
  args["payload"] = json{{"least", 1}};
  args["response_schema"] = json{{"type", "integer"}};
  BOOST_TEST(call->args.data() == args);
  BOOST_TEST(waits == std::vector<std::string>{id});
}

BOOST_FIXTURE_TEST_CASE(open_calls_show_a_question, question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  const auto open = sessions().open_calls(key).value();
  BOOST_TEST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0].tool == request_input_name);
  BOOST_TEST(open[0].agent == "w");
  BOOST_TEST(open[0].args.data().at("message") == "a?");
  BOOST_TEST(!open[0].question);
  BOOST_TEST(is_ok(go(root, troupe::answer(open[0], 7))));
  BOOST_TEST(has_ended("w@1/a@1=7 "));
}

BOOST_FIXTURE_TEST_CASE(the_other_branch_goes_on, question_fixture) {
  const auto count = no_calls();
  const auto root = both(asker("a"), function("b", [count](node_context&) {
                           ++*count;
                           return json("b");
                         }));
  go(root);
  BOOST_TEST(ends(*this, key) == R"(w@1/b@1="b" )");
  BOOST_TEST(is_ok(give(root, 1)));
  BOOST_TEST(count->load() == 1);
  BOOST_TEST(has_ended(R"(w@1/j@1={"a":1,"b":"b"} )"));
}

BOOST_FIXTURE_TEST_CASE(a_visit_asks_several_questions, question_fixture) {
  const auto count = no_calls();
  const auto root = chain({function("a", [count](node_context& context) {
    ++*count;
    auto made = json::array();
    for (const auto* each : {"one?", "two?", "three?"})
      made.push_back(context.ask(each));
    return made;
  })});
  go(root);
  for (int answered = 1; answered <= 3; ++answered) {
    BOOST_TEST_REQUIRE(waits.size() == 1U);
    BOOST_TEST(waits[0].ends_with("question-" + std::to_string(answered)));
    BOOST_TEST(is_ok(give(root, answered)));
  }
  BOOST_TEST(count->load() == 4);
  BOOST_TEST(asked() == 3U);
  BOOST_TEST(has_ended("w@1/a@1=[1,2,3] "));
}

BOOST_FIXTURE_TEST_CASE(several_nodes_ask_at_once, question_fixture) {
  const auto count = no_calls();
  const auto root = both(asker("a", {}, count), asker("b", {}, count));
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 2U);
  const auto is_b = [this](std::size_t index) {
    return waits.at(index).find("/b@1/") != std::string::npos;
  };
  give(root, "B", is_b(0) ? 0 : 1);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(!is_b(0));
  // The node that still waits was not called again.
  BOOST_TEST(count->load() == 3);
  give(root, "A");
  BOOST_TEST(waits.empty());
  BOOST_TEST(asked() == 2U);
  BOOST_TEST(has_ended(R"(w@1/j@1={"a":"A","b":"B"} )"));
}

BOOST_FIXTURE_TEST_CASE(one_message_answers_several_questions,
                        question_fixture) {
  const auto root = both(asker("a"), asker("b"));
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 2U);
  BOOST_TEST(is_ok(
    go(root,
       replies({{waits[0], {{"result", 1}}}, {waits[1], {{"result", 1}}}}))));
  BOOST_TEST(has_ended(R"(w@1/j@1={"a":1,"b":1} )"));
}

BOOST_FIXTURE_TEST_CASE(each_visit_of_a_cycle_asks_by_itself,
                        question_fixture) {
  const auto root = workflow(
    {.name = "w",
     .nodes = {function("a",
                        [](node_context& context) {
                          const auto more
                            = context.ask("more?", type("boolean")).get<bool>();
                          return node_output(more, {more});
                        }),
               passes("b")},
     .edges = {{"START", "a"}, {"a", "a", {true}}, {"a", "b", {false}}}});
  go(root);
  give(root, true);
  give(root, true);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(waits[0].ends_with("/a@3/question-1"));
  BOOST_TEST(is_ok(give(root, false)));
  BOOST_TEST(has_ended("w@1/a@3=false w@1/b@1="));
}

// -- answers ----

BOOST_FIXTURE_TEST_CASE(an_answer_that_does_not_fit_is_refused,
                        question_fixture) {
  const auto root = chain({asker("a", type("integer"))});
  go(root);
  const auto id = waits.at(0);
  const auto before = size();
  for (const auto& wrong : {json("many"), json(1.5), json(nullptr), json{{}}}) {
    BOOST_TEST(go(root, replies({{id, {{"result", wrong}}}}))
               == "| invalid_argument");
    BOOST_TEST(tells(id));
    BOOST_TEST(tells("does not fit"));
  }
  BOOST_TEST(size() == before);
  BOOST_TEST(sessions().open_calls(key).value().size() == 1U);
  BOOST_TEST(is_ok(go(root, replies({{id, {{"result", 3}}}}))));
  BOOST_TEST(has_ended("w@1/a@1=3 "));
}

BOOST_AUTO_TEST_CASE(answers_have_several_forms) {
  const auto read
    = [](const std::optional<json_schema>& schema, json response) {
        const auto asked
          = make_question("id", "?", schema ? schema->text() : json(), nullptr);
        auto answer = read_answer(asked.args.data(), response);
        return answer ? to_text(*answer)
                      : std::string(to_string(answer.error().code()));
      };
  BOOST_TEST(read({}, {{"result", "text"}}) == R"("text")");
  BOOST_TEST(read({}, {{"response", "text"}}) == R"("text")");
  BOOST_TEST(read({}, {{"a", 1}, {"result", 2}}) == R"({"a":1,"result":2})");
  BOOST_TEST(read({}, {{"result", "7"}}) == R"("7")");
  BOOST_TEST(read({}, json::object()) == "{}");
  BOOST_TEST(read(type("integer"), {{"result", "7"}}) == "7");
  BOOST_TEST(read(type("string"), {{"result", "7"}}) == R"("7")");
  BOOST_TEST(read(type("object"), {{"result", 7}}) == R"({"result":7})");
  BOOST_TEST(read(type("object"), {{"result", "{\"a\": 1}"}}) == R"({"a":1})");
  BOOST_TEST(read(type("integer"), {{"result", "seven"}})
             == "invalid_argument");
  BOOST_TEST(read(type("integer"), {{"result", "[7"}}) == "invalid_argument");
  // A session that came from elsewhere.
  const auto broken = read_answer(
    json::parse(R"({"response_schema": {"type": 5}})"), json::object());
  BOOST_TEST(!broken);
  BOOST_TEST(broken.error().message().find("schema") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_question_is_answered_once, question_fixture) {
  const auto root = both(asker("a"), asker("b"));
  go(root);
  const auto first = waits.at(0);
  give(root, 1);
  BOOST_TEST(go(root, replies({{first, {{"result", 2}}}})) == "| conflict");
  go(root,
     replies({{sessions().open_calls(key).value().at(0).id, {{"result", 3}}}}));
  BOOST_TEST(go(root, replies({{first, {{"result", 2}}}})) == "| conflict");
  BOOST_TEST(ends(*this, key).find("=2") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(of_two_answers_at_once_one_counts) {
  for (int round = 0; round < 20; ++round) {
    question_fixture on;
    const auto root = chain({function("a", [](node_context& context) {
      const auto answer = context.ask("?");
      context.state().add("answered", 1);
      return answer;
    })});
    on.go(root);
    const run_options how{.policy = run_policy::interleave};
    const auto with = [&on](int value) {
      return on.replies({{on.waits.at(0), {{"result", value}}}});
    };
    auto first = on.runtime.run(root, on.key, with(1), how);
    auto second = on.runtime.run(root, on.key, with(2), how);
    const auto codes
      = code_of(first.wait().get()) + " " + code_of(second.wait().get());
    BOOST_TEST((codes == "ok conflict" || codes == "conflict ok"), codes);
    BOOST_TEST(on.state_now().at("answered") == 1);
  }
}

BOOST_AUTO_TEST_CASE(other_programs_answer) {
  const staged_place place;
  question_fixture first(place.options());
  const auto root = both(asker("a", type("integer")), asker("b"));
  first.go(root);
  BOOST_TEST_REQUIRE(first.waits.size() == 2U);
  const auto reply_to = [&first](std::size_t index, json value) {
    return first.replies(
      {{first.waits.at(index), {{"result", std::move(value)}}}});
  };
  runtime_fixture second(place.options());
  auto started = second.runtime.run(root, first.key, reply_to(1, 2));
  BOOST_TEST(is_ok(agent_fixture::follow(started)));
  runtime_fixture third(place.options());
  auto last = third.runtime.run(root, first.key, reply_to(0, 2));
  BOOST_TEST(is_ok(agent_fixture::follow(last)));
  BOOST_TEST(first.has_ended(R"(w@1/j@1={"a":2,"b":2} )"));
}

BOOST_AUTO_TEST_CASE(two_programs_answer_at_the_same_time) {
  for (int round = 0; round < 10; ++round) {
    const staged_place place;
    question_fixture first(place.options());
    const auto root = both(asker("a"), asker("b"));
    first.go(root);
    BOOST_TEST_REQUIRE(first.waits.size() == 2U);
    runtime_fixture second(place.options());
    runtime_fixture third(place.options());
    const auto reply_to = [&first](std::size_t index) {
      return first.replies({{first.waits.at(index), {{"result", index}}}});
    };
    auto one = second.runtime.run(root, first.key, reply_to(0));
    auto other = third.runtime.run(root, first.key, reply_to(1));
    for (auto* const each : {&one, &other}) {
      const auto ended = each->wait().get();
      BOOST_TEST(ended.has_value(), (ended ? "" : ended.error().message()));
    }
    BOOST_TEST(first.has_ended(R"(w@1/j@1={"a":0,"b":1} )"));
    const auto line = ends(first, first.key);
    BOOST_TEST(line.find("j@2") == std::string::npos, line);
  }
}

// -- the first run ----

BOOST_AUTO_TEST_CASE(answers_in_any_order_name_the_first_run) {
  for (const std::size_t order : {0U, 1U}) {
    const staged_place place;
    question_fixture first(place.options());
    const auto root = both(asker("a"), asker("b"));
    first.go(root);
    BOOST_TEST_REQUIRE(first.waits.size() == 2U);
    const auto reply_to = [&first](std::size_t index) {
      return first.replies({{first.waits.at(index), {{"result", 1}}}});
    };
    runtime_fixture second(place.options());
    auto one = second.runtime.run(root, first.key, reply_to(order));
    BOOST_TEST(is_ok(agent_fixture::follow(one)));
    runtime_fixture third(place.options());
    auto other = third.runtime.run(root, first.key, reply_to(1 - order));
    BOOST_TEST(is_ok(agent_fixture::follow(other)));
    BOOST_TEST(first.has_ended(R"(w@1/j@1={"a":1,"b":1} )"));
    const auto all = first.events(first.key);
    ids runs;
    for (const auto& each : all)
      runs.insert(each->invocation_id);
    BOOST_TEST((runs
                == ids{all[0]->invocation_id,
                       one.invocation_id(),
                       other.invocation_id()}));
    BOOST_TEST((first_runs(all) == ids{all[0]->invocation_id}));
  }
}

BOOST_FIXTURE_TEST_CASE(open_workflows_keep_their_first_runs_apart,
                        question_fixture) {
  const auto root = chain({asker("a"), asker("b")});
  const auto start = [&] {
    const auto before = size();
    go(root);
    return std::pair(events(key)[before]->invocation_id, waits.at(0));
  };
  const auto one = start();
  const auto other = start();
  for (const auto& [run_id, question] : {other, one}) {
    const auto before = size();
    BOOST_TEST(is_ok(go(root, replies({{question, {{"result", 1}}}}))));
    BOOST_TEST(is_ok(give(root, 2)));
    BOOST_TEST((first_runs(events(key), before + 1) == ids{run_id}));
  }
}

BOOST_FIXTURE_TEST_CASE(a_run_that_failed_names_the_first_run,
                        question_fixture) {
  const auto tries = no_calls();
  const auto root = chain({asker("a"), function("b", [tries](node_context&) {
                             if (++*tries == 1)
                               throw error(errc::tool_failed, "not yet");
                             return json("b");
                           })});
  go(root);
  const auto id = waits.at(0);
  BOOST_TEST(give(root, 1).ends_with("| tool_failed"));
  BOOST_TEST(is_ok(go(root, replies({{id, {{"result", 1}}}}))));
  const auto all = events(key);
  BOOST_TEST((first_runs(all) == ids{all[0]->invocation_id}));
}

BOOST_FIXTURE_TEST_CASE(an_answer_after_a_rewind_names_the_first_run,
                        question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  const auto id = waits.at(0);
  const auto revision = fetch(key).revision();
  for (int value = 1; value <= 2; ++value) {
    BOOST_TEST(is_ok(go(root, replies({{id, {{"result", value}}}}))));
    const auto answered = events(key).back()->invocation_id;
    const auto all = events(key);
    BOOST_TEST((first_runs(all) == ids{all[0]->invocation_id}));
    if (value == 1)
      sessions().rewind(key, rewind_target::before_run(answered)).value();
    else
      sessions().rewind(key, rewind_target::to(revision)).value();
    BOOST_TEST(sessions().open_calls(key).value().size() == 1U);
  }
}

BOOST_FIXTURE_TEST_CASE(an_answer_in_a_fork_names_the_first_run,
                        question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  fork_options options;
  options.keep_open_calls = true;
  const auto made = sessions().fork(key, options).value().key();
  const auto before = events(made).size();
  const auto message = replies({{waits.at(0), {{"result", 1}}}});
  BOOST_TEST(is_ok(show(runtime.run(root, made, message))));
  const auto all = events(made);
  BOOST_TEST((first_runs(all, before + 1) == ids{all[0]->invocation_id}));
  BOOST_TEST(all.back()->invocation_id != all[0]->invocation_id);
}

BOOST_FIXTURE_TEST_CASE(a_question_of_a_run_that_did_not_pause_is_not_open,
                        question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  const auto other = cut_off();
  auto started
    = runtime.run(root, other, replies({{waits.at(0), {{"result", 1}}}}));
  BOOST_TEST(follow(started) == "| invalid_argument");
  BOOST_TEST(tells("not open"));
}

BOOST_FIXTURE_TEST_CASE(a_message_meanwhile_starts_another_run,
                        question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  const auto first = waits.at(0);
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(waits.at(0) != first);
  give(root, "two");
  BOOST_TEST(is_ok(go(root, replies({{first, {{"result", "one"}}}}))));
  BOOST_TEST(ends(*this, key)
             == R"(w@1/a@1="two" w@1="two". w@1/a@1="one" w@1="one". )");
}

// -- bodies ----

BOOST_FIXTURE_TEST_CASE(events_before_a_question_come_once, question_fixture) {
  const auto root = chain({function(
    "a", [](node_context& context) -> task<std::optional<node_output>> {
      context.state().add("steps", 1);
      co_await context.emit(text("step"));
      const auto answer = context.ask("?");
      co_await context.emit(text("later"));
      co_return node_output(answer);
    })});
  BOOST_TEST(go(root) == "w= w=step w= w= | ok");
  BOOST_TEST(give(root, 1) == "w=later w= w= | ok");
  int steps = 0;
  for (const auto& each : events(key))
    steps += each->text() == "step" ? 1 : 0;
  BOOST_TEST(steps == 1);
  BOOST_TEST(state_now().at("steps") == 1);
  const auto all = events(key);
  BOOST_TEST((first_runs(all) == ids{all[0]->invocation_id}));
}

BOOST_FIXTURE_TEST_CASE(another_event_at_the_same_place_is_told,
                        question_fixture) {
  const auto count = no_calls();
  const auto root = chain({function(
    "a", [count](node_context& context) -> task<std::optional<node_output>> {
      co_await context.emit(text("step {}", ++*count));
      co_return node_output(context.ask("?"));
    })});
  go(root);
  BOOST_TEST(give(root, 1).ends_with("| conflict"));
  BOOST_TEST(tells("'a'"));
}

BOOST_FIXTURE_TEST_CASE(changes_before_a_question_are_refused,
                        question_fixture) {
  const auto refuses = [this](void (*change)(node_context&)) {
    const auto root = chain({function("a", [change](node_context& context) {
      change(context);
      return context.ask("?");
    })});
    const auto line = go(root);
    BOOST_TEST(line.ends_with("| invalid_argument"), line);
    BOOST_TEST(tells("'a'"));
    BOOST_TEST(tells("not committed"));
    BOOST_TEST(waits.empty());
  };
  refuses([](node_context& context) { context.state().set("n", 1); });
  refuses([](node_context& context) { context.state().set("temp:n", 1); });
  refuses([](node_context& context) { context.actions().escalate = true; });
  BOOST_TEST(asked() == 0U);
}

BOOST_FIXTURE_TEST_CASE(a_schema_that_is_none_is_refused, question_fixture) {
  const auto root = chain({function("a", [](node_context& context) {
    auto schema = json::object();
    schema["type"] = 5;
    return context.ask("?", json_schema(schema));
  })});
  BOOST_TEST(go(root).ends_with("| invalid_argument"));
  BOOST_TEST(tells("'a'"));
  BOOST_TEST(tells("not a JSON Schema"));
}

BOOST_FIXTURE_TEST_CASE(another_question_at_the_same_place_is_told,
                        question_fixture) {
  const auto asks = [](std::string message) {
    return chain({function(
      "a", [message](node_context& context) { return context.ask(message); })});
  };
  go(asks("How old?"));
  const auto id = waits.at(0);
  BOOST_TEST(give(asks("How tall?"), 7).ends_with("| conflict"));
  BOOST_TEST(tells("'a'"));
  BOOST_TEST(tells("How old?"));
  // The question is still open for the program that asked it.
  BOOST_TEST(is_ok(go(asks("How old?"), replies({{id, {{"result", 8}}}}))));
  BOOST_TEST(has_ended("w@1/a@1=8 "));
}

BOOST_FIXTURE_TEST_CASE(a_body_that_catches_everything_waits,
                        question_fixture) {
  const auto root = chain({function("a", [](node_context& context) {
    json answer = "none";
    for (int tries = 0; tries < 2; ++tries)
      try {
        answer = context.ask("?");
        break;
      } catch (...) {
      }
    return answer;
  })});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(asked() == 1U);
  BOOST_TEST(is_ok(give(root, "some")));
  BOOST_TEST(has_ended(R"(w@1/a@1="some" )"));
}

BOOST_FIXTURE_TEST_CASE(changes_after_a_question_do_not_stay,
                        question_fixture) {
  const auto root = chain({function("a", [](node_context& context) {
    try {
      return context.ask("?");
    } catch (...) {
      context.state().add("n", 1);
      throw;
    }
  })});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(!state_now().contains("n"));
}

BOOST_FIXTURE_TEST_CASE(a_function_runs_an_agent_that_waits, question_fixture) {
  const auto worker = one_call("worker", order());
  // The other agent reads the history, so the run keeps it for the worker.
  const auto asker = chain({function(
    "a", [worker](node_context& context) -> task<std::optional<node_output>> {
      const auto before = context.ask("first?");
      co_await context.run(worker);
      const auto after = context.ask("last?");
      auto made = json::array();
      made.push_back(before);
      made.push_back(after);
      co_return node_output(std::move(made));
    })});
  const auto root = sequential("s", {asker, says("z", "end")});
  go(root);
  give(root, 1);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(name_of(waits[0]) == "order");
  BOOST_TEST(answer(root, {{"ticket", 7}}) == "worker=done w= s= | ok");
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  // The agent is not run again.
  BOOST_TEST(is_ok(give(root, 2)));
  BOOST_TEST(has_ended("w@1/a@1=[1,2] "));
  BOOST_TEST(state_now().at("ordered") == 1);
}

// -- failures, limits and joins ----

BOOST_FIXTURE_TEST_CASE(a_question_is_no_failed_attempt, question_fixture) {
  const auto seen = std::make_shared<std::vector<std::uint64_t>>();
  auto node = function("a", [seen](node_context& context) {
    seen->push_back(context.attempt());
    const auto answer = context.ask("?");
    if (context.attempt() < 3)
      throw error(errc::tool_failed, "not yet");
    return answer;
  });
  node.retry = {.attempts_max = 3, .first_delay = 0ms};
  const auto root = chain({node});
  go(root);
  BOOST_TEST(is_ok(give(root, 5)));
  // Later attempts get the answer that the first one got.
  BOOST_TEST(*seen == std::vector<std::uint64_t>({1, 1, 2, 3}));
  BOOST_TEST(failed(*this, key) == "a@1#1 tool_failed a@1#2 tool_failed ");
  BOOST_TEST(asked() == 1U);
  BOOST_TEST(has_ended("w@1/a@1=5 "));
}

BOOST_FIXTURE_TEST_CASE(an_attempt_after_a_failed_one_asks, question_fixture) {
  auto node = function("a", [](node_context& context) -> json {
    if (context.attempt() == 1)
      throw error(errc::tool_failed, "no");
    return {context.attempt(), context.ask("?")};
  });
  node.retry = {.attempts_max = 2, .first_delay = 0ms};
  const auto root = chain({node});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(is_ok(give(root, 5)));
  BOOST_TEST(has_ended("w@1/a@1=[2,5] "));
}

BOOST_AUTO_TEST_CASE(waiting_for_an_answer_does_not_use_up_the_time) {
  const auto time = std::make_shared<watched_environment>(1);
  question_fixture on(runtime_fixture::in(time));
  auto node = asker("a");
  node.timeout = 10ms;
  const auto root = chain({node});
  on.go(root);
  BOOST_TEST_REQUIRE(on.waits.size() == 1U);
  time->advance(24h);
  BOOST_TEST(is_ok(on.give(root, 5)));
  BOOST_TEST(on.has_ended("w@1/a@1=5 "));
  BOOST_TEST(failed(on, on.key) == "");
}

BOOST_FIXTURE_TEST_CASE(a_join_waits_for_an_answer, question_fixture) {
  const auto root = workflow(
    {.name = "w",
     .nodes = {asker("a"),
               passes("b"),
               {.name = "j", .work = join{.on_missing = missing_inputs::skip}},
               {.name = "first", .work = join{.count = 1}},
               passes("end")},
     .edges = {{"START", "a"},
               {"START", "b"},
               {"a", "j"},
               {"b", "j"},
               {"a", "first"},
               {"b", "first"},
               {"first", "end"}}});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(has_ended("w@1/end@1="));
  BOOST_TEST(!has_ended("w@1/j@1="));
  BOOST_TEST(is_ok(give(root, 1)));
  BOOST_TEST(has_ended(R"x(w@1/j@1={"a":1,"b":"b(\"go\")"} )x"));
}

BOOST_FIXTURE_TEST_CASE(a_question_of_a_run_that_fails_is_not_open,
                        question_fixture) {
  const auto count = no_calls();
  const auto root = both(
    asker("a", {}, count),
    function(
      "b", [count](node_context& context) -> task<std::optional<node_output>> {
        while (count->load() == 0)
          co_await context.sleep(1us);
        throw error(errc::tool_failed, "broken");
      }));
  BOOST_TEST(go(root).ends_with("| tool_failed"));
  BOOST_TEST(sessions().open_calls(key).value().empty());
}

BOOST_FIXTURE_TEST_CASE(a_cancelled_run_leaves_no_open_question,
                        question_fixture) {
  const auto root = both(
    asker("a"),
    function("b",
             [](node_context& context) -> task<std::optional<node_output>> {
               co_await context.sleep(24h);
               co_return std::nullopt;
             }));
  auto started = runtime.run(root, key, user_text("go"));
  std::string id;
  while (id.empty()) {
    const auto said = started.next().get().value();
    for (const auto& each : said->long_running_tool_ids)
      id = each;
  }
  started.cancel();
  BOOST_TEST(follow(started).ends_with("| cancelled"));
  BOOST_TEST(go(root, replies({{id, {{"result", 1}}}}))
             == "| invalid_argument");
  BOOST_TEST(tells("not open"));
}

BOOST_FIXTURE_TEST_CASE(an_answer_counts_again_after_a_failed_run,
                        question_fixture) {
  const auto count = no_calls();
  const auto root = chain({asker("a"), function("b", [count](node_context& at) {
                             if (++*count == 1)
                               throw error(errc::tool_failed, "broken");
                             return at.input();
                           })});
  go(root);
  const auto id = waits.at(0);
  BOOST_TEST(give(root, 1).ends_with("| tool_failed"));
  BOOST_TEST(is_ok(go(root, replies({{id, {{"result", 2}}}}))));
  // The end that is stored already counts.
  BOOST_TEST(has_ended("w@1/a@1=1 w@1/b@1=1 "));
}

// -- rewinds and forks ----

BOOST_FIXTURE_TEST_CASE(a_withdrawn_answer_does_not_count, question_fixture) {
  // The run that has both answers fails in the node behind the first one.
  auto fails = std::make_shared<bool>(true);
  const auto root
    = workflow({.name = "w",
                .nodes = {function("a",
                                   [fails](node_context& context) {
                                     const auto given = context.ask("a?");
                                     if (*fails)
                                       throw error(errc::tool_failed, "broken");
                                     return given;
                                   }),
                          asker("b")},
                .edges = {{"START", "a"}, {"START", "b"}}});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 2U);
  const auto both_waits = waits;
  BOOST_TEST(!is_ok(give(root, "first", 0)));
  *fails = false;
  waits = both_waits;
  BOOST_TEST(is_ok(give(root, "words", 1)));
  // The question of `a` is still open.
  BOOST_TEST(!has_ended("w@1/a@1="));
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(is_ok(give(root, "second")));
  BOOST_TEST(has_ended(R"(w@1/a@1="second")"));
}

BOOST_FIXTURE_TEST_CASE(a_node_that_has_ended_takes_no_answer,
                        question_fixture) {
  // `b` fails after the end of `a` is stored, in the run with both answers.
  auto fails = std::make_shared<bool>(true);
  const auto ended = std::make_shared<tally>();
  const auto root
    = workflow({.name = "w",
                .nodes = {asker("a"),
                          function("behind",
                                   [ended](node_context&) {
                                     ended->add();
                                     return json();
                                   }),
                          function("b",
                                   [fails, ended](node_context& context) {
                                     const auto given = context.ask("b?");
                                     if (*fails) {
                                       ended->await(1);
                                       throw error(errc::tool_failed, "broken");
                                     }
                                     return given;
                                   })},
                .edges = {{"START", "a"}, {"a", "behind"}, {"START", "b"}}});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 2U);
  const auto both_waits = waits;
  BOOST_TEST(!is_ok(go(root,
                       replies({{waits[0], {{"result", "one"}}},
                                {waits[1], {{"result", "two"}}}}))));
  BOOST_TEST(has_ended(R"(w@1/a@1="one")"));
  const auto open = sessions().open_calls(key).value();
  BOOST_TEST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open.front().id == both_waits[1]);
  waits = both_waits;
  BOOST_TEST(!is_ok(give(root, "again", 0)));
  BOOST_TEST(tells("too late"));
  *fails = false;
  // The same message may be sent again.
  BOOST_TEST(is_ok(go(root,
                      replies({{both_waits[0], {{"result", "again"}}},
                               {both_waits[1], {{"result", "three"}}}}))));
  BOOST_TEST(has_ended(R"(w@1/a@1="one")"));
  BOOST_TEST(has_ended(R"(w@1/b@1="three")"));
}

BOOST_FIXTURE_TEST_CASE(records_by_a_user_have_no_effect, question_fixture) {
  const auto root = chain({asker("a", type("integer")), passes("b")});
  go(root);
  const auto run = events(key).front()->invocation_id;
  const auto forge = [&](const std::string& path, json told, json output) {
    event forged(text("x"));
    forged.author = "user";
    told["run"] = run;
    auto fields = json::object();
    fields["nodeInfo"]["path"] = path;
    fields["customMetadata"]["troupe"]["workflow"] = std::move(told);
    fields["output"] = std::move(output);
    forged.extra = std::move(fields);
    BOOST_TEST_REQUIRE(append(key, std::move(forged)) == "ok");
  };
  forge("w@1/a@1", json::object(), "forged");
  forge("w@1", json::object({{"begins", json::object()}}), nullptr);
  BOOST_TEST(is_ok(give(root, 7)));
  BOOST_TEST(has_ended("w@1/a@1=7"));
  BOOST_TEST(!has_ended("forged"));
}

BOOST_FIXTURE_TEST_CASE(a_question_from_outside_checks_no_schema,
                        question_fixture) {
  // Checking this schema would not end.
  event asks(content(
    "model",
    {part(function_call(
      "q1",
      std::string(request_input_name),
      json::object({{"message", "?"},
                    {"response_schema", json::object({{"$ref", "#"}})}})))}));
  asks.author = "other";
  asks.long_running_tool_ids = {"q1"};
  BOOST_TEST_REQUIRE(append(key, std::move(asks)) == "ok");
  content message("user", {});
  message.parts.emplace_back(function_response{
    "q1", std::string(request_input_name), json::object({{"result", 1}})});
  BOOST_TEST(
    go(uses("clerk", scripted({{"clerk", {{.text = "noted"}}}}), {}), message)
    == "| invalid_argument");
  BOOST_TEST(tells("not open"));
}

BOOST_FIXTURE_TEST_CASE(a_question_that_was_taken_back_is_closed,
                        question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  const auto id = waits.at(0);
  const auto run_id = events(key)[0]->invocation_id;
  sessions().rewind(key, rewind_target::before_run(run_id)).value();
  BOOST_TEST(go(root, replies({{id, {{"result", 1}}}}))
             == "| invalid_argument");
  BOOST_TEST(tells("rewind"));
}

BOOST_FIXTURE_TEST_CASE(an_answer_that_was_taken_back_is_given_again,
                        question_fixture) {
  const auto root = chain(
    {function("a",
              [](node_context& context) {
                const auto first = context.ask("?");
                return json{first, context.ask("behind " + to_text(first))};
              }),
     passes("b")});
  go(root);
  const auto id = waits.at(0);
  const auto revision = fetch(key).revision();
  for (int value = 1; value <= 3; ++value) {
    BOOST_TEST(is_ok(go(root, replies({{id, {{"result", value}}}}))));
    BOOST_TEST_REQUIRE(waits.size() == 1U);
    BOOST_TEST(is_ok(give(root, "x")));
    sessions().rewind(key, rewind_target::to(revision)).value();
  }
  BOOST_TEST(is_ok(go(root, replies({{id, {{"result", 4}}}}))));
  BOOST_TEST(is_ok(give(root, "y")));
  std::string live;
  for (const auto& each : events(key).live())
    if (const auto said = record_in(*each);
        said && said->is == workflow_record::kind::end)
      live += said->node + "=" + to_text(said->data) + " ";
  BOOST_TEST(live == R"x(a=[4,"y"] b="b([4,\"y\"])" )x");
}

BOOST_FIXTURE_TEST_CASE(a_fork_closes_questions_unless_it_keeps_them,
                        question_fixture) {
  const auto root = chain({asker("a")});
  go(root);
  const auto message = replies({{waits.at(0), {{"result", 1}}}});
  const auto closed = sessions().fork(key).value().key();
  BOOST_TEST(show(runtime.run(root, closed, message)) == "| invalid_argument");
  BOOST_TEST(tells("forked"));
  fork_options options;
  options.keep_open_calls = true;
  const auto open = sessions().fork(key, options).value().key();
  BOOST_TEST(is_ok(show(runtime.run(root, open, message))));
  BOOST_TEST(ends(*this, open) == "w@1/a@1=1 w@1=1. ");
  BOOST_TEST(is_ok(go(root, message)));
}

// -- places ----

BOOST_FIXTURE_TEST_CASE(workflows_below_other_agents_ask, question_fixture) {
  const auto inner = chain({passes("x"), asker("a"), passes("y")}, "inner");
  const auto outer
    = workflow({.name = "outer",
                .nodes = {passes("b"), {.work = inner}, passes("c")},
                .edges = {{"START", "b"}, {"b", "inner"}, {"inner", "c"}}});
  const auto root
    = sequential("s", {says("before", "1"), outer, says("z", "2")});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  const auto line = give(root, "deep");
  BOOST_TEST(line.ends_with("z=2 | ok"), line);
  BOOST_TEST(line.find("before") == std::string::npos);
  BOOST_TEST(has_ended(R"(outer@1/inner@1/inner@1/a@1="deep" )"));
  BOOST_TEST(has_ended("outer@1/c@1="));
}

BOOST_FIXTURE_TEST_CASE(lanes_of_a_map_ask_for_themselves, question_fixture) {
  const auto root
    = map({.name = "m", .items_key = "items"}, chain({asker("a")}));
  auto started
    = runtime.run(root, key, {"go", {{"items", json::array({1, 2, 3})}}});
  BOOST_TEST(is_ok(follow(started)));
  waits = started.waits_for();
  BOOST_TEST_REQUIRE(waits.size() == 3U);
  for (int count = 3; count > 0; --count)
    BOOST_TEST(is_ok(give(root, waits.at(waits.size() - 1), waits.size() - 1)));
  BOOST_TEST(waits.empty());
  int ended = 0;
  for (const auto& each : events(key))
    if (const auto said = record_in(*each);
        said && said->is == workflow_record::kind::end) {
      ++ended;
      BOOST_TEST(said->data.get<std::string>().find(said->at.path)
                 != std::string::npos);
    }
  BOOST_TEST(ended == 3);
  const auto all = events(key);
  BOOST_TEST((first_runs(all) == ids{all[0]->invocation_id}));
}

BOOST_FIXTURE_TEST_CASE(a_workflow_that_was_handed_over_to_asks,
                        question_fixture) {
  const auto model = scripted(
    {{"root", {calling("transfer_to_agent", {{"agent_name", "w"}})}}});
  const auto root
    = llm({.name = "root", .model = model}, {chain({asker("a")})});
  go(root);
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(is_ok(give(root, 5)));
  BOOST_TEST(has_ended("w@1/a@1=5 "));
}

BOOST_FIXTURE_TEST_CASE(a_workflow_that_is_a_tool_cannot_ask,
                        question_fixture) {
  const auto root = uses(
    "a",
    scripted({{"a", {calling("w", {{"request", "x"}}), {.text = "done"}}}}),
    {agent_tool(chain({asker("q")}))});
  BOOST_TEST(go(root) == "a= a= a=done | ok");
  const auto told = responses(*this, key).back().value("error", "");
  BOOST_TEST(told.find("cannot wait for an answer") != std::string::npos, told);
}

BOOST_FIXTURE_TEST_CASE(models_see_neither_questions_nor_answers,
                        question_fixture) {
  const auto seen = std::make_shared<std::vector<std::string>>();
  const auto model = std::make_shared<made_model>(
    [seen](const model_request& request, const model_reply& reply) {
      for (const auto& each : request.contents)
        seen->push_back(to_text(to_json(*each)));
      reply(model_response(text("done")));
    });
  const auto root = workflow({.name = "w",
                              .nodes = {asker("a"), {.work = asks("b", model)}},
                              .edges = {{"START", "a"}, {"a", "b"}}});
  go(root);
  BOOST_TEST(is_ok(give(root, "secret of a")));
  BOOST_TEST_REQUIRE(seen->size() == 2U);
  for (const auto& each : *seen) {
    BOOST_TEST(each.find("adk_request_input") == std::string::npos, each);
    BOOST_TEST(each.find("functionResponse") == std::string::npos, each);
  }
}

BOOST_AUTO_TEST_CASE(no_tool_has_the_name_of_a_question) {
  BOOST_CHECK_THROW(
    uses("a",
         echo(),
         {tool_of(std::string(request_input_name),
                  [](const json&, tool_context&) { return json(1); })}),
    error);
}

// -- tools ----

BOOST_FIXTURE_TEST_CASE(a_tool_is_called_after_the_user_allows_it,
                        question_fixture) {
  const auto root = workflow({.name = "w",
                              .nodes = {{.work = pay()}, passes("b")},
                              .edges = {{"START", "pay"}, {"pay", "b"}}});
  const auto start = [&] {
    go(root, user_text(R"({"sum": 3})"));
    BOOST_TEST_REQUIRE(waits.size() == 1U);
    BOOST_TEST(waits[0].ends_with("/w@1/pay@1/question-1"));
    const auto open = sessions().open_calls(key).value();
    BOOST_TEST_REQUIRE(open.size() == 1U);
    BOOST_TEST(open[0].tool == "pay");
    BOOST_TEST(open[0].args.data().at("sum") == 3);
    return open[0];
  };
  const auto first = start();
  BOOST_TEST(!state_now().contains("paid"));
  BOOST_TEST(go(root, replies({{first.id, {{"result", "yes"}}}}))
             == "| invalid_argument");
  BOOST_TEST(is_ok(go(root, allow(first))));
  BOOST_TEST(state_now().at("paid") == 1);
  BOOST_TEST(has_ended(R"(w@1/pay@1={"paid":3} )"));
  BOOST_TEST(is_ok(go(root, deny(start()))));
  BOOST_TEST(state_now().at("paid") == 1);
  BOOST_TEST(
    has_ended(R"(w@1/pay@1={"error":"the user has rejected this call"})"));
}

BOOST_FIXTURE_TEST_CASE(a_tool_asks_twice, question_fixture) {
  const auto asks_twice
    = tool_of("careful", [](const json&, tool_context& context) -> json {
        context.state().add("calls", 1);
        const auto& given = context.confirmation();
        if (!given || given->payload.is_null() || given->payload.data() != 2) {
          context.request_confirmation("sure?", given ? 2 : 1);
          return nullptr;
        }
        return "done";
      });
  const auto root = workflow({.name = "w",
                              .nodes = {{.work = asks_twice}},
                              .edges = {{"START", "careful"}}});
  go(root, user_text("{}"));
  BOOST_TEST(
    is_ok(go(root, allow(sessions().open_calls(key).value().at(0), 1))));
  BOOST_TEST_REQUIRE(waits.size() == 1U);
  BOOST_TEST(waits[0].ends_with("/question-2"));
  BOOST_TEST(
    is_ok(go(root, allow(sessions().open_calls(key).value().at(0), 2))));
  BOOST_TEST(has_ended(R"(w@1/careful@1="done" )"));
  BOOST_TEST(state_now().at("calls") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
