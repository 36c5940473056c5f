// Timelines from the logs of sessions: recorded and derived steps, waits, and
// the longest chain of lanes.

#include "troupe/load/timeline.hpp"

#include "troupe/agents/turns/step_times.hpp"
#include "troupe/contexts/first_invocation.hpp"
#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/rewind.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::load;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(timelines)

namespace {

constexpr timestamp dawn(1'700'000'000'000'000us);

// Writes a session's log event by event. Times are in milliseconds since the
// user's message.
class log_writer {
public:
  log_writer() { say("user", "", 0, "go"); }

  log_writer& say(const std::string& author,
                  const std::string& branch,
                  int at,
                  const std::string& words = "said") {
    event said(content(author == "user" ? "user" : "model", {part(words)}));
    add(std::move(said), author, branch, at);
    return *this;
  }

  /// Adds a model's answer that records when the model worked.
  log_writer& ask(const std::string& author,
                  const std::string& branch,
                  int from,
                  int to,
                  int at) {
    event said(content("model", {part("answer")}));
    step_time step;
    step.name = "m";
    step.began = dawn + from * 1ms;
    step.ended = dawn + to * 1ms;
    tell_steps(said, {&step, 1});
    add(std::move(said), author, branch, at);
    return *this;
  }

  log_writer& call(const std::string& author, int at) {
    event said(
      content("model", {part(function_call{"1", "look", json::object()})}));
    add(std::move(said), author, "", at);
    return *this;
  }

  log_writer& respond(const std::string& author, int at) {
    event said(
      content("user", {part(function_response{"1", "look", json::object()})}));
    add(std::move(said), author, "", at);
    return *this;
  }

  log_writer& next_invocation() {
    invocation_ = "e-2";
    return *this;
  }

  void add(event said,
           const std::string& author,
           const std::string& branch,
           int at) {
    said.id = "event-" + std::to_string(++count_);
    said.invocation_id = invocation_;
    said.author = author;
    said.branch = branch;
    said.timestamp = dawn + at * 1ms;
    log_.push_back(std::make_shared<const event>(std::move(said)));
  }

  std::vector<timeline> lines() const { return timelines_of(log_.slice()); }

  timeline line() const { return lines().front(); }

private:
  std::string invocation_ = "e-1";
  int count_ = 0;
  event_log log_;
};

// Shows a lane as "model 0-10, wait 10-30", in milliseconds.
std::string shown(const timeline_lane& lane) {
  std::string text;
  for (const auto& step : lane.steps) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(step.kind)) + " "
            + std::to_string(step.begin / 1ms) + "-"
            + std::to_string(step.end / 1ms);
  }
  return text;
}

std::string agents_of(const timeline& line) {
  std::string names;
  for (const auto& lane : line.lanes)
    names += (names.empty() ? "" : " ") + lane.agent;
  return names;
}

} // namespace

BOOST_AUTO_TEST_CASE(what_a_rewind_has_taken_back_is_marked) {
  event_log log;
  for (const auto* const run : {"r1", "r2", "r3"}) {
    event said(user_text("hi"));
    said.author = "user";
    said.invocation_id = run;
    log.push_back(std::make_shared<const event>(std::move(said)));
  }
  event marker;
  marker.invocation_id = "e-1";
  take_back(marker, 2);
  log.push_back(std::make_shared<const event>(std::move(marker)));
  const auto lines = timelines_of(log.slice());
  BOOST_TEST_REQUIRE(lines.size() == 3U); // A rewind is no invocation.
  BOOST_TEST(!lines[0].is_taken_back);
  BOOST_TEST(lines[1].is_taken_back);
  BOOST_TEST(lines[2].is_taken_back);
  BOOST_TEST(to_json(lines[0])["takenBack"] == false);
  BOOST_TEST(to_text(lines[1], 80).find("taken back by a rewind")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_models_tell_is_work_and_the_rest_is_waiting) {
  const auto line
    = log_writer().ask("a", "", 5, 20, 21).ask("b", "", 30, 50, 50).line();
  BOOST_TEST(shown(line.lanes.at(0)) == "wait 0-5, model 5-20");
  BOOST_TEST(shown(line.lanes.at(1)) == "wait 21-30, model 30-50");
  BOOST_TEST((line.wall == 50ms));
  BOOST_TEST((line.work == 35ms));
  BOOST_TEST((line.longest_lane == 35ms));
  BOOST_TEST(line.model_calls == 2U);
  BOOST_TEST(line.lanes[0].steps[1].event == "event-2");
}

BOOST_AUTO_TEST_CASE(without_told_times_a_step_lasts_from_event_to_event) {
  const auto line
    = log_writer().call("a", 10).respond("a", 30).say("a", "", 35).line();
  BOOST_TEST(shown(line.lanes.at(0)) == "model 0-10, tool 10-30, other 30-35");
  BOOST_TEST((line.work == 35ms));
  BOOST_TEST(line.lanes[0].steps[1].name == "look");
}

BOOST_AUTO_TEST_CASE(a_question_for_a_permission_is_no_model_call) {
  log_writer log;
  log.call("a", 10);
  log.add(
    event(content("model",
                  {part(function_call{
                    "2", std::string(confirmation_name), json::object()})})),
    "a",
    "",
    12);
  const auto line = log.respond("a", 30).line();
  BOOST_TEST(shown(line.lanes.at(0)) == "model 0-10, other 10-12, tool 12-30");
  BOOST_TEST(line.model_calls == 1U);
}

BOOST_AUTO_TEST_CASE(lanes_beside_each_other_do_not_wait_for_each_other) {
  const auto line = log_writer()
                      .say("a", "", 10)
                      .say("x", "fan.x", 20)
                      .say("y", "fan.y", 40)
                      .say("b", "", 45)
                      .line();
  BOOST_TEST(agents_of(line) == "a x y b");
  BOOST_TEST(shown(line.lanes.at(1)) == "other 10-20");
  BOOST_TEST(shown(line.lanes.at(2)) == "other 10-40");
  BOOST_TEST(shown(line.lanes.at(3)) == "other 40-45");
}

BOOST_AUTO_TEST_CASE(the_longest_chain_takes_the_slowest_lane_of_each_fan_out) {
  const auto line = log_writer()
                      .ask("a", "", 0, 10, 10)
                      .ask("x", "one.x", 10, 20, 20)
                      .ask("y", "one.y", 10, 40, 40)
                      .ask("z", "two.z", 40, 45, 45)
                      .ask("deep", "two.w.three.v", 41, 60, 60)
                      .ask("w", "two.w", 60, 62, 62)
                      .line();
  // The chain is a, y, then w with deep inside it.
  BOOST_TEST((line.longest_lane == 10ms + 30ms + 2ms + 19ms));
  BOOST_TEST(line.longest_lane_model_calls == 4U);
  BOOST_TEST((line.work == 10ms + 10ms + 30ms + 5ms + 19ms + 2ms));
  BOOST_TEST(agents_of(line) == "a x y z deep w");
}

// Several fan-outs, one after another, in a lane that does nothing else.
BOOST_AUTO_TEST_CASE(fan_outs_within_a_lane_are_behind_each_other) {
  const auto line = log_writer()
                      .ask("c", "p.s.q1.c", 0, 5, 5)
                      .ask("r", "p.r", 0, 10, 10)
                      .ask("a", "p.s.q1.a", 0, 300, 300)
                      .ask("d", "p.s.q2.d", 300, 305, 305)
                      .ask("b", "p.s.q2.b", 300, 600, 600)
                      .line();
  BOOST_TEST((line.longest_lane == 600ms));
  BOOST_TEST(line.longest_lane_model_calls == 2U);
  for (const auto& lane : line.lanes)
    BOOST_TEST(shown(lane).find("wait") == std::string::npos, lane.agent);
}

BOOST_AUTO_TEST_CASE(a_fan_out_that_runs_again_counts_again) {
  const auto line = log_writer()
                      .ask("a", "p.a", 0, 200, 200)
                      .ask("b", "p.b", 0, 5, 5)
                      .ask("a", "p.a", 201, 206, 206)
                      .ask("b", "p.b", 201, 401, 401)
                      .line();
  BOOST_TEST((line.longest_lane == 400ms));
  BOOST_TEST(line.longest_lane_model_calls == 2U);
}

BOOST_AUTO_TEST_CASE(an_error_without_words_is_drawn) {
  event said;
  said.extra = json{{"errorCode", "SAFETY"}};
  log_writer log;
  log.add(std::move(said), "a", "", 5);
  BOOST_TEST(shown(log.line().lanes.at(0)) == "other 0-5");
  BOOST_TEST(log.line().error == "SAFETY");
}

// A log may come from any program.
BOOST_AUTO_TEST_CASE(absurd_times_and_names_do_no_harm) {
  event said(content("model", {part("x")}));
  step_time far;
  far.began = timestamp(std::chrono::microseconds(1));
  far.ended = timestamp(std::chrono::microseconds(INT64_MAX));
  tell_steps(said, {&far, 1});
  log_writer log;
  log.add(std::move(said), "evil\nverdict: fake", "", 5);
  const auto line = log.line();
  BOOST_TEST((line.wall <= std::chrono::hours(24 * 366)));
  BOOST_TEST(to_text(line, 80).find("\nverdict") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(tools_at_the_same_time_are_one_stretch_of_their_lane) {
  event said(content("user",
                     {part(function_response{"1", "look", json::object()}),
                      part(function_response{"2", "see", json::object()})}));
  std::vector<step_time> steps(2);
  for (auto& each : steps)
    each.kind = step_kind::tool;
  steps[0].began = steps[1].began = dawn + 10ms;
  steps[0].ended = dawn + 30ms;
  steps[1].ended = dawn + 40ms;
  tell_steps(said, steps);
  log_writer log;
  log.add(std::move(said), "a", "", 40);
  BOOST_TEST((log.line().work == 50ms));
  BOOST_TEST((log.line().longest_lane == 30ms));
  BOOST_TEST(log.line().tool_calls == 2U);
}

BOOST_AUTO_TEST_CASE(each_invocation_has_a_line_of_its_own) {
  const auto lines = log_writer()
                       .say("a", "", 10)
                       .next_invocation()
                       .say("user", "", 1'000)
                       .say("a", "", 1'020)
                       .lines();
  BOOST_TEST_REQUIRE(lines.size() == 2U);
  BOOST_TEST(lines[1].invocation == "e-2");
  BOOST_TEST((lines[1].wall == 20ms));
  BOOST_TEST((lines[1].started == dawn + 1s));
  BOOST_TEST(timelines_of(event_log().slice()).empty());
}

BOOST_AUTO_TEST_CASE(a_run_that_brings_an_answer_tells_which_run_it_continues) {
  log_writer log;
  log.say("a", "", 10).next_invocation();
  for (int at = 1'000; at <= 1'020; at += 20) {
    event said(text("said"));
    said.invocation_id = "e-2";
    set_first_invocation(said, "e-1");
    log.add(std::move(said), at == 1'000 ? "user" : "a", "", at);
  }
  const auto lines = log.lines();
  BOOST_TEST_REQUIRE(lines.size() == 2U);
  BOOST_TEST(lines[0].first_invocation == "e-1");
  BOOST_TEST(lines[1].first_invocation == "e-1");
  BOOST_TEST(to_text(lines[0], 80).starts_with("invocation e-1, 2"));
  BOOST_TEST(
    to_text(lines[1], 80).starts_with("invocation e-2, continues e-1, 2"));
  BOOST_TEST(to_json(lines[1])["firstInvocation"] == "e-1");
}

BOOST_AUTO_TEST_CASE(errors_and_tokens_are_told) {
  event said(content("model", {part("x")}));
  said.extra = json{{"errorCode", "MAX_TOKENS"},
                    {"usageMetadata", {{"totalTokenCount", 42}}}};
  log_writer log;
  log.add(std::move(said), "a", "", 5);
  const auto line = log.line();
  BOOST_TEST(line.error == "MAX_TOKENS");
  BOOST_TEST(line.tokens == 42U);
  BOOST_TEST(line.lanes.at(0).steps.at(0).error == "MAX_TOKENS");
  BOOST_TEST(to_json(line).at("error") == "MAX_TOKENS");
  BOOST_TEST(to_text(line, 60).find("!!!") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_drawing_keeps_its_width_and_shows_every_step) {
  log_writer log;
  for (int index = 0; index < 20; ++index)
    log.ask("agent_with_a_rather_long_name_" + std::to_string(index),
            "fan.lane" + std::to_string(index),
            index * 1'000,
            index * 1'000 + 1,
            index * 1'000 + 1);
  const auto text = to_text(log.line(), 80);
  std::size_t rows = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    const auto row = text.substr(at, end - at);
    if (row.ends_with('|')) {
      ++rows;
      BOOST_TEST(row.size() == 80U, row);
      BOOST_TEST(row.find('#') != std::string::npos, row);
    }
    at = end + 1;
  }
  BOOST_TEST(rows == 20U);
}

BOOST_AUTO_TEST_SUITE_END()
