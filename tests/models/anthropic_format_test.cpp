// The Messages format: requests as in the reference, recorded answers, and
// failures.

#include "troupe/core/content.hpp"
#include "troupe/core/support/base64.hpp"
#include "troupe/models/formats/wire_format.hpp"

#include "../outcome.hpp"
#include "recordings.hpp"
#include "requests.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(anthropic)

namespace {

const wire_format& format() {
  static const wire_format_ptr made = anthropic_format();
  return *made;
}

json messages(std::vector<content> said) {
  return conversation_in(format(), "messages", std::move(said));
}

} // namespace

// -- requests ----

BOOST_AUTO_TEST_CASE(a_request_is_that_of_the_reference) {
  const auto made = request_of(
    format(), {user_text("How warm is it?")}, [](auto& request, auto& with) {
      with.streams = true;
      request.system_instruction = "Be brief.";
      add_tools(request);
    });
  BOOST_TEST_REQUIRE(code_of(made) == "ok");
  BOOST_TEST(made->url == "https://models.example/v1/messages");
  const http_headers expected{{"anthropic-version", "2023-06-01"},
                              {"x-api-key", "secret-key-1"},
                              {"Content-Type", "application/json"},
                              {"Accept", "text/event-stream"}};
  BOOST_TEST((made->headers == expected));
  BOOST_TEST(to_text(body_of(made)) == to_text(R"({
    "model": "some-model",
    "max_tokens": 8192,
    "stream": true,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": [
      {"type": "text", "text": "How warm is it?"}]}],
    "tools": [
      {"name": "get_weather", "description": "Tells the weather.",
       "input_schema": {"type": "object",
         "properties": {"city": {"type": "string"}}, "required": ["city"]}},
      {"name": "ping",
       "input_schema": {"type": "object", "properties": {}}}]})"_json));
}

BOOST_AUTO_TEST_CASE(turns_alternate_and_begin_with_the_results_of_tools) {
  const auto seen = messages(
    {user_text("Compare."),
     user_text("Quickly."),
     said("model", R"([{"text": "I look."},
       {"functionCall": {"id": "adk-1", "name": "look", "args": {"at": 1}}}])"),
     said("model", R"([{"functionCall": {"id": "adk 2", "name": "look"}}])"),
     said("user", R"([{"text": "Hurry."},
       {"functionResponse": {"id": "adk-1", "name": "look",
                             "response": {"result": "dark"}}}])"),
     said("user", R"([
       {"functionResponse": {"id": "adk 2", "name": "look",
                             "response": {"error": "blind"}}}])")});
  BOOST_TEST(to_text(seen) == to_text(R"([
    {"role": "user", "content": [{"type": "text", "text": "Compare."},
                                 {"type": "text", "text": "Quickly."}]},
    {"role": "assistant", "content": [
      {"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "adk-1", "name": "look", "input": {"at": 1}},
      {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "adk-1", "content": "dark"},
      {"type": "tool_result", "tool_use_id": "call_1",
       "content": "{\"error\":\"blind\"}", "is_error": true},
      {"type": "text", "text": "Hurry."}]}])"_json));
}

BOOST_AUTO_TEST_CASE(ids_that_the_vendor_refuses_are_mapped_alike) {
  const std::string longest(40, 'x');
  const std::string too_long(41, 'x');
  std::vector<part> calls;
  std::vector<part> answers;
  for (const auto& id : {longest, too_long, std::string("call_1")}) {
    calls.emplace_back(function_call{id, "look", {}});
    answers.emplace_back(function_response{id, "look", json::object()});
  }
  const auto seen
    = messages({{"model", std::move(calls)}, {"user", std::move(answers)}});
  const std::vector<std::string> expected{longest, "call_1", "call_2"};
  for (std::size_t index = 0; index < expected.size(); ++index) {
    BOOST_TEST(seen[0]["content"][index]["id"] == expected[index]);
    BOOST_TEST(seen[1]["content"][index]["tool_use_id"] == expected[index]);
  }
}

BOOST_AUTO_TEST_CASE(media_of_a_result_are_blocks_behind_its_text) {
  const auto result = [](const std::string& response) {
    return messages({said("user",
                          R"([{"functionResponse": {"id": "1", "name": "f",
                              "parts": [{"inlineData": {"mimeType":
                                "image/png", "data": "AAEC"}},
                                {"inlineData": {"mimeType":
                                "application/pdf", "data": "AAEC"}}],
                              "response": )"
                            + response + "}}]")})[0]["content"][0];
  };
  auto expected = R"({"type": "tool_result", "tool_use_id": "1", "content": [
    {"type": "text", "text": "x"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                 "data": "AAEC"}},
    {"type": "document", "source": {"type": "base64",
      "media_type": "application/pdf", "data": "AAEC"}}]})"_json;
  BOOST_TEST(to_text(result(R"({"result": "x"})")) == to_text(expected));
  // The interface refuses media in an error.
  expected["content"][0]["text"] = R"({"error":"x"})";
  BOOST_TEST(to_text(result(R"({"error": "x"})")) == to_text(expected));
  expected["content"].erase(0);
  BOOST_TEST(to_text(result(R"({"result": " "})")) == to_text(expected));
}

BOOST_AUTO_TEST_CASE(media_of_a_result_that_no_block_carries_are_refused) {
  BOOST_TEST(
    body_of(request_of(format(),
                       {said("user",
                             R"([{"functionResponse": {"name": "f", "response":
             {}, "parts": [{"inlineData": {"mimeType": "audio/wav",
             "data": "AAEC"}}]}}])")},
                       [](auto&, auto&) {}))
    == json({{"code", "invalid_argument"},
             {"reason", "Anthropic takes no audio/wav"}}));
}

BOOST_AUTO_TEST_CASE(results_are_text_or_json) {
  const auto result = [](const std::string& response) {
    return messages({said("user",
                          R"([{"functionResponse": {"id": "1", "name": "f",
                              "response": )"
                            + response + "}}]")})[0]["content"][0];
  };
  BOOST_TEST(result(R"({"result": "x"})")["content"] == "x");
  BOOST_TEST(result(R"({"result": [1]})")["content"] == R"({"result":[1]})");
  BOOST_TEST(result(R"({"result": "x", "b": 1})")["content"]
             == R"({"b":1,"result":"x"})");
  BOOST_TEST(result("{}")["content"] == "{}");
  BOOST_TEST(!result(R"({"error": "x", "b": 1})").contains("is_error"));
}

BOOST_AUTO_TEST_CASE(thoughts_go_back_with_their_signatures_or_not_at_all) {
  const auto kept = to_base64("c2ln+/=", base64_alphabet::url);
  const auto seen = messages({user_text("Hi"),
                              said("model",
                                   R"([
       {"text": "Unsigned.", "thought": true},
       {"text": "Of Gemini.", "thought": true, "thoughtSignature": "AAE="},
       {"text": "Hm.", "thought": true, "thoughtSignature": ")"
                                     + kept + R"("},
       {"thought": true, "thoughtSignature": ")"
                                     + kept + R"("},
       {"text": "Yes.", "thoughtSignature": ")"
                                     + kept + R"("}])"),
                              user_text("Sure?")});
  BOOST_TEST(to_text(seen[1]["content"]) == to_text(R"([
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln+/="},
    {"type": "redacted_thinking", "data": "c2ln+/="},
    {"type": "text", "text": "Yes."}])"_json));
}

BOOST_AUTO_TEST_CASE(what_a_model_said_goes_back_as_it_came) {
  const recordings recorded("anthropic");
  const auto text = recorded.text("thoughts_and_calls", ".json");
  auto answer = format().read_answer(text, {}).value();
  BOOST_TEST(to_text(messages({std::move(answer.content)})[0]["content"])
             == to_text(parse_json(text).value()["content"]));
}

BOOST_AUTO_TEST_CASE(blank_texts_and_empty_turns_are_left_out) {
  const auto seen = messages({said("model", R"([{"text": " \n"}])"),
                              said("", R"([{"text": "Hi"}, {"text": ""}])")});
  BOOST_TEST(to_text(seen) == to_text(R"([
    {"role": "user", "content": [{"type": "text", "text": "Hi"}]}])"_json));
}

BOOST_AUTO_TEST_CASE(media_go_in_the_form_of_their_kind) {
  const auto seen = messages(
    {{"user",
      {inline_data("\xFF\xFE", "image/png"),
       inline_data("%PDF", "application/pdf", "bill.pdf"),
       inline_data("words", "text/plain; charset=utf-8"),
       said("", R"([{"fileData": {"fileUri": "https://example.org/a.jpg",
                                  "mimeType": "image/jpeg"}}])")
         .parts[0],
       said("", R"([{"fileData": {"fileUri": "https://example.org/a.pdf",
                                  "mimeType": "application/pdf"}}])")
         .parts[0]}}});
  BOOST_TEST(to_text(seen[0]["content"]) == to_text(R"([
    {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                 "data": "//4="}},
    {"type": "document", "title": "bill.pdf", "source": {"type": "base64",
      "media_type": "application/pdf", "data": "JVBERg=="}},
    {"type": "document", "source": {"type": "text",
      "media_type": "text/plain", "data": "words"}},
    {"type": "image", "source": {"type": "url",
                                 "url": "https://example.org/a.jpg"}},
    {"type": "document", "source": {"type": "url",
                                    "url": "https://example.org/a.pdf"}}
    ])"_json));
}

BOOST_AUTO_TEST_CASE(media_that_it_cannot_take_are_named) {
  const auto reason = [](const std::string& role, part element) {
    return messages({{role, {std::move(element)}}})["reason"];
  };
  BOOST_TEST(reason("user", inline_data("x", "audio/wav"))
             == "Anthropic takes no audio/wav");
  BOOST_TEST(reason("user", inline_data("x", "image/tiff"))
             == "Anthropic takes no image/tiff");
  BOOST_TEST(reason("model", inline_data("x", "image/png"))
             == "Anthropic takes no inlineData by the model");
  BOOST_TEST(reason("user", said("", R"([{"ownPart": 1}])").parts[0])
             == "Anthropic takes no ownPart");
}

const std::vector<setting> settings = {
  {"null", R"({"max_tokens": 8192})"},
  {R"({"temperature": 0.5, "topP": 0.9, "topK": 5, "stopSequences": ["x"],
       "maxOutputTokens": 10, "candidateCount": 1})",
   R"({"temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["x"],
       "max_tokens": 10})"},
  {R"({"max_tokens": 10})", R"({"max_tokens": 10})"},
  {R"({"thinkingConfig": {"thinkingBudget": 10000, "includeThoughts": true}})",
   R"({"max_tokens": 18192,
       "thinking": {"type": "enabled", "budget_tokens": 10000}})"},
  {R"({"thinking_config": {"thinking_budget": 0}, "max_output_tokens": 5})",
   R"({"max_tokens": 5, "thinking": {"type": "disabled"}})"},
  {R"({"thinkingConfig": {"thinkingBudget": -1}})",
   R"({"max_tokens": 8192, "thinking": {"type": "adaptive"}})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})",
   R"({"max_tokens": 8192, "tool_choice": {"type": "any"}})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY",
       "allowedFunctionNames": ["look"]}}})",
   R"({"max_tokens": 8192, "tool_choice": {"type": "tool", "name": "look"}})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}})",
   R"({"max_tokens": 8192, "tool_choice": {"type": "none"}})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}})",
   R"({"max_tokens": 8192, "tool_choice": {"type": "auto"}})"},
  {R"({"output_config": {"effort": "low"}, "metadata": {"user_id": "ann"}})",
   R"({"max_tokens": 8192, "output_config": {"effort": "low"},
       "metadata": {"user_id": "ann"}})"},
  {R"({"responseMimeType": "text/plain"})", R"({"max_tokens": 8192})"},
};

BOOST_DATA_TEST_CASE(settings_have_the_vendors_names,
                     data::make(settings),
                     shown) {
  check_configured(
    format(),
    shown,
    R"([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])"_json);
}

const std::vector<std::string> refused = {
  R"({"seed": 1})",
  R"({"presencePenalty": 1})",
  R"({"frequencyPenalty": 1})",
  R"({"responseLogprobs": true})",
  R"({"logprobs": 1})",
  R"({"candidateCount": 2})",
  R"({"responseMimeType": "application/json"})",
  R"({"thinkingConfig": {"thinkingLevel": "LOW"}})",
  R"({"safetySettings": []})",
  R"({"toolConfig": {}})",
  R"({"system": "x"})",
  R"({"messages": []})",
  R"({"stream": true})",
  R"([])",
};

BOOST_DATA_TEST_CASE(settings_without_effect_are_refused,
                     data::make(refused),
                     config) {
  const auto seen = body_of(
    request_of(format(), {user_text("Hi")}, [&](auto& request, auto&) {
      request.system_instruction = "Be brief.";
      request.generation_config = parse_json(config).value();
    }));
  BOOST_TEST(seen["code"] == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_schema_is_closed_and_says_what_cannot_be_held) {
  const auto seen = body_of(
    request_of(format(), {user_text("Hi")}, [&](auto& request, auto&) {
      request.generation_config = R"({"output_config": {"effort": "low"},
              "responseMimeType": "application/json"})"_json;
      request.response_schema = R"({
        "type": "object", "required": ["stars"], "properties": {
          "stars": {"type": "integer", "minimum": 1, "maximum": 5,
                    "description": "How good"},
          "minimum": {"oneOf": [{"type": "string", "format": "date"},
                                {"type": "string", "format": "own"}]},
          "of": {"type": "array", "minItems": 2, "items": {"type": "object"}}
        }})"_json;
    }));
  BOOST_TEST(to_text(seen["output_config"]) == to_text(R"json({
    "effort": "low",
    "format": {"type": "json_schema", "schema": {
      "type": "object", "required": ["stars"], "additionalProperties": false,
      "properties": {
        "stars": {"type": "integer",
                  "description": "How good (maximum: 5, minimum: 1)"},
        "minimum": {"anyOf": [{"type": "string", "format": "date"},
                              {"type": "string",
                               "description": "(format: \"own\")"}]},
        "of": {"type": "array", "description": "(minItems: 2)",
               "items": {"type": "object", "additionalProperties": false}}
      }}}})json"_json));
}

BOOST_AUTO_TEST_CASE(a_thinking_of_ones_own_wins) {
  BOOST_TEST(to_text(configured(format(), R"({"thinking": {"type": "adaptive"},
    "thinkingConfig": {"thinkingBudget": 100}})")["thinking"])
             == to_text(R"({"type": "adaptive"})"_json));
}

const std::string bad_signature
  = R"({"type": "error", "error": {"type": "invalid_request_error", "message":
    "messages.1.content.0: Invalid `signature` in `thinking` block"}})";
const std::string no_budget
  = R"({"type": "error", "error": {"type": "invalid_request_error", "message":
    "\"thinking.type.enabled\" is not supported for this model."}})";

BOOST_AUTO_TEST_CASE(what_is_refused_can_be_left_out_once) {
  const auto plain = format().without_refused(400, bad_signature, {});
  BOOST_TEST_REQUIRE(plain.has_value());
  BOOST_TEST(plain->without.thoughts);
  BOOST_TEST(!format().without_refused(400, bad_signature, *plain));
  const auto free = format().without_refused(400, no_budget, {});
  BOOST_TEST_REQUIRE(free.has_value());
  BOOST_TEST(free->without.thinking_budget);
  BOOST_TEST(!format().without_refused(400, no_budget, *free));
  BOOST_TEST(!format().without_refused(500, bad_signature, {}));
  BOOST_TEST(!format().without_refused(400, "prompt is too long", {}));
}

// In the turn of a tool, thinking is off when the thoughts are left out.
BOOST_AUTO_TEST_CASE(thoughts_that_were_refused_are_left_out) {
  const auto kept = to_base64("c2ln", base64_alphabet::url);
  const auto asked = [&kept](bool goes_on) {
    std::vector<content> talk{
      user_text("Hi"),
      said("model",
           R"([{"text": "Hm.", "thought": true, "thoughtSignature": ")" + kept
             + R"("}, {"functionCall": {"id": "1", "name": "f"}}])"),
      said("user", R"([{"functionResponse": {"id": "1", "name": "f",
                                             "response": {}}}])")};
    if (!goes_on) {
      talk.push_back(text("Done."));
      talk.push_back(user_text("Sure?"));
    }
    return body_of(
      request_of(format(), std::move(talk), [](auto& request, auto& with) {
        request.generation_config
          = R"({"thinkingConfig": {"thinkingBudget": 100}})"_json;
        with.without.thoughts = true;
      }));
  };
  for (const bool goes_on : {true, false}) {
    const auto body = asked(goes_on);
    BOOST_TEST(body["messages"][1]["content"].size() == 1U);
    BOOST_TEST(body.contains("thinking") == !goes_on);
  }
}

BOOST_AUTO_TEST_CASE(a_budget_that_was_refused_is_the_models_choice) {
  const auto body = body_of(
    request_of(format(), {user_text("Hi")}, [](auto& request, auto& with) {
      request.generation_config
        = R"({"thinkingConfig": {"thinkingBudget": 100}})"_json;
      with.without.thinking_budget = true;
    }));
  BOOST_TEST(to_text(body["thinking"])
             == to_text(R"({"type": "adaptive"})"_json));
}

// -- answers ----

struct ending {
  std::string reason;
  std::string expected;
};

std::ostream& operator<<(std::ostream& to, const ending& shown) {
  return to << shown.reason;
}

const std::vector<ending> endings = {
  {"end_turn", "STOP"},
  {"stop_sequence", "STOP"},
  {"tool_use", "STOP"},
  {"max_tokens", "MAX_TOKENS"},
  {"model_context_window_exceeded", "MAX_TOKENS"},
  {"refusal", "SAFETY"},
  {"pause_turn", "OTHER"},
  {"what_comes_next_year", "OTHER"},
};

BOOST_DATA_TEST_CASE(an_answer_ends_for_a_reason_of_adk,
                     data::make(endings),
                     shown) {
  const json body{{"content", {{{"type", "text"}, {"text", "Hi"}}}},
                  {"stop_reason", shown.reason}};
  const auto read = format().read_answer(to_text(body), {}).value();
  BOOST_TEST(read.extra.data()["finishReason"] == shown.expected);
  BOOST_TEST(read.extra->value("errorCode", "")
             == (shown.reason == "refusal"      ? "SAFETY"
                 : shown.reason == "pause_turn" ? "PAUSE_TURN"
                                                : ""));
}

const std::vector<bad_answer> bad_answers = {
  {"{}", "the answer has no content"},
  {R"({"content": "text"})", "the answer has no content"},
  {R"({"content": [{"type": "text", "text": 5}]})",
   "'text' in the answer is not of type string"},
  {R"({"content": [{"type": "tool_use", "input": {}}]})",
   "it called a function without a name"},
  {R"({"content": [{"type": "tool_use", "name": "f", "input": [1]}]})",
   "it called function 'f' with malformed arguments"},
  {R"({"content": [{"type": "tool_use", "name": "f",
                    "input": {"a": 1, "a": 2}}]})",
   "comes twice"},
  {R"({"type": "error", "error": {"type": "api_error", "message": "m"}})",
   "api_error: m",
   "busy"},
};

BOOST_DATA_TEST_CASE(what_is_no_answer_is_told,
                     data::make(bad_answers),
                     shown) {
  check_refused(format(), shown);
}

BOOST_AUTO_TEST_CASE(a_piece_of_a_block_that_had_not_begun_fails_the_stream) {
  const auto seen = play(format(),
                         R"(data: {"type":"content_block_delta","index":1})"
                         "\n\n",
                         {})
                      .whole;
  BOOST_TEST(seen["reason"] == "a piece of a block that had not begun");
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_in_the_vendors_words) {
  BOOST_TEST(format().failure_of(529, R"({"type": "error", "error": {
    "type": "overloaded_error", "message": "Overloaded"},
    "request_id": "req_1"})")
             == "overloaded_error: Overloaded");
}

BOOST_AUTO_TEST_SUITE_END()
