// The pure parts of an LLM agent's turn: the history shown to the model, and
// the events of its answers.

#include "troupe/agents/turns/llm_turn.hpp"

#include "troupe/agents/summary.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/agents/turns/visible_contents.hpp"
#include "troupe/contexts/lanes/host.hpp"

#include "../await.hpp"
#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

json outcome_of(int number) {
  return {{"result", number}};
}

part thought(std::string words) {
  part made(std::move(words));
  made.thought = true;
  return made;
}

// Shows contents as `user: hi`, `model: f(c1) g(c2)`, `user: c1={"result":1}`,
// one line per content.
std::string shown(const content& said) {
  auto line = said.role + ':';
  for (const auto& element : said.parts) {
    line += ' ';
    if (const auto* words = element.text())
      line += (element.thought ? "(thinks) " : "") + *words;
    else if (const auto* call = element.call())
      line += call->name + '(' + call->id + ')';
    else if (const auto* answer = element.response())
      line += answer->id + '=' + to_text(answer->response.data());
    else
      line += to_text(std::get<value>(element.body).data());
  }
  return line;
}

// A session's history as agents write it.
class history {
public:
  void on(std::string branch) { branch_ = std::move(branch); }

  void user(std::string words) { add("user", user_text(std::move(words))); }

  void says(std::string author, std::string words) {
    add(std::move(author), content("model", {part(std::move(words))}));
  }

  void calls(std::string author, const std::vector<std::string>& ids) {
    content said("model", {});
    for (const auto& id : ids)
      said.parts.emplace_back(function_call{id, "f", json{{"of", id}}});
    add(std::move(author), std::move(said));
  }

  void
  answers(std::string author, const std::vector<std::string>& ids, int number) {
    content said("user", {});
    for (const auto& id : ids)
      said.parts.emplace_back(function_response{id, "f", outcome_of(number)});
    add(std::move(author), std::move(said));
  }

  /// Asks the user about a call, as the runtime does.
  void asks(std::string author, const std::string& id, const std::string& of) {
    content question("model", {});
    auto original = json::object();
    original["id"] = of;
    original["name"] = "f";
    auto args = json::object();
    args["originalFunctionCall"] = std::move(original);
    question.parts.emplace_back(
      function_call{id, "adk_request_confirmation", std::move(args)});
    event made(std::move(question));
    made.author = std::move(author);
    made.long_running_tool_ids = {id};
    log_.push_back(std::make_shared<const event>(std::move(made)));
  }

  void pauses(const std::string& root, const std::string& id) {
    checkpoint where;
    where.agent = root;
    where.waits_for = {id};
    log_.push_back(
      std::make_shared<const event>(make_pause_event(root, where)));
  }

  void add(std::string author, content said, bool partial = false) {
    event made(std::move(said));
    made.author = std::move(author);
    made.branch = branch_;
    made.partial = partial;
    log_.push_back(std::make_shared<const event>(std::move(made)));
  }

  void sums_up(std::string said, std::optional<std::uint64_t> end = {}) {
    log_.push_back(
      std::make_shared<const event>(make_summary_event(std::move(said), end)));
  }

  /// One line per content.
  std::string shown_to(std::string_view agent,
                       std::string_view branch = "",
                       include_contents which = include_contents::all,
                       std::uint64_t first_revision = 1) const {
    std::string seen;
    for (const auto& said :
         visible_contents(log_.slice(), agent, branch, which, first_revision))
      seen += shown(*said) + '\n';
    return seen;
  }

  event_slice events() const { return log_.slice(); }

private:
  event_log log_;
  std::string branch_;
};

struct branch_row {
  std::string branch;
  std::string viewer;
  bool visible;

  friend std::ostream& operator<<(std::ostream& out, const branch_row& row) {
    return out << '\'' << row.branch << "' seen from '" << row.viewer << '\'';
  }
};

const std::vector<branch_row> branches = {
  {"", "", true},
  {"", "a.b", true},
  {"a.b", "", true},
  {"a.b", "a.b", true},
  {"a.b", "a.b.c.d", true},
  {"a", "a.b", true},
  {"a.b", "a.bc", false},
  {"a.bc", "a.b", false},
  {"a.b.c", "a.b", false},
  {"a.b", "a.c", false},
  {"b", "a.b", false},
};

} // namespace

BOOST_AUTO_TEST_SUITE(visible_history)

BOOST_DATA_TEST_CASE(branches_show_by_segments, data::make(branches), row) {
  history events;
  events.on(row.branch);
  events.user("hi");
  BOOST_TEST(events.shown_to("writer", row.viewer)
             == (row.visible ? "user: hi\n" : ""));
}

BOOST_AUTO_TEST_CASE(own_words_and_the_users_stand_as_they_are) {
  history events;
  events.user("hi");
  events.says("writer", "hello");
  events.user("bye");
  BOOST_TEST(events.shown_to("writer")
             == "user: hi\n"
                "model: hello\n"
                "user: bye\n");
}

BOOST_AUTO_TEST_CASE(what_is_shown_is_not_copied) {
  history events;
  events.user("hi");
  const auto seen
    = visible_contents(events.events(), "writer", "", include_contents::all);
  BOOST_TEST(seen.at(0).get() == &events.events()[0]->content);
}

BOOST_AUTO_TEST_CASE(what_others_did_is_retold_with_their_names) {
  history events;
  events.says("critic", "too long");
  events.calls("critic", {"c1"});
  events.answers("critic", {"c1"}, 7);
  BOOST_TEST(events.shown_to("writer")
             == "user: For context: [critic] said: too long\n"
                "user: For context: [critic] called tool `f` with parameters: "
                "{\"of\":\"c1\"}\n"
                "user: For context: [critic] tool `f` returned result: "
                "{\"result\":7}\n");
}

BOOST_AUTO_TEST_CASE(thoughts_of_others_are_left_out) {
  history events;
  events.add("critic", content("model", {thought("hm"), "too long"}));
  events.add("critic", content("model", {thought("only this")}));
  events.add("writer", content("model", {thought("mine"), "so"}));
  BOOST_TEST(events.shown_to("writer")
             == "user: For context: [critic] said: too long\n"
                "model: (thinks) mine so\n");
}

BOOST_AUTO_TEST_CASE(events_that_say_nothing_and_pieces_are_left_out) {
  history events;
  events.add("critic", content());
  events.add("writer", content("model", {}));
  events.add("writer", text("he"), true);
  events.says("writer", "hello");
  BOOST_TEST(events.shown_to("writer") == "model: hello\n");
}

BOOST_AUTO_TEST_CASE(a_lane_sees_itself_and_what_is_above_it) {
  history events;
  events.user("hi");
  events.on("all.left");
  events.says("left", "from the left");
  events.on("all.leftmost");
  events.says("leftmost", "from the far left");
  events.on("all.left.inner.deep");
  events.says("deep", "from below");
  BOOST_TEST(events.shown_to("left", "all.left")
             == "user: hi\n"
                "model: from the left\n");
  BOOST_TEST(events.shown_to("editor", "all.left")
             == "user: hi\n"
                "user: For context: [left] said: from the left\n");
  BOOST_TEST(events.shown_to("editor")
             == "user: hi\n"
                "user: For context: [left] said: from the left\n"
                "user: For context: [leftmost] said: from the far left\n"
                "user: For context: [deep] said: from below\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(current_turns)

BOOST_AUTO_TEST_CASE(a_turn_starts_at_the_latest_word_of_the_user) {
  history events;
  events.user("old");
  events.says("writer", "old answer");
  events.user("new");
  events.calls("writer", {"c1"});
  events.answers("writer", {"c1"}, 1);
  BOOST_TEST(events.shown_to("writer", "", include_contents::none)
             == "user: new\n"
                "model: f(c1)\n"
                "user: c1={\"result\":1}\n");
}

BOOST_AUTO_TEST_CASE(a_turn_starts_at_the_latest_word_of_another_agent) {
  history events;
  events.user("hi");
  events.says("critic", "too long");
  events.says("writer", "shorter");
  BOOST_TEST(events.shown_to("writer", "", include_contents::none)
             == "user: For context: [critic] said: too long\n"
                "model: shorter\n");
}

BOOST_AUTO_TEST_CASE(what_is_not_visible_starts_no_turn) {
  history events;
  events.user("hi");
  events.on("all.other");
  events.says("other", "aside");
  events.on("all.writer");
  events.says("writer", "one");
  events.add("critic", content());
  events.add("critic", text("pie"), true);
  BOOST_TEST(events.shown_to("writer", "all.writer", include_contents::none)
             == "user: hi\n"
                "model: one\n");
}

// Earlier events were not read; the part must not begin with an answer.
BOOST_AUTO_TEST_CASE(a_part_of_a_history_begins_with_a_question) {
  history events;
  events.answers("writer", {"c0"}, 1);
  events.says("writer", "old answer");
  events.user("new");
  events.says("writer", "new answer");
  BOOST_TEST(events.shown_to("writer", "", include_contents::all, 7)
             == "user: new\n"
                "model: new answer\n");
  BOOST_TEST(events.shown_to("writer", "", include_contents::all, 1)
             == "model: old answer\n"
                "user: new\n"
                "model: new answer\n");
}

BOOST_AUTO_TEST_CASE(a_summary_stands_for_what_came_before_it) {
  history events;
  events.user("one");
  events.sums_up("first");
  events.user("two");
  events.says("writer", "kept");
  events.sums_up("second", 2);
  events.user("three");
  const std::string context
    = "user: For context, a summary of what came before: second\n";
  BOOST_TEST(events.shown_to("writer", "", include_contents::since_summary)
             == context
                  + "user: two\n"
                    "model: kept\n"
                    "user: three\n");
  // Agents that do not ask for the summary read all events.
  BOOST_TEST(events.shown_to("writer")
             == "user: one\n"
                "user: two\n"
                "model: kept\n"
                "user: three\n");
}

BOOST_AUTO_TEST_CASE(without_a_summary_all_is_shown) {
  history events;
  events.user("one");
  events.says("writer", "two");
  BOOST_TEST(events.shown_to("writer", "", include_contents::since_summary)
             == "user: one\n"
                "model: two\n");
}

// The call was open when the summary was made, and is answered later.
BOOST_AUTO_TEST_CASE(a_summary_hides_no_call_that_is_answered_later) {
  history events;
  events.user("one");
  events.calls("writer", {"c1"});
  events.sums_up("first");
  events.answers("writer", {"c1"}, 1);
  BOOST_TEST(events.shown_to("writer", "", include_contents::since_summary)
             == "user: For context, a summary of what came before: first\n"
                "model: f(c1)\n"
                "user: c1={\"result\":1}\n");
}

BOOST_AUTO_TEST_CASE(an_agent_that_is_alone_sees_all_it_said) {
  history events;
  events.says("writer", "one");
  events.says("writer", "two");
  BOOST_TEST(events.shown_to("writer", "", include_contents::none)
             == "model: one\n"
                "model: two\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(calls_and_responses)

BOOST_AUTO_TEST_CASE(responses_move_behind_their_call) {
  history events;
  events.calls("writer", {"c1"});
  events.user("meanwhile");
  events.answers("writer", {"c1"}, 1);
  events.says("writer", "done");
  BOOST_TEST(events.shown_to("writer")
             == "model: f(c1)\n"
                "user: c1={\"result\":1}\n"
                "user: meanwhile\n"
                "model: done\n");
}

BOOST_AUTO_TEST_CASE(a_call_whose_response_is_the_newest_stands_at_the_end) {
  history events;
  events.calls("writer", {"c1"});
  events.user("meanwhile");
  events.says("writer", "I wait");
  events.answers("user", {"c1"}, 1);
  BOOST_TEST(events.shown_to("writer")
             == "user: meanwhile\n"
                "model: I wait\n"
                "model: f(c1)\n"
                "user: c1={\"result\":1}\n");
}

BOOST_AUTO_TEST_CASE(the_newest_of_several_responses_counts) {
  history events;
  events.calls("writer", {"c1"});
  events.answers("writer", {"c1"}, 1);
  events.says("writer", "it is under way");
  events.answers("user", {"c1"}, 2);
  events.says("writer", "done");
  BOOST_TEST(events.shown_to("writer")
             == "model: f(c1)\n"
                "user: c1={\"result\":2}\n"
                "model: it is under way\n"
                "model: done\n");
}

BOOST_AUTO_TEST_CASE(questions_about_calls_are_not_for_models) {
  history events;
  events.user("hi");
  events.calls("writer", {"c1"});
  events.asks("writer", "q", "c1");
  // The run that asked did not pause and never will.
  BOOST_TEST(events.shown_to("writer")
             == "user: hi\n"
                "model: f(c1)\n"
                "user: c1={\"error\":\"the run ended before the tool had "
                "answered\"}\n");
  events.pauses("writer", "q");
  BOOST_TEST(events.shown_to("writer")
             == "user: hi\n"
                "model: f(c1)\n"
                "user: c1={\"status\":\"waiting for an answer from "
                "outside\"}\n");
  events.add(
    "user",
    content("user",
            {part(function_response{
              "q", "adk_request_confirmation", json{{"confirmed", true}}})}));
  events.answers("writer", {"c1"}, 1);
  BOOST_TEST(events.shown_to("writer")
             == "user: hi\n"
                "model: f(c1)\n"
                "user: c1={\"result\":1}\n");
  BOOST_TEST(events.shown_to("other").find("confirmation")
             == std::string::npos);
}

BOOST_AUTO_TEST_CASE(calls_with_one_id_have_responses_of_their_own) {
  history events;
  events.calls("writer", {"c"});
  events.answers("writer", {"c"}, 1);
  events.calls("writer", {"c"});
  events.answers("writer", {"c"}, 2);
  events.says("writer", "done");
  BOOST_TEST(events.shown_to("writer")
             == "model: f(c)\n"
                "user: c={\"result\":1}\n"
                "model: f(c)\n"
                "user: c={\"result\":2}\n"
                "model: done\n");
}

BOOST_AUTO_TEST_CASE(an_answer_to_a_call_does_not_begin_a_turn) {
  history events;
  events.user("before");
  events.says("writer", "old");
  events.user("now");
  events.calls("writer", {"c1"});
  events.answers("user", {"c1"}, 1);
  BOOST_TEST(events.shown_to("writer", "", include_contents::none)
             == "user: now\n"
                "model: f(c1)\n"
                "user: c1={\"result\":1}\n");
}

BOOST_AUTO_TEST_CASE(what_the_user_answers_to_another_agent_is_told) {
  history events;
  events.calls("writer", {"c1"});
  events.answers("user", {"c1"}, 1);
  BOOST_TEST(events.shown_to("editor")
             == "user: For context: [writer] called tool `f` with parameters: "
                "{\"of\":\"c1\"}\n"
                "user: For context: [user] tool `f` returned result: "
                "{\"result\":1}\n");
}

BOOST_AUTO_TEST_CASE(responses_of_one_turn_are_one_content_in_call_order) {
  history events;
  events.calls("writer", {"c1", "c2", "c3"});
  events.answers("writer", {"c3"}, 3);
  events.answers("writer", {"c2", "c1"}, 0);
  BOOST_TEST(
    events.shown_to("writer")
    == "model: f(c1) f(c2) f(c3)\n"
       "user: c1={\"result\":0} c2={\"result\":0} c3={\"result\":3}\n");
}

BOOST_AUTO_TEST_CASE(loose_responses_are_left_out) {
  history events;
  events.answers("writer", {"gone"}, 1);
  events.calls("writer", {"c1"});
  events.answers("writer", {"c1", "other"}, 1);
  BOOST_TEST(events.shown_to("writer")
             == "model: f(c1)\n"
                "user: c1={\"result\":1}\n");
}

// The history of a cancelled or killed run must still be valid for models.
BOOST_AUTO_TEST_CASE(a_call_without_a_response_is_closed_with_an_error) {
  history events;
  events.calls("writer", {"c1", "c2"});
  events.answers("writer", {"c2"}, 2);
  events.user("again");
  events.calls("writer", {"c3"});
  const std::string closed
    = "{\"error\":\"the run ended before the tool had answered\"}";
  BOOST_TEST(events.shown_to("writer")
             == "model: f(c1) f(c2)\n"
                "user: c1="
                  + closed
                  + " c2={\"result\":2}\n"
                    "user: again\n"
                    "model: f(c3)\n"
                    "user: c3="
                  + closed + "\n");
}

// The user's text in the message of a response is kept.
BOOST_AUTO_TEST_CASE(words_beside_a_response_are_kept) {
  history events;
  events.calls("writer", {"c1"});
  events.add(
    "user",
    content("user",
            {function_response{"c1", "f", outcome_of(1)}, "and hurry"}));
  const auto seen = events.shown_to("writer");
  BOOST_TEST(seen.find("and hurry") != std::string::npos, seen);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(instructions)

namespace {

result<std::string> now_resolve(const instruction& source,
                                const readonly_context& context) {
  return now(resolve_instruction(source, context));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_template_is_filled_and_a_provider_used_as_it_is) {
  const run_facts facts;
  state_snapshot known;
  known.session.set("topic", json("owls"));
  const readonly_context context(facts, "writer", state(known));
  const auto provider = [](const readonly_context& asked) {
    return asked.agent_name() + " {topic} "
           + asked.state().get<std::string>("topic");
  };
  BOOST_TEST(now_resolve("On {topic}", context).value() == "On owls");
  BOOST_TEST(now_resolve(instruction(), context).value().empty());
  BOOST_TEST(now_resolve(provider, context).value() == "writer {topic} owls");
  BOOST_TEST(code_of(now_resolve("On {mice}", context)) == "template_error");
}

BOOST_AUTO_TEST_CASE(a_provider_that_throws_is_a_failed_callback) {
  const run_facts facts;
  const readonly_context context(facts, "writer", state());
  using provider = instruction_provider;
  const provider standard
    = [](const auto&) -> std::string { throw std::runtime_error("no idea"); };
  const provider number = [](const auto&) -> std::string { throw 7; };
  const provider own = [](const auto& asked) {
    return asked.state().template get<std::string>("topic");
  };
  const auto failed = now_resolve(standard, context);
  BOOST_TEST(code_of(failed) == "callback_failed");
  BOOST_TEST(reason_of(failed).find("'writer'") != std::string::npos);
  BOOST_TEST(reason_of(failed).find("no idea") != std::string::npos);
  BOOST_TEST(code_of(now_resolve(number, context)) == "callback_failed");
  BOOST_TEST(code_of(now_resolve(own, context)) == "not_found");
}

BOOST_AUTO_TEST_CASE(a_provider_may_be_a_coroutine) {
  const run_facts facts;
  const readonly_context context(facts, "writer", state());
  const auto provider = [](const readonly_context& asked) -> task<std::string> {
    co_return asked.agent_name() + " {topic}";
  };
  const auto broken = [](const readonly_context&) -> task<std::string> {
    throw std::runtime_error("no idea");
    co_return "";
  };
  BOOST_TEST(now_resolve(provider, context).value() == "writer {topic}");
  const auto failed = now_resolve(broken, context);
  BOOST_TEST(code_of(failed) == "callback_failed");
  BOOST_TEST(reason_of(failed).find("no idea") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(response_events)

namespace {

struct asked_writer {
  asked_writer() { options.output_key = "draft"; }

  event answers(std::vector<part> parts, bool partial = false) {
    model_response response(content("model", std::move(parts)));
    response.partial = partial;
    return make_response_event(options, std::move(response), time).value();
  }

  /// Returns the state delta of the event.
  static std::string change(const event& said) {
    return to_text(said.actions.state_delta.to_json());
  }

  llm_options options;
  simulated_environment time{1};
};

} // namespace

BOOST_FIXTURE_TEST_CASE(the_text_of_a_final_answer_goes_to_the_output_key,
                        asked_writer) {
  BOOST_TEST(change(answers({"An ", "owl."})) == R"({"draft":"An owl."})");
  BOOST_TEST(change(answers({thought("hm"), "owl", thought("yes"), "s"}))
             == R"({"draft":"owls"})");
  BOOST_TEST(change(answers({""})) == R"({"draft":""})");
}

BOOST_FIXTURE_TEST_CASE(answers_without_final_text_change_nothing,
                        asked_writer) {
  BOOST_TEST(change(answers({})) == "{}");
  BOOST_TEST(change(answers({thought("only a thought")})) == "{}");
  BOOST_TEST(change(answers({"wait", function_call{"c", "f", json::object()}}))
             == "{}");
  BOOST_TEST(change(answers({"a piece"}, true)) == "{}");
  BOOST_TEST(change(answers({function_response{"c", "f", json::object()}}))
             == "{}");
}

BOOST_FIXTURE_TEST_CASE(the_output_key_may_have_any_scope, asked_writer) {
  for (const auto* key : {"app:draft", "user:draft", "temp:draft"}) {
    options.output_key = key;
    BOOST_TEST(change(answers({"owl"}))
               == R"({")" + std::string(key) + R"(":"owl"})");
  }
  options.output_key.clear();
  BOOST_TEST(change(answers({"owl"})) == "{}");
}

// The ids that models give to calls need not be unique in a session.
BOOST_FIXTURE_TEST_CASE(calls_get_ids_of_our_own, asked_writer) {
  const auto said = answers({function_call{"", "f", json::object()},
                             function_call{"call_0", "f", json::object()},
                             function_call{"", "f", json::object()}});
  const auto id = [&said](std::size_t index) {
    return said.content.parts[index].call()->id;
  };
  BOOST_TEST(id(0).starts_with("adk-"));
  BOOST_TEST(id(1).starts_with("adk-"));
  BOOST_TEST(id(2).starts_with("adk-"));
  BOOST_TEST(id(0) != id(2));
}

BOOST_FIXTURE_TEST_CASE(an_answer_keeps_its_wire_fields, asked_writer) {
  model_response response(content("", {"cut off"}));
  response.extra = json{{"finishReason", "MAX_TOKENS"}};
  const auto said = make_response_event(options, response, time).value();
  BOOST_TEST(said.field("finishReason") == "MAX_TOKENS");
  BOOST_TEST(said.content.role == "model");
  BOOST_TEST(!said.partial);
  BOOST_TEST(answers({"a piece"}, true).partial);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tool_events)

namespace {

tool_call answered(std::string id, result<json> outcome) {
  tool_call done;
  done.call = {std::move(id), "f", json::object()};
  done.outcome = std::move(outcome);
  return done;
}

tool_call recording(std::string id, operation_kind kind, json operand) {
  auto done = answered(std::move(id), json::object());
  done.recorded.record("n", kind, std::move(operand)).value();
  return done;
}

} // namespace

BOOST_AUTO_TEST_CASE(responses_stand_in_call_order) {
  const auto said = make_tool_event({answered("c2", json{{"a", 1}}),
                                     answered("c1", json(7)),
                                     answered("c3", json())});
  BOOST_TEST(shown(said.content)
             == R"(user: c2={"a":1} c1={"result":7} c3={"result":null})");
}

BOOST_AUTO_TEST_CASE(a_failed_call_is_an_error_result) {
  const auto said = make_tool_event(
    {answered("c1", error(errc::tool_failed, "no such file"))});
  BOOST_TEST(shown(said.content) == R"(user: c1={"error":"no such file"})");
}

BOOST_AUTO_TEST_CASE(deltas_are_merged_in_call_order) {
  using kind = operation_kind;
  const auto shown = [](const std::vector<tool_call>& calls) {
    const auto said = make_tool_event(calls);
    return to_text(said.actions.state_delta.to_json())
           + to_text(said.actions.state_delta.typed_to_json());
  };
  BOOST_TEST(shown({recording("a", kind::set, 1), recording("b", kind::set, 2)})
             == R"({"n":2}[])");
  BOOST_TEST(shown({recording("b", kind::set, 2), recording("a", kind::set, 1)})
             == R"({"n":1}[])");
  BOOST_TEST(shown({recording("a", kind::set, 1), recording("b", kind::add, 2)})
             == R"({"n":1}[{"key":"n","op":"add","value":2}])");
  BOOST_TEST(shown({answered("a", json()), answered("b", json())}) == "{}[]");
}

BOOST_AUTO_TEST_CASE(actions_are_merged) {
  auto first = answered("c1", json::object());
  first.actions.escalate = true;
  first.actions.transfer_to_agent = "early";
  first.actions.artifact_delta = {{"a", 1}, {"b", 1}};
  first.actions.extra
    = json{{"requestedToolConfirmations", {{"c1", json::object()}}}};
  auto second = answered("c2", json::object());
  second.actions.skip_summarization = true;
  second.actions.transfer_to_agent = "late";
  second.actions.artifact_delta = {{"b", 2}};
  const auto said = make_tool_event({first, answered("c3", json()), second});
  BOOST_TEST(said.actions.escalate);
  BOOST_TEST(said.actions.skip_summarization);
  BOOST_TEST(said.actions.transfer_to_agent == "late");
  BOOST_TEST((said.actions.artifact_delta
              == std::map<std::string, std::int64_t>{{"a", 1}, {"b", 2}}));
  BOOST_TEST(to_text(said.actions.extra.data())
             == R"({"requestedToolConfirmations":{"c1":{}}})");
  BOOST_TEST(!make_tool_event({answered("c", json())}).actions.escalate);
}

BOOST_AUTO_TEST_SUITE_END()
