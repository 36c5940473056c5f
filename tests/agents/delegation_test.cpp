// Agents that are called: their tools, their branches, and open tasks.

#include "troupe/agents/turns/delegation.hpp"

#include "troupe/models/scripted_model.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(called_agents_and_tasks)

namespace {

// The history of a session with tasks.
class session_with_tasks {
public:
  void add(std::string author,
           part said,
           std::string scope = {},
           std::string branch = {}) {
    event made(content(author == "user" ? "user" : "model", {std::move(said)}));
    made.author = std::move(author);
    made.branch = std::move(branch);
    set_scope(made, scope);
    log_.push_back(std::make_shared<const event>(std::move(made)));
  }

  void user(std::string scope = {}) { add("user", "words", std::move(scope)); }

  void calls(const std::string& author,
             const std::string& name,
             const std::string& id,
             std::string scope = {},
             std::string branch = {}) {
    add(author,
        function_call{id, name, json{{"request", "x"}}},
        std::move(scope),
        std::move(branch));
  }

  void answers(const std::string& author, const std::string& id) {
    add(author, function_response{id, "t", json::object()});
  }

  void ends(const std::string& scope, const json& with) {
    add("t",
        function_call{"f" + scope, "finish_task", json{{"result", 1}}},
        scope);
    add("t", function_response{"f" + scope, "finish_task", with}, scope);
  }

  std::string open() const { return open_task(log_.slice(), {"t", "inner"}); }

  event_slice events() const { return log_.slice(); }

private:
  event_log log_;
};

const json well{{"result", "Task completed."}};

llm_options with_schema(const char* schema) {
  llm_options options{.name = "t", .mode = agent_mode::task};
  if (schema != nullptr)
    options.output_schema = json_schema(json::parse(schema));
  return options;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_branch_names_the_call_of_its_agent) {
  BOOST_TEST(delegation_branch("", "t", "c1") == "t@c1");
  BOOST_TEST(delegation_branch("a.b", "t", "c1") == "a.b.t@c1");
  BOOST_TEST(call_of_branch("a.b.t@c1") == "c1");
  BOOST_TEST(call_of_branch("t@c1.lane") == "");
  BOOST_TEST(call_of_branch("") == "");
  // A node of a workflow of ADK.
  BOOST_TEST(call_of_branch("node@1") == "");
}

BOOST_AUTO_TEST_CASE(a_task_is_open_from_its_call_to_the_response) {
  session_with_tasks on;
  BOOST_TEST(on.open() == "");
  on.user();
  on.calls("root", "other", "c0");
  BOOST_TEST(on.open() == "");
  on.calls("root", "t", "c1");
  BOOST_TEST(on.open() == "c1");
  on.user("c1");
  BOOST_TEST(on.open() == "c1");
  on.answers("root", "c1");
  BOOST_TEST(on.open() == "");
}

BOOST_AUTO_TEST_CASE(the_innermost_task_gets_the_message) {
  session_with_tasks on;
  on.user();
  on.calls("root", "t", "c1");
  on.calls("t", "inner", "c2", "c1", "t@c1");
  BOOST_TEST(on.open() == "c2");
  BOOST_TEST(outermost_caller(on.events(), "c2") == "root");
  BOOST_TEST(outermost_caller(on.events(), "c9") == "");
  on.ends("c2", well);
  BOOST_TEST(on.open() == "c1");
  on.ends("c1", well);
  BOOST_TEST(on.open() == "");
}

BOOST_AUTO_TEST_CASE(of_the_tasks_of_one_turn_the_first_one_is_open) {
  session_with_tasks on;
  on.user();
  on.calls("root", "t", "c1");
  on.calls("root", "t", "c2");
  BOOST_TEST(on.open() == "c1");
  const auto left = open_tasks(on.events(), "root", "", {"t"}, 0);
  BOOST_REQUIRE(left.size() == 2U);
  BOOST_TEST(left[0].id == "c1");
  on.answers("root", "c1");
  BOOST_TEST(on.open() == "c2");
}

BOOST_AUTO_TEST_CASE(a_failed_end_leaves_a_task_open) {
  session_with_tasks on;
  on.user();
  on.calls("root", "t", "c1");
  on.ends("c1", {{"error", "the arguments do not fit"}});
  BOOST_TEST(on.open() == "c1");
  BOOST_TEST(!end_of_task(on.events(), "c1").has_value());
  on.ends("c1", well);
  BOOST_TEST(end_of_task(on.events(), "c1").value() == json({{"result", 1}}));
}

// A program without the agents of a task has gone on with the conversation.
BOOST_AUTO_TEST_CASE(a_message_outside_of_a_task_gives_it_up) {
  session_with_tasks on;
  on.user();
  on.calls("root", "t", "c1");
  on.user();
  BOOST_TEST(on.open() == "");
  // The message of the run itself does not.
  BOOST_TEST(open_tasks(on.events(), "root", "", {"t"}, 3).size() == 1U);
  BOOST_TEST(open_tasks(on.events(), "root", "", {"t"}, 0).empty());
  BOOST_TEST(open_tasks(on.events(), "root", "x", {"t"}, 3).empty());
  BOOST_TEST(open_tasks(on.events(), "other", "", {"t"}, 3).empty());
}

BOOST_AUTO_TEST_CASE(an_answer_belongs_to_the_task_of_its_call) {
  session_with_tasks on;
  on.user();
  on.calls("root", "t", "c1");
  on.calls("t", "pay", "c2", "c1", "t@c1");
  const content answer("user",
                       {part(function_response{"c2", "pay", json::object()})});
  const content other("user",
                      {part(function_response{"c1", "t", json::object()})});
  BOOST_TEST(scope_of_message(answer, on.events(), {"t"}) == "c1");
  BOOST_TEST(scope_of_message(other, on.events(), {"t"}) == "");
  BOOST_TEST(scope_of_message(user_text("hi"), on.events(), {"t"}) == "c1");
}

BOOST_AUTO_TEST_CASE(the_request_is_the_arguments_of_the_call) {
  session_with_tasks on;
  on.calls("root", "t", "c1");
  const auto task = request_of_call(on.events(), "c1", agent_mode::task);
  BOOST_REQUIRE(task.has_value());
  BOOST_TEST(task->role == "user");
  BOOST_TEST(task->parts.size() == 1U);
  BOOST_TEST(*task->parts[0].text() == R"({"request":"x"})");
  const auto single
    = request_of_call(on.events(), "c1", agent_mode::single_turn);
  BOOST_TEST(single->parts.size() == 2U);
  BOOST_TEST(!request_of_call(on.events(), "c2", agent_mode::task));
}

BOOST_AUTO_TEST_CASE(finish_task_takes_the_output) {
  const auto text = finish_task_tool(with_schema(nullptr));
  BOOST_TEST(text.name() == "finish_task");
  BOOST_TEST(code_of(text.check({{"result", "x"}})) == "ok");
  BOOST_TEST(code_of(text.check({{"result", 1}})) == "invalid_argument");
  BOOST_TEST(code_of(text.check(json::object())) == "invalid_argument");
  const auto object
    = finish_task_tool(with_schema(R"({"type": "object", "required": ["x"]})"));
  BOOST_TEST(code_of(object.check({{"x", 1}})) == "ok");
  BOOST_TEST(code_of(object.check({{"result", 1}})) == "invalid_argument");
  const auto list = finish_task_tool(with_schema(
    R"({"type": "array", "items": {"$ref": "#/$defs/n"},
        "$defs": {"n": {"type": "integer"}}})"));
  BOOST_TEST(code_of(list.check({{"result", {1, 2}}})) == "ok");
  BOOST_TEST(code_of(list.check({{"result", {"x"}}})) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_response_to_a_task_is_its_output) {
  BOOST_TEST(response_of_task(with_schema(nullptr), {{"result", "x"}})
             == json({{"result", "x"}}));
  BOOST_TEST(response_of_task(with_schema(R"({"type": "object"})"), {{"x", 1}})
             == json({{"x", 1}}));
  BOOST_TEST(
    response_of_task(with_schema(R"({"type": "integer"})"), {{"result", 3}})
    == json({{"output", 3}}));
}

BOOST_AUTO_TEST_SUITE_END()
