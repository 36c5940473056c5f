// The model that answers from data: order, placeholders, failures, latency, and
// valid scripts.

#include "troupe/models/scripted_model.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

namespace {

script script_of(std::string_view text) {
  return script_from_json(parse_json(text).value()).value();
}

// A model whose answers are kept as text.
class conversation {
public:
  explicit conversation(std::string_view replies)
    : model_(script_of(replies)) {}

  void instruction(std::string text) { instruction_ = std::move(text); }

  void hears(content said) {
    contents_.push_back(std::make_shared<const content>(std::move(said)));
  }

  void lives_in(std::shared_ptr<environment> where) {
    environment_ = std::move(where);
  }

  /// Returns the immediate result: the answer as text, `CODE: reason`, or
  /// `nothing`.
  std::string ask(const std::string& agent) {
    model_request request;
    request.agent = agent;
    request.system_instruction = instruction_;
    request.contents = contents_;
    request.environment = environment_;
    const auto answers_before = answers_.size();
    model_.generate(std::move(request), [this](result<model_response> answer) {
      answers_.push_back(answer ? shown(*answer) : to_string(answer.error()));
    });
    return answers_.size() == answers_before ? "nothing" : answers_.back();
  }

  const std::vector<std::string>& answers() const { return answers_; }

private:
  static std::string shown(const model_response& answer) {
    BOOST_TEST(answer.content.role == "model");
    BOOST_TEST(!answer.partial);
    std::string text;
    for (const auto& element : answer.content.parts) {
      text += text.empty() ? "" : " | ";
      if (const auto* call = element.call())
        text += call->name + to_text(call->args.data())
                + (call->id.empty() ? "" : '#' + call->id);
      else
        text += *element.text();
    }
    return text;
  }

  scripted_model model_;
  std::string instruction_;
  std::vector<std::shared_ptr<const content>> contents_;
  std::shared_ptr<environment> environment_;
  std::vector<std::string> answers_;
};

const std::vector<std::pair<std::string, std::string>> refused_scripts = {
  {R"([])", "script"},
  {R"("hi")", "script"},
  {R"({"a": "hi"})", "'a'"},
  {R"({"a": []})", "'a'"},
  {R"({"b": ["fine"], "a": ["fine", 1]})", "'a', reply 2"},
  {R"({"a": [null]})", "'a', reply 1"},
  {R"({"a": [[]]})", "'a', reply 1"},
  {R"({"a": [{}]})", "'a', reply 1"},
  {R"({"a": [{"latency_ms": 5}]})", "'a', reply 1"},
  {R"({"a": [{"text": 1}]})", "text"},
  {R"({"a": [{"txt": "hi"}]})", "txt"},
  {R"({"a": [{"error": true}]})", "error"},
  {R"({"a": [{"text": "", "latency_ms": "5"}]})", "latency_ms"},
  {R"({"a": [{"text": "", "latency_ms": -1}]})", "latency_ms"},
  {R"({"a": [{"text": "", "latency_ms": 1e300}]})", "latency_ms"},
  {R"({"a": [{"function_calls": {}}]})", "function_calls"},
  {R"({"a": [{"function_calls": ["f"]}]})", "'a', reply 1"},
  {R"({"a": [{"function_calls": [{"args": {}}]}]})", "name"},
  {R"({"a": [{"function_calls": [{"name": 1}]}]})", "name"},
  {R"({"a": [{"function_calls": [{"name": "f", "args": [1]}]}]})", "args"},
  {R"({"a": [{"function_calls": [{"name": "f", "id": 1}]}]})", "id"},
  {R"({"a": [{"function_calls": [{"name": "f", "arguments": {}}]}]})",
   "arguments"},
};

} // namespace

BOOST_AUTO_TEST_SUITE(scripted_models)

BOOST_AUTO_TEST_CASE(replies_come_in_order_and_the_last_one_repeats) {
  conversation model(
    R"({"a": ["one", {"text": "two"}, "three"], "b": ["other"]})");
  BOOST_TEST(model.ask("a") == "one");
  BOOST_TEST(model.ask("b") == "other");
  BOOST_TEST(model.ask("a") == "two");
  BOOST_TEST(model.ask("b") == "other");
  for (int count = 0; count < 3; ++count)
    BOOST_TEST(model.ask("a") == "three");
}

BOOST_AUTO_TEST_CASE(a_star_answers_for_agents_without_replies) {
  conversation model(R"({"a": ["mine"], "*": ["one", "two"]})");
  BOOST_TEST(model.ask("x") == "one");
  BOOST_TEST(model.ask("a") == "mine");
  BOOST_TEST(model.ask("y") == "two");
  BOOST_TEST(model.ask("x") == "two");
}

BOOST_AUTO_TEST_CASE(an_agent_without_replies_is_a_failure_that_names_it) {
  conversation model(R"({"a": ["hi"]})");
  const auto answer = model.ask("stranger");
  BOOST_TEST(answer.starts_with("model_failed: "));
  BOOST_TEST(answer.find("'stranger'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(placeholders_stand_for_instruction_and_input) {
  conversation model(
    R"({"a": ["<${instruction}|${input}|${input}>", "${other} $input ${input"]})");
  model.instruction("Be brief");
  model.hears(user_text("first"));
  model.hears(user_text("last"));
  model.hears(text("an answer"));
  BOOST_TEST(model.ask("a") == "<Be brief|last|last>");
  BOOST_TEST(model.ask("a") == "${other} $input ${input");
}

BOOST_AUTO_TEST_CASE(what_was_inserted_is_not_looked_at_again) {
  conversation model(R"({"a": ["${instruction} ${input}"]})");
  model.instruction("${input}");
  model.hears(user_text("${instruction}"));
  BOOST_TEST(model.ask("a") == "${input} ${instruction}");
}

BOOST_AUTO_TEST_CASE(input_is_the_last_user_text_not_a_response) {
  conversation model(R"({"a": ["[${input}]"]})");
  BOOST_TEST(model.ask("a") == "[]");
  model.hears(user_text("question"));
  model.hears(content("model", {function_call{"c", "f", json::object()}}));
  model.hears(content("user", {function_response{"c", "f", json::object()}}));
  BOOST_TEST(model.ask("a") == "[question]");
}

BOOST_AUTO_TEST_CASE(calls_keep_their_order_and_stand_behind_the_text) {
  conversation model(R"({"a": [
    {"function_calls": [{"name": "f", "args": {"x": 1}}, {"name": "g", "id": "c7"}]},
    {"text": "let me see", "function_calls": [{"name": "f"}]},
    {"text": ""}]})");
  BOOST_TEST(model.ask("a") == R"(f{"x":1} | g{}#c7)");
  BOOST_TEST(model.ask("a") == "let me see | f{}");
  BOOST_TEST(model.ask("a") == "");
}

BOOST_AUTO_TEST_CASE(a_scripted_error_fails_the_call_and_counts_as_a_reply) {
  conversation model(R"({"a": [{"error": "quota is used up"}, "fine"]})");
  BOOST_TEST(model.ask("a") == "model_failed: quota is used up");
  BOOST_TEST(model.ask("a") == "fine");
}

BOOST_AUTO_TEST_CASE(latency_passes_in_the_time_of_the_environment) {
  conversation model(R"({"slow": [{"text": "late", "latency_ms": 200}],
                         "fast": [{"text": "early", "latency_ms": 100}],
                         "bad": [{"error": "no", "latency_ms": 150}],
                         "now": ["at once"]})");
  const auto time = std::make_shared<simulated_environment>(1);
  model.lives_in(time);
  BOOST_TEST(model.ask("slow") == "nothing");
  BOOST_TEST(model.ask("fast") == "nothing");
  BOOST_TEST(model.ask("bad") == "nothing");
  BOOST_TEST(model.ask("now") == "at once");
  time->advance(99ms);
  BOOST_TEST(model.answers().size() == 1U);
  time->advance(1ms);
  BOOST_TEST(model.answers().back() == "early");
  time->advance(1s);
  const std::vector<std::string> all
    = {"at once", "early", "model_failed: no", "late"};
  BOOST_TEST(model.answers() == all, boost::test_tools::per_element());
}

// The reply is chosen when the model is asked, independent of the order of the
// answers.
BOOST_AUTO_TEST_CASE(replies_are_chosen_in_order_of_asking) {
  conversation model(R"({"a": [{"text": "one", "latency_ms": 20}, "two"]})");
  const auto time = std::make_shared<simulated_environment>(1);
  model.lives_in(time);
  BOOST_TEST(model.ask("a") == "nothing");
  BOOST_TEST(model.ask("a") == "two");
  time->advance(20ms);
  BOOST_TEST(model.answers().back() == "one");
}

BOOST_AUTO_TEST_CASE(many_threads_use_each_reply_once) {
  constexpr int per_thread = 250;
  std::vector<scripted_reply> replies(4 * per_thread);
  for (std::size_t index = 0; index < replies.size(); ++index)
    replies[index].text = std::to_string(index);
  scripted_model model({{"a", std::move(replies)}});
  std::vector<std::vector<int>> heard(4);
  std::vector<std::thread> threads;
  for (auto& mine : heard)
    threads.emplace_back([&model, &mine] {
      for (int count = 0; count < per_thread; ++count) {
        model_request request;
        request.agent = "a";
        model.generate(std::move(request),
                       [&mine](result<model_response> answer) {
                         mine.push_back(std::stoi(answer->content.text()));
                       });
      }
    });
  for (auto& thread : threads)
    thread.join();
  std::vector<int> times(4 * per_thread, 0);
  for (const auto& mine : heard)
    for (const auto number : mine)
      ++times[std::size_t(number)];
  BOOST_TEST(times == std::vector<int>(4 * per_thread, 1),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(scripts)

BOOST_AUTO_TEST_CASE(a_bad_script_is_an_invalid_argument_that_names_the_reply) {
  for (const auto& [text, named] : refused_scripts)
    BOOST_TEST_CONTEXT(text) {
      const auto outcome = script_from_json(parse_json(text).value());
      BOOST_TEST(code_of(outcome) == "invalid_argument");
      BOOST_TEST(reason_of(outcome).find(named) != std::string::npos,
                 reason_of(outcome));
    }
}

BOOST_AUTO_TEST_CASE(a_script_without_agents_is_one) {
  BOOST_TEST(script_of("{}").empty());
}

BOOST_AUTO_TEST_SUITE_END()
