// The wire form of events, the end of a turn, and the limits of every event.

#include "troupe/core/event.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <limits>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

result<event> read(std::string_view text) {
  return event_from_json(parse_json(text).value());
}

std::string rewritten(std::string_view text) {
  return to_text(to_json(read(text).value()));
}

result<event> with_timestamp(const json& time) {
  return event_from_json(json{{"timestamp", time}});
}

std::int64_t microseconds(const event& said) {
  return said.timestamp.time_since_epoch().count();
}

event saying(std::vector<part> parts) {
  return event(content("model", std::move(parts)));
}

part other_part(json body) {
  part made;
  made.body = value(std::move(body));
  return made;
}

// Makes an event with most fields in use, with random ids and text.
event random_event(random_source& random) {
  event made;
  const auto maybe = [&random](std::string& field) {
    if (random.one_in(2))
      field = random.text(5);
  };
  maybe(made.id);
  maybe(made.invocation_id);
  maybe(made.author);
  maybe(made.branch);
  made.timestamp = timestamp(std::chrono::microseconds(
    static_cast<std::int64_t>(random.below(2'500'000'000'000'000))));
  made.partial = random.one_in(4);
  if (random.one_in(2))
    made.content.role = random.one_in(2) ? "user" : "model";
  for (auto left = random.below(4); left > 0; --left) {
    switch (random.below(4)) {
    case 0:
      made.content.parts.emplace_back(
        function_call{random.text(2), "f", {{{"a", random.data(2)}}}});
      break;
    case 1:
      made.content.parts.emplace_back(
        function_response{random.text(2), "f", {{{"r", random.data(2)}}}});
      break;
    case 2:
      made.content.parts.push_back(
        other_part({{"inlineData", {{"data", random.text(3)}}}}));
      break;
    default:
      made.content.parts.emplace_back(random.text(10));
    }
    made.content.parts.back().thought = random.one_in(5);
    // A part of another kind keeps all of its fields in the body.
    auto& added = made.content.parts.back();
    if (random.one_in(5) && !std::holds_alternative<value>(added.body))
      added.extra = json{{"thoughtSignature", "s"}};
  }
  constexpr std::array prefixes = {"", "app:", "user:", "temp:"};
  for (auto left = random.below(5); left > 0; --left) {
    const auto key = random.pick(prefixes) + ("k" + std::to_string(left));
    auto& delta = made.actions.state_delta;
    if (random.one_in(3))
      delta.record(key, operation_kind::add, random.integer()).value();
    else
      delta.record(key, operation_kind::set, random.data(2)).value();
  }
  if (random.one_in(3))
    made.actions.artifact_delta["report.txt"] = 3;
  maybe(made.actions.transfer_to_agent);
  made.actions.escalate = random.one_in(4);
  made.actions.skip_summarization = random.one_in(4);
  if (random.one_in(3))
    made.actions.extra
      = json{{"endOfAgent", true}, {"unknownYet", random.data(2)}};
  if (random.one_in(4))
    made.long_running_tool_ids = {"c1", random.text(2)};
  if (random.one_in(3))
    made.extra
      = json{{"finishReason", "STOP"}, {"fromTheFuture", random.data(2)}};
  return made;
}

struct bad_event {
  std::string text;
  std::string field;

  friend std::ostream& operator<<(std::ostream& out, const bad_event& row) {
    return out << row.text;
  }
};

const std::vector<bad_event> bad_events = {
  {"[]", "event"},
  {R"({"id": 1})", "id"},
  {R"({"invocation_id": 1})", "invocationId"},
  {R"({"author": []})", "author"},
  {R"({"branch": 1})", "branch"},
  {R"({"partial": "yes"})", "partial"},
  {R"({"timestamp": true})", "timestamp"},
  {R"({"timestamp": "yesterday"})", "timestamp"},
  {R"({"timestamp": {}})", "timestamp"},
  {R"({"content": "hi"})", "content"},
  {R"({"content": {"parts": [{"text": 1}]}})", "text"},
  {R"({"actions": []})", "actions"},
  {R"({"longRunningToolIds": "c1"})", "longRunningToolIds"},
  {R"({"long_running_tool_ids": [1]})", "longRunningToolIds"},
  {R"({"errorCode": 500})", "errorCode"},
  {R"({"error_message": {}})", "errorMessage"},
  {R"({"turnComplete": 1})", "turnComplete"},
  {R"({"usage_metadata": []})", "usageMetadata"},
  {R"({"avgLogprobs": "0.5"})", "avgLogprobs"},
  {R"({"actions": {"stateDelta": []}})", "stateDelta"},
  {R"({"actions": {"state_delta": {"app:": 1}}})", "app:"},
  {R"({"actions": {"stateDelta": {"__x": 1}}})", "__x"},
  {R"({"actions": {"stateOps": {}}})", "stateOps"},
  {R"({"actions": {"state_ops": [{"op": "add"}]}})", "stateOps"},
  {R"({"actions": {"artifactDelta": {"f": "1"}}})", "artifactDelta"},
  {R"({"actions": {"artifactDelta": {"f": 1.5}}})", "artifactDelta"},
  {R"({"actions": {"artifactDelta": [1]}})", "artifactDelta"},
  {R"({"actions": {"transferToAgent": 1}})", "transferToAgent"},
  {R"({"actions": {"escalate": 1}})", "escalate"},
  {R"({"actions": {"skip_summarization": "no"}})", "skipSummarization"},
  {R"({"actions": {"endOfAgent": 1}})", "endOfAgent"},
  {R"({"actions": {"agentState": []}})", "agentState"},
  {R"({"id": "a", "actions": {"escalate": true}, "invocationId": "b", "invocation_id": "b"})",
   "invocation"},
};

struct time_row {
  json time;
  std::int64_t microseconds;

  friend std::ostream& operator<<(std::ostream& out, const time_row& row) {
    return out << to_text(row.time);
  }
};

const std::vector<time_row> good_times = {
  {0, 0},
  {1, 1'000'000},
  {1.5, 1'500'000},
  {1780000000.123456, 1'780'000'000'123'456},
  {-1.5, -1'500'000},
  {"1970-01-01T00:00:00Z", 0},
  {"1970-01-01T00:00:01.5Z", 1'500'000},
  {"2026-05-28T20:26:40Z", 1'780'000'000'000'000},
  {"2026-05-28T20:26:40.123456Z", 1'780'000'000'123'456},
  {"2026-05-28T20:26:40.123456789Z", 1'780'000'000'123'456},
  {"2026-05-28T20:26:40+00:00", 1'780'000'000'000'000},
  {"2026-05-28T22:26:40+02:00", 1'780'000'000'000'000},
  {"2026-05-29T01:56:40+05:30", 1'780'000'000'000'000},
  {"2026-05-28T12:26:40-08:00", 1'780'000'000'000'000},
  {"2026-05-28T19:56:40.5-00:30", 1'780'000'000'500'000},
  {"1969-12-31T23:59:59Z", -1'000'000},
  {"2024-02-29T00:00:00Z", 1'709'164'800'000'000},
};

const std::vector<std::string> bad_times = {
  "",
  "Z",
  "T",
  "now",
  "2026",
  "2026-05-28",
  "2026-05-28Z",
  "2026-05-28T20:26:40",
  "2026-13-01T00:00:00Z",
  "2026-02-30T00:00:00Z",
  "2026-05-28T25:00:00Z",
  "2026-05-28T20:61:00Z",
  "2026-05-28T20:26:99Z",
  "2026-05-28T20:26:40+0x:00",
  "2026-05-28T20:26:40+02:0x",
  "2026-05-28T20:26:40+99:99",
  "2026-05-28T20:26:40+-2:00",
  "2026-05-28T20:26:40+1:234",
  "2026-05-28T20:26:40Zjunk",
  "20260528T202640Z",
  "not-a-date-time+00:00",
  "+infinity+00:00",
};

} // namespace

BOOST_AUTO_TEST_SUITE(events)

BOOST_DATA_TEST_CASE(the_wire_form_keeps_everything, data::xrange(100), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto before = random_event(random);
  const auto shown = to_json(before);
  const auto behind = event_from_json(shown);
  BOOST_REQUIRE_EQUAL(code_of(behind), "ok");
  BOOST_TEST(to_text(to_json(*behind)) == to_text(shown));
  // The wire form does not keep the order of a delta's keys, and the effect
  // does not depend on it.
  auto reordered = *behind;
  reordered.actions.state_delta = before.actions.state_delta;
  BOOST_TEST((reordered == before));
}

BOOST_AUTO_TEST_CASE(snake_case_is_read_and_camel_case_written) {
  BOOST_TEST(
    rewritten(
      R"({"id": "e1", "invocation_id": "i1", "author": "a", "timestamp": 1.5,
          "long_running_tool_ids": ["c1"], "error_code": "X", "new_field": {"in_side": 1},
          "actions": {"state_delta": {"snake_key": 1}, "artifact_delta": {"a_b": 1},
                      "transfer_to_agent": "b", "skip_summarization": true,
                      "end_of_agent": true, "new_action": 1}})")
    == R"({"actions":{"artifactDelta":{"a_b":1},"endOfAgent":true,"newAction":1,)"
       R"("skipSummarization":true,"stateDelta":{"snake_key":1},"transferToAgent":"b"},)"
       R"("author":"a","errorCode":"X","id":"e1","invocationId":"i1",)"
       R"("longRunningToolIds":["c1"],"newField":{"in_side":1},"timestamp":1.5})");
}

BOOST_AUTO_TEST_CASE(camel_case_and_snake_case_are_the_same_event) {
  BOOST_TEST((
    read(R"({"invocationId": "i", "errorMessage": "m", "actions": {"stateOps": [
               {"op": "add", "key": "n", "value": 1}], "agentState": {}}})")
      .value()
    == read(
         R"({"invocation_id": "i", "error_message": "m", "actions": {"state_ops": [
               {"op": "add", "key": "n", "value": 1}], "agent_state": {}}})")
         .value()));
}

BOOST_AUTO_TEST_CASE(an_empty_object_is_an_event) {
  BOOST_TEST((read("{}").value() == event()));
  BOOST_TEST((read(R"({"content": null, "actions": null, "branch": null,
                       "partial": null, "timestamp": null, "errorCode": null,
                       "longRunningToolIds": null})")
                .value()
              == event()));
}

BOOST_AUTO_TEST_CASE(unknown_fields_are_kept) {
  const auto said
    = read(R"({"errorCode": "E", "theirs": {"a": [1]}, "routes": ["x"]})")
        .value();
  BOOST_TEST(to_text(said.extra.data())
             == R"({"errorCode":"E","routes":["x"],"theirs":{"a":[1]}})");
  BOOST_TEST(said.field("errorCode") == "E");
  BOOST_TEST(said.field("routes").empty());
  BOOST_TEST(said.field("absent").empty());
  BOOST_TEST(event().field("errorCode").empty());
}

BOOST_AUTO_TEST_CASE(state_operations_come_behind_the_state_delta) {
  const auto said = read(R"({"actions": {
    "stateOps": [{"op": "add", "key": "n", "value": 2}], "stateDelta": {"n": 1}}})")
                      .value();
  const auto& operations = said.actions.state_delta.operations();
  BOOST_REQUIRE(operations.size() == 2U);
  BOOST_TEST(to_string(operations[0].kind) == "set");
  BOOST_TEST(to_string(operations[1].kind) == "add");
}

BOOST_DATA_TEST_CASE(a_bad_field_is_an_invalid_argument_that_names_it,
                     data::make(bad_events),
                     row) {
  const auto outcome = read(row.text);
  BOOST_TEST(code_of(outcome) == "invalid_argument");
  BOOST_TEST(reason_of(outcome).find(row.field) != std::string::npos,
             reason_of(outcome));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(timestamps)

BOOST_DATA_TEST_CASE(seconds_and_rfc_3339_are_read,
                     data::make(good_times),
                     row) {
  const auto said = with_timestamp(row.time);
  BOOST_REQUIRE_EQUAL(code_of(said), "ok");
  BOOST_TEST(microseconds(*said) == row.microseconds);
}

BOOST_DATA_TEST_CASE(other_text_is_no_time, data::make(bad_times), text) {
  BOOST_TEST(code_of(with_timestamp(text)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(seconds_out_of_reach_are_no_time) {
  for (const auto seconds : {1e300,
                             -1e300,
                             1e15,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
    BOOST_TEST(code_of(with_timestamp(seconds)) == "invalid_argument");
}

BOOST_DATA_TEST_CASE(microseconds_survive_the_wire, data::xrange(10), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  for (int count = 0; count < 200; ++count) {
    event said;
    // Up to the year 2100: a double has no room for microseconds of later
    // times.
    said.timestamp = timestamp(std::chrono::microseconds(
      static_cast<std::int64_t>(random.below(4'100'000'000'000'000))));
    BOOST_REQUIRE_EQUAL(microseconds(event_from_json(to_json(said)).value()),
                        microseconds(said));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(final_events)

BOOST_AUTO_TEST_CASE(an_answer_in_words_is_final) {
  BOOST_TEST(is_final(saying({"done"})));
  BOOST_TEST(is_final(saying({""})));
  BOOST_TEST(is_final(event()));
  event state_only;
  state_only.actions.state_delta.record("n", operation_kind::set, json(1))
    .value();
  BOOST_TEST(is_final(state_only));
}

BOOST_AUTO_TEST_CASE(calls_responses_and_pieces_are_not_final) {
  BOOST_TEST(!is_final(saying({"let me see", function_call{"c", "f", {}}})));
  BOOST_TEST(!is_final(saying({function_response{"c", "f", {}}, "so"})));
  auto piece = saying({"do"});
  piece.partial = true;
  BOOST_TEST(!is_final(piece));
}

BOOST_AUTO_TEST_CASE(a_code_result_at_the_end_is_not_final) {
  const auto ran = other_part({{"codeExecutionResult", {{"outcome", "OK"}}}});
  BOOST_TEST(!is_final(saying({"ran", ran})));
  BOOST_TEST(is_final(saying({ran, "so it is 4"})));
  BOOST_TEST(is_final(saying({other_part({{"executableCode", {}}})})));
  BOOST_TEST(
    !is_final(read(R"({"content": {"parts": [{"code_execution_result": {}}]}})")
                .value()));
}

BOOST_AUTO_TEST_CASE(skipped_summaries_and_long_running_calls_are_final) {
  auto skipped = saying({function_response{"c", "f", {}}});
  skipped.actions.skip_summarization = true;
  BOOST_TEST(is_final(skipped));
  auto pending = saying({function_call{"c", "f", {}}});
  pending.long_running_tool_ids = {"c"};
  BOOST_TEST(is_final(pending));
  pending.partial = true;
  BOOST_TEST(is_final(pending));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(event_limits)

BOOST_AUTO_TEST_CASE(a_value_may_have_exactly_its_limit) {
  const auto setting = [](json data) {
    event said;
    said.actions.state_delta.record("k", operation_kind::set, std::move(data))
      .value();
    return check_event(said, {.value_bytes_max = 1000});
  };
  // Two of the bytes are the quotes.
  BOOST_TEST(code_of(setting(std::string(998, 'x'))) == "ok");
  BOOST_TEST(code_of(setting(std::string(999, 'x'))) == "too_large");
  BOOST_TEST(reason_of(setting(std::string(999, 'x'))).find("'k'")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_limit_is_for_each_of_the_values_of_a_compare) {
  const auto comparing = [](std::size_t desired, std::size_t expected) {
    event said;
    said.actions.state_delta
      .record("k",
              operation_kind::compare_and_set,
              json(std::string(desired, 'x')),
              json(std::string(expected, 'y')))
      .value();
    return code_of(check_event(said, {.value_bytes_max = 1000}));
  };
  BOOST_TEST(comparing(900, 900) == "ok");
  BOOST_TEST(comparing(1100, 1) == "too_large");
  BOOST_TEST(comparing(1, 1100) == "too_large");
}

BOOST_AUTO_TEST_CASE(an_event_is_as_large_as_all_that_it_carries) {
  constexpr size_limits limits = {.event_bytes_max = 4000};
  const std::string words(2500, 'x');
  const json held = {{"k", words}};
  event with_call = saying({function_call{"c", "f", held}});
  event with_response = saying({function_response{"c", "f", held}});
  event with_part = saying({other_part(held)});
  function_call open{"c", "f", json::object()};
  open.extra = held;
  function_response attached{"c", "f", json::object()};
  attached.extra = held;
  event with_extra;
  with_extra.extra = held;
  event with_action;
  with_action.actions.extra = held;
  event with_delta;
  with_delta.actions.state_delta.record("k", operation_kind::set, json(words))
    .value();
  for (auto& said : {with_call,
                     with_response,
                     with_part,
                     saying({open}),
                     saying({attached}),
                     with_extra,
                     with_action,
                     with_delta}) {
    auto more = said;
    BOOST_TEST(check_event(more, limits).value() > words.size());
    more.content.parts.emplace_back(words);
    BOOST_TEST(code_of(check_event(more, limits)) == "too_large");
  }
}

BOOST_AUTO_TEST_CASE(nothing_but_utf8_enters_anywhere) {
  const std::string bad = "\xff";
  const auto refused
    = [](const event& said) { return code_of(check_event(said, {})); };
  const auto with = [](std::string event::*field, std::string text) {
    event said;
    said.*field = std::move(text);
    return said;
  };
  BOOST_TEST(refused(event()) == "ok");
  for (const auto field :
       {&event::id, &event::invocation_id, &event::author, &event::branch})
    BOOST_TEST(refused(with(field, bad)) == "invalid_argument");
  for (const auto& element : {part(bad),
                              part(function_call{bad, "f", json::object()}),
                              part(function_call{"c", bad, json::object()}),
                              part(function_call{"c", "f", json{{"a", bad}}}),
                              part(function_response{bad, "f", json::object()}),
                              part(function_response{"c", bad, json::object()}),
                              part(function_response{"c", "f", json{{bad, 1}}}),
                              other_part({{"inlineData", bad}})})
    BOOST_TEST(refused(saying({element})) == "invalid_argument");
  function_call open{"c", "f", json::object()};
  open.extra = json{{"theirs", bad}};
  BOOST_TEST(refused(saying({open})) == "invalid_argument");
  function_response attached{"c", "f", json::object()};
  attached.extra = json{{bad, 1}};
  BOOST_TEST(refused(saying({attached})) == "invalid_argument");
  BOOST_TEST(refused(event(content(bad, {}))) == "invalid_argument");
  event changing;
  changing.actions.state_delta.record("k", operation_kind::set, json(bad))
    .value();
  BOOST_TEST(refused(changing) == "invalid_argument");
  event transferring;
  transferring.actions.transfer_to_agent = bad;
  BOOST_TEST(refused(transferring) == "invalid_argument");
  event filing;
  filing.actions.artifact_delta[bad] = 1;
  BOOST_TEST(refused(filing) == "invalid_argument");
  event waiting;
  waiting.long_running_tool_ids = {bad};
  BOOST_TEST(refused(waiting) == "invalid_argument");
  event carrying;
  carrying.extra = json{{"theirs", bad}};
  BOOST_TEST(refused(carrying) == "invalid_argument");
  event acting;
  acting.actions.extra = json{{"theirs", bad}};
  BOOST_TEST(refused(acting) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(numbers_that_are_not_finite_and_deep_data_are_refused) {
  json deep = json::array();
  for (int level = 0; level < 64; ++level)
    deep = json::array({deep});
  for (const auto& bad :
       {json(std::numeric_limits<double>::quiet_NaN()), json::array({deep})}) {
    event said;
    said.actions.state_delta.record("k", operation_kind::set, bad).value();
    BOOST_TEST(code_of(check_event(said, {})) == "invalid_argument");
    BOOST_TEST(code_of(check_event(
                 saying({function_call{"c", "f", json{{"a", bad}}}}), {}))
               == "invalid_argument");
  }
}

// Without this check, such an event could be stored and never written.
BOOST_AUTO_TEST_CASE(what_must_be_an_object_is_one) {
  event extra;
  extra.extra = json(5);
  event action;
  action.actions.extra = json::array();
  auto extended = saying({"hi"});
  extended.content.parts.front().extra = json("x");
  function_call open{"c", "f", json::object()};
  open.extra = json(1);
  function_response attached{"c", "f", json::object()};
  attached.extra = json::array();
  for (const auto& said : {extra,
                           action,
                           extended,
                           saying({open}),
                           saying({attached}),
                           saying({other_part(5)}),
                           saying({other_part(nullptr)}),
                           saying({function_call{"c", "f", json::array({1})}}),
                           saying({function_response{"c", "f", json(1)}})})
    BOOST_TEST(code_of(check_event(said, {})) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
