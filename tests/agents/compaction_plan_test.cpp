// The time and the events of a summary.

#include "troupe/agents/turns/compaction_plan.hpp"

#include "troupe/agents/summary.hpp"
#include "troupe/contexts/lanes/isolation.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(compaction_plans)

namespace {

// The history of a session whose event number n has the time n.
class history {
public:
  explicit history(std::uint64_t before = 0) : log_(before) {}

  void add(event said, std::string run, std::string author = "user") {
    said.author = std::move(author);
    said.invocation_id = std::move(run);
    said.timestamp
      = timestamp(std::chrono::seconds(log_.before() + log_.size() + 1));
    log_.push_back(std::make_shared<const event>(std::move(said)));
  }

  // A run with a message and an answer of these words.
  void run(const std::string& id, const std::string& words = "words") {
    add(content("user", {part(id)}), id);
    add(content("model", {part(words)}), id, "a");
  }

  void runs(int first, int last) {
    for (int number = first; number <= last; ++number)
      run("r" + std::to_string(number));
  }

  void calls(const std::string& call,
             const std::string& run,
             bool is_long = false,
             const std::string& name = "f") {
    event said(
      content("model", {part(function_call{call, name, json::object()})}));
    if (is_long)
      said.long_running_tool_ids = {call};
    add(std::move(said), run, "a");
  }

  void answers(const std::string& call, const std::string& run) {
    add(content("user", {part(function_response{call, "f", json::object()})}),
        run,
        "a");
  }

  void uses(double tokens, const std::string& run) {
    event said(content("model", {part("x")}));
    said.extra = json{{"usageMetadata", {{"promptTokenCount", tokens}}}};
    add(std::move(said), run, "a");
  }

  void in_task(const std::string& scope, const std::string& run) {
    event said(content("model", {part("inside")}));
    said.branch = "t@" + scope;
    set_scope(said, scope);
    add(std::move(said), run, "t");
  }

  void sums_up(const std::string& words, std::uint64_t end) {
    add(make_summary_event(words, end), "summary");
  }

  // `"former, former | e1 e2 > last"`, or `"none"`.
  std::string plan(const compaction_options& chosen) const {
    made = plan_compaction(log_.slice(), chosen, 1, {"t"});
    if (made.needs_older)
      return "older";
    if (made.last == 0)
      return "none";
    std::string line;
    for (const auto& each : made.request.former)
      line += each.text() + " ";
    line += "|";
    for (const auto& each : made.request.events)
      line += " " + std::to_string(each->timestamp.time_since_epoch() / 1s);
    return line + " > " + std::to_string(made.last);
  }

  mutable compaction_plan made;

private:
  event_log log_;
};

compaction_options window(std::uint64_t interval, std::uint64_t overlap = 0) {
  return {.compaction_interval = interval, .overlap_size = overlap};
}

compaction_options threshold(std::uint64_t tokens, std::uint64_t kept = 0) {
  return {.token_threshold = tokens, .event_retention_size = kept};
}

} // namespace

// -- the sliding window ----

BOOST_AUTO_TEST_CASE(a_summary_is_due_after_so_many_runs) {
  history events;
  events.runs(1, 2);
  BOOST_TEST(events.plan(window(3)) == "none");
  events.run("r3");
  BOOST_TEST(events.plan(window(3)) == "| 1 2 3 4 5 6 > 6");
  BOOST_TEST(events.made.former == 0U);
  BOOST_TEST((events.made.start_time == timestamp(1s)));
  BOOST_TEST((events.made.end_time == timestamp(6s)));
}

BOOST_AUTO_TEST_CASE(runs_are_counted_from_the_former_summary_on) {
  history events;
  events.runs(1, 2);
  events.sums_up("sum", 4);
  events.runs(3, 3);
  BOOST_TEST(events.plan(window(2)) == "none");
  events.run("r4");
  BOOST_TEST(events.plan(window(2)) == "sum | 6 7 8 9 > 9");
  BOOST_TEST(events.made.former == 5U);
  // The former summary does not tell its time, so the new one begins with all.
  BOOST_TEST((events.made.start_time == timestamp()));
}

BOOST_AUTO_TEST_CASE(runs_of_the_overlap_are_summed_up_again) {
  history events;
  events.runs(1, 3);
  events.sums_up("sum", 6);
  events.runs(4, 5);
  BOOST_TEST(events.plan(window(2, 1)) == "sum | 5 6 8 9 10 11 > 11");
  BOOST_TEST(events.plan(window(2, 2)) == "sum | 3 4 5 6 8 9 10 11 > 11");
  BOOST_TEST(events.plan(window(2, 9)) == "sum | 1 2 3 4 5 6 8 9 10 11 > 11");
}

BOOST_AUTO_TEST_CASE(older_events_are_asked_for_until_the_plan_is_sure) {
  history none(8);
  none.runs(5, 6);
  BOOST_TEST(none.plan(window(3)) == "older");
  history events(4);
  events.run("r3");
  events.sums_up("sum", 6);
  events.runs(4, 5);
  BOOST_TEST(events.plan(window(2)) == "sum | 8 9 10 11 > 11");
  BOOST_TEST(events.plan(window(2, 1)) == "older");
}

// A summary of ADK tells times alone, and events 3 and 4 may lie behind it.
BOOST_AUTO_TEST_CASE(older_events_show_where_a_summary_of_times_ends) {
  const auto ends_at_two = [](history& events) {
    auto said = make_summary_event("sum");
    auto actions = said.actions.extra.data();
    actions["compaction"]["startTimestamp"] = 1.0;
    actions["compaction"]["endTimestamp"] = 2.0;
    said.actions.extra = std::move(actions);
    events.add(std::move(said), "summary");
    events.runs(4, 5);
  };
  history newest(4);
  newest.run("r3");
  ends_at_two(newest);
  BOOST_TEST(newest.plan(window(2)) == "older");
  history events;
  events.runs(1, 3);
  ends_at_two(events);
  BOOST_TEST(events.plan(window(2)) == "sum | 3 4 5 6 8 9 10 11 > 11");
}

BOOST_AUTO_TEST_CASE(summaries_of_windows_are_all_taken_in) {
  history events;
  events.runs(1, 3);
  event first = make_summary_event("first", 2);
  events.add(first, "summary");
  event second = make_summary_event("second", 6);
  auto actions = second.actions.extra.data();
  actions["compaction"]["startRevision"] = 5;
  second.actions.extra = std::move(actions);
  events.add(second, "summary");
  events.run("r4");
  BOOST_TEST(events.plan(window(1)) == "first second | 3 4 9 10 > 10");
}

// -- the threshold of tokens ----

BOOST_AUTO_TEST_CASE(the_newest_prompt_is_compared_with_the_threshold) {
  history events;
  events.runs(1, 2);
  events.uses(99, "r3");
  BOOST_TEST(events.plan(threshold(100)) == "none");
  events.uses(100, "r3");
  BOOST_TEST(events.plan(threshold(100)) == "| 1 2 3 4 5 6 > 6");
  BOOST_TEST(events.plan(threshold(100, 4)) == "| 1 2 > 2");
  BOOST_TEST(events.plan(threshold(100, 6)) == "none");
}

BOOST_AUTO_TEST_CASE(prompts_before_the_former_summary_do_not_count) {
  history events;
  events.run("r1");
  events.uses(1'000, "r1");
  events.sums_up("sum", 1);
  events.run("r2");
  BOOST_TEST(events.plan(threshold(100)) == "none");
  events.uses(1'000, "r2");
  BOOST_TEST(events.plan(threshold(100)) == "sum | 2 3 5 6 7 > 7");
}

BOOST_AUTO_TEST_CASE(without_usage_the_tokens_are_estimated) {
  history events;
  events.run("1234", std::string(396, 'x'));
  BOOST_TEST(events.plan(threshold(101)) == "none");
  BOOST_TEST(events.plan(threshold(100)) == "| 1 2 > 2");
}

BOOST_AUTO_TEST_CASE(the_threshold_is_tried_before_the_window) {
  history events;
  events.run("r1");
  events.uses(100, "r2");
  BOOST_TEST(events.plan({.compaction_interval = 2,
                          .token_threshold = 100,
                          .event_retention_size = 1})
             == "| 1 2 > 2");
  BOOST_TEST(events.plan({.compaction_interval = 2, .token_threshold = 101})
             == "| 1 2 3 > 3");
}

BOOST_AUTO_TEST_CASE(a_kept_result_keeps_its_call) {
  history events;
  events.run("r1");
  events.calls("c", "r2");
  events.answers("c", "r2");
  events.uses(100, "r2");
  BOOST_TEST(events.plan(threshold(100, 1)) == "| 1 2 3 4 > 4");
  BOOST_TEST(events.plan(threshold(100, 2)) == "| 1 2 > 2");
  BOOST_TEST(events.plan(threshold(100, 3)) == "| 1 2 > 2");
}

// -- the events that decide ----

// Without a summary, all older events would be needed for a plan.
BOOST_AUTO_TEST_CASE(a_short_prompt_decides_without_older_events) {
  history events(8);
  events.uses(1'000, "r4");
  events.uses(99, "r5");
  events.run("r6");
  BOOST_TEST(events.plan(threshold(100)) == "none");
  BOOST_TEST(events.plan(threshold(99)) == "older");
  // The window is undecided.
  BOOST_TEST(events.plan({.compaction_interval = 4, .token_threshold = 100})
             == "older");
}

// The text of the newest events is too long already.
BOOST_AUTO_TEST_CASE(a_prompt_before_long_texts_does_not_count) {
  history events;
  events.uses(1, "r1");
  events.run("r2", std::string(400, 'x'));
  BOOST_TEST(events.plan(threshold(100)) == "| 1 2 3 > 3");
  BOOST_TEST(events.plan(threshold(101)) == "none");
}

BOOST_AUTO_TEST_CASE(the_overlap_is_read_only_for_a_summary_that_is_due) {
  history events(4);
  events.run("r3");
  events.sums_up("sum", 6);
  events.run("r4");
  BOOST_TEST(events.plan(window(2, 1)) == "none");
  BOOST_TEST(
    events.plan(
      {.compaction_interval = 2, .overlap_size = 1, .token_threshold = 100})
    == "none");
  events.run("r5");
  BOOST_TEST(events.plan(window(2, 1)) == "older");
}

// -- the size of a request ----

// A line of `user: r1` and one of `a: words` have 18 bytes.
BOOST_AUTO_TEST_CASE(the_oldest_part_of_long_material_is_summed_up_first) {
  history events;
  events.runs(1, 4);
  auto chosen = window(2);
  chosen.request_bytes_max = 36;
  BOOST_TEST(events.plan(chosen) == "| 1 2 3 4 > 4");
  events.sums_up("s", 4);
  // The former summary, `summary: s`, is part of the text.
  BOOST_TEST(events.plan(chosen) == "s | 5 6 > 6");
  chosen.request_bytes_max = 47;
  BOOST_TEST(events.plan(chosen) == "s | 5 6 7 8 > 8");
  chosen = threshold(1);
  chosen.request_bytes_max = 20;
  BOOST_TEST(events.plan(chosen) == "s | 5 > 5");
}

BOOST_AUTO_TEST_CASE(a_request_that_is_cut_leaves_no_call_open) {
  history events;
  events.run("r1");
  events.calls("c", "r2");
  events.answers("c", "r2");
  events.run("r3");
  auto chosen = window(2);
  chosen.request_bytes_max = 60; // The call fits, the answer does not.
  BOOST_TEST(events.plan(chosen) == "| 1 2 > 2");
  chosen.request_bytes_max = 10'000;
  BOOST_TEST(events.plan(chosen) == "| 1 2 3 4 5 6 > 6");
}

// Otherwise no run would ever get past these events.
BOOST_AUTO_TEST_CASE(events_that_belong_together_are_summed_up_together) {
  history events;
  events.calls("c", "r1", true);
  events.runs(2, 4);
  events.answers("c", "r5");
  events.runs(6, 9);
  auto chosen = window(2);
  chosen.request_bytes_max = 1;
  BOOST_TEST(events.plan(chosen) == "| 1 2 3 4 5 6 7 8 > 8");
}

BOOST_AUTO_TEST_CASE(an_overlap_that_does_not_fit_is_left_out) {
  history events;
  events.runs(1, 2);
  events.sums_up("s", 4);
  events.runs(3, 4);
  auto chosen = window(2, 1);
  chosen.request_bytes_max = 65; // 11 and three times 18.
  BOOST_TEST(events.plan(chosen) == "s | 3 4 6 7 8 9 > 9");
  chosen.request_bytes_max = 64;
  BOOST_TEST(events.plan(chosen) == "s | 6 7 8 9 > 9");
}

// -- open calls ----

BOOST_AUTO_TEST_CASE(a_summary_ends_before_an_open_call) {
  history events;
  events.run("r1");
  events.calls("c", "r2", true);
  events.run("r3");
  BOOST_TEST(events.plan(window(2)) == "| 1 2 > 2");
  events.answers("c", "r4");
  BOOST_TEST(events.plan(window(2)) == "| 1 2 3 4 5 6 > 6");
}

BOOST_AUTO_TEST_CASE(nothing_is_due_if_the_first_call_is_open) {
  history events;
  events.calls("c", "r1", true);
  events.runs(2, 3);
  BOOST_TEST(events.plan(window(1)) == "none");
}

// Its program has ended before the tool had answered.
BOOST_AUTO_TEST_CASE(a_call_that_is_never_answered_blocks_no_summary) {
  history events;
  events.add(content("user", {part("x")}), "r1");
  events.calls("c", "r1");
  events.runs(2, 3);
  BOOST_TEST(events.plan(window(2)) == "| 1 2 3 4 5 6 > 6");
  // But in the newest run it may still be answered.
  events.calls("d", "r4");
  BOOST_TEST(events.plan(window(2)) == "| 1 2 3 4 5 6 > 6");
}

BOOST_AUTO_TEST_CASE(a_question_blocks_summaries_until_the_next_run) {
  history events;
  events.add(content("user", {part("x")}), "r1");
  events.calls("q", "r1", true, "adk_request_confirmation");
  BOOST_TEST(events.plan(window(1)) == "| 1 > 1");
  events.run("r2");
  BOOST_TEST(events.plan(window(2)) == "| 1 2 3 4 > 4");
}

// -- worth ----

BOOST_AUTO_TEST_CASE(fewer_words_than_the_former_summary_are_left) {
  history events;
  events.run("r1");
  events.sums_up("a long summary", 2);
  events.run("r2"); // 2 + 5 bytes.
  BOOST_TEST(events.plan(window(1)) == "none");
  events.run("r3", "more words");
  BOOST_TEST(events.plan(window(1)) == "a long summary | 4 5 6 7 > 7");
}

// -- the event ----

BOOST_AUTO_TEST_CASE(the_event_names_the_covered_events) {
  history events;
  events.runs(1, 2);
  events.plan(window(1));
  const auto said
    = make_compaction_event(events.made, content("", {part("sum")}));
  BOOST_TEST(said.author == "user");
  BOOST_TEST(said.content.parts.empty());
  BOOST_TEST(said.actions.extra.data()
             == json({{"compaction",
                       {{"startTimestamp", 1.0},
                        {"endTimestamp", 4.0},
                        {"startRevision", 1},
                        {"endRevision", 4},
                        {"compactedContent",
                         {{"role", "model"},
                          {"parts", json::array({{{"text", "sum"}}})}}}}}}));
}

// -- options ----

BOOST_AUTO_TEST_CASE(options_that_make_no_summary_are_refused) {
  BOOST_TEST(code_of(check_compaction({})) == "invalid_argument");
  BOOST_TEST(code_of(check_compaction(window(0))) == "invalid_argument");
  BOOST_TEST(code_of(check_compaction(threshold(0))) == "invalid_argument");
  BOOST_TEST(code_of(check_compaction(
               {.compaction_interval = 1, .event_retention_size = 1}))
             == "invalid_argument");
  BOOST_TEST(
    code_of(check_compaction({.overlap_size = 1, .token_threshold = 1}))
    == "invalid_argument");
  BOOST_TEST(code_of(check_compaction(
               {.compaction_interval = 1, .request_bytes_max = 0}))
             == "invalid_argument");
  BOOST_TEST(code_of(check_compaction(window(1, 5))) == "ok");
  BOOST_TEST(code_of(check_compaction(threshold(1))) == "ok");
}

// -- the text ----

BOOST_AUTO_TEST_CASE(the_material_is_told_in_lines) {
  summary_request wanted;
  wanted.former.emplace_back("model", std::vector<part>{part("old")});
  event said(content("user", {part("hi")}));
  said.author = "user";
  wanted.events.push_back(std::make_shared<const event>(said));
  part thought("hm");
  thought.thought = true;
  event answer(content(
    "model",
    {thought,
     part(function_call{"c", "f", json{{"n", 1}}}),
     part(function_response{"c", "f", json{{"s", std::string(3'000, 'x')}}}),
     part(function_call{"q", "adk_request_confirmation", json::object()})}));
  answer.author = "a";
  wanted.events.push_back(std::make_shared<const event>(answer));
  BOOST_TEST(to_text(wanted)
             == "summary: old\nuser: hi\n"
                "a called tool `f` with parameters: {\"n\":1}\n"
                "tool `f` returned result: {\"s\":\""
                  + std::string(1'994, 'x') + " ...\n");
}

BOOST_AUTO_TEST_CASE(the_turn_of_an_open_task_is_not_covered) {
  history on;
  on.runs(1, 2);
  on.run("r3");
  on.calls("c1", "r3", false, "t");
  on.in_task("c1", "r3");
  BOOST_TEST(on.plan({.compaction_interval = 3}) == "| 1 2 3 4 > 4");
  on.answers("c1", "r3");
  // The events inside are covered, and not told.
  BOOST_TEST(on.plan({.compaction_interval = 3}) == "| 1 2 3 4 5 6 7 9 > 9");
}

BOOST_AUTO_TEST_SUITE_END()
