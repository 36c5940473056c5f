// Chat completions: requests as in the reference, and fields left out of them.
// Answers are tested in openai_answer_test.cpp.

#include "troupe/core/content.hpp"
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

BOOST_AUTO_TEST_SUITE(openai)

namespace {

const wire_format& format() {
  static const wire_format_ptr made = openai_format();
  return *made;
}

json asked(std::vector<content> said) {
  return body_of(request_of(format(), std::move(said), [](auto&, auto&) {}));
}

json messages(std::vector<content> said) {
  return asked(std::move(said))["messages"];
}

json with_schema(std::string_view schema) {
  return body_of(
    request_of(format(), {user_text("Hi")}, [&](auto& request, auto&) {
      request.response_schema = parse_json(schema).value();
    }))["response_format"];
}

part thought(std::string words) {
  part made(std::move(words));
  made.thought = true;
  return made;
}

function_call call(std::string id, std::string name, json args) {
  return {std::move(id), std::move(name), std::move(args)};
}

function_response answer(std::string id, std::string name, json response) {
  return {std::move(id), std::move(name), std::move(response)};
}

part wire_part(std::string_view text) {
  part made;
  made.body = value(parse_json(text).value());
  return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_request_is_that_of_the_reference) {
  const auto made = request_of(
    format(), {user_text("How warm is it?")}, [](auto& request, auto&) {
      request.system_instruction = "Be brief.";
      add_tools(request);
    });
  BOOST_TEST_REQUIRE(code_of(made) == "ok");
  BOOST_TEST(made->url == "https://models.example/chat/completions");
  const http_headers expected{{"Authorization", "Bearer secret-key-1"},
                              {"Content-Type", "application/json"},
                              {"Accept", "application/json"}};
  BOOST_TEST((made->headers == expected));
  BOOST_TEST(to_text(body_of(made)) == to_text(R"({
    "model": "some-model",
    "messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "How warm is it?"}
    ],
    "tools": [
      {"type": "function", "function": {
        "name": "get_weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object",
                       "properties": {"city": {"type": "string"}},
                       "required": ["city"]}}},
      {"type": "function", "function": {
        "name": "ping",
        "parameters": {"type": "object", "properties": {}}}}
    ]})"_json));
}

BOOST_AUTO_TEST_CASE(a_stream_is_asked_for_with_its_counts) {
  const auto made
    = request_of(format(), {user_text("Hi")}, [](auto&, auto& with) {
        with.streams = true;
        with.key.clear();
      });
  BOOST_TEST(to_text(body_of(made)) == to_text(R"({
    "model": "some-model",
    "messages": [{"role": "user", "content": "Hi"}],
    "stream": true,
    "stream_options": {"include_usage": true}})"_json));
  const http_headers expected{{"Content-Type", "application/json"},
                              {"Accept", "text/event-stream"}};
  BOOST_TEST((made->headers == expected));
}

BOOST_AUTO_TEST_CASE(media_of_responses_follow_in_a_user_message) {
  auto pictured = answer("adk-1", "look", {{"result", "dark"}});
  pictured.extra = parse_json(R"({"parts": [
      {"inlineData": {"mimeType": "image/png", "data": "AAEC"}}]})")
                     .value();
  const auto seen
    = messages({{"model",
                 {call("adk-1", "look", json::object()),
                  call("adk-2", "look", json::object())}},
                {"user", {pictured, answer("adk-2", "look", json::object())}}});
  BOOST_REQUIRE(seen.size() == 4U);
  BOOST_TEST(seen[1]["content"] == R"({"result":"dark"})");
  BOOST_TEST(seen[2]["role"] == "tool");
  BOOST_TEST(to_text(seen[3]) == to_text(R"({"role": "user", "content": [
    {"type": "text", "text": "Data that tool `look` returned:"},
    {"type": "image_url",
     "image_url": {"url": "data:image/png;base64,AAEC"}}]})"_json));
}

BOOST_AUTO_TEST_CASE(calls_and_their_responses_are_messages_of_their_own) {
  const auto seen
    = messages({user_text("Compare."),
                {"model",
                 {thought("Both."),
                  part("I look."),
                  call("adk-1", "look", {{"at", 1}}),
                  call("adk-2", "look", {{"at", 2}})}},
                {"user",
                 {answer("adk-1", "look", {{"result", "dark"}}),
                  part("Hurry."),
                  answer("adk-2", "look", {{"error", "blind"}})}}});
  BOOST_TEST(to_text(seen) == to_text(R"([
    {"role": "user", "content": "Compare."},
    {"role": "assistant", "content": "I look.", "tool_calls": [
      {"id": "call00001", "type": "function",
       "function": {"name": "look", "arguments": "{\"at\":1}"}},
      {"id": "call00002", "type": "function",
       "function": {"name": "look", "arguments": "{\"at\":2}"}}]},
    {"role": "tool", "tool_call_id": "call00001",
     "content": "{\"result\":\"dark\"}"},
    {"role": "tool", "tool_call_id": "call00002",
     "content": "{\"error\":\"blind\"}"},
    {"role": "user", "content": "Hurry."}])"_json));
}

BOOST_AUTO_TEST_CASE(ids_of_calls_are_those_that_every_server_takes) {
  const auto seen = messages({{"model",
                               {call("adk-1", "a", {}),
                                call("call00001", "b", {}),
                                call("with space", "c", {}),
                                call("", "d", {}),
                                call("", "d", {})}},
                              {"user",
                               {answer("", "d", {{"result", 1}}),
                                answer("with space", "c", {}),
                                answer("call00001", "b", {}),
                                answer("adk-1", "a", {}),
                                answer("", "d", {{"result", 2}})}}});
  std::vector<std::string> called;
  for (const auto& each : seen[0]["tool_calls"])
    called.push_back(each["id"]);
  std::vector<std::string> answered;
  for (std::size_t index = 1; index < seen.size(); ++index)
    answered.push_back(seen[index]["tool_call_id"]);
  BOOST_TEST(
    called
      == (std::vector<std::string>{
        "call00001", "call00002", "call00003", "call00004", "call00005"}),
    boost::test_tools::per_element());
  BOOST_TEST(
    answered
      == (std::vector<std::string>{
        "call00004", "call00003", "call00002", "call00001", "call00005"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_call_without_words_has_null_content_and_no_arguments) {
  const auto seen = messages({{"model", {call("1", "ping", nullptr)}},
                              {"user", {answer("1", "ping", nullptr)}}});
  BOOST_TEST(to_text(seen) == to_text(R"([
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "call00001", "type": "function",
       "function": {"name": "ping", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call00001", "content": "{}"}])"_json));
}

BOOST_AUTO_TEST_CASE(thoughts_and_empty_contents_are_left_out) {
  const auto seen
    = messages({{"model", {thought("Hm.")}}, {"user", {}}, {"", {part("Hi")}}});
  BOOST_TEST(to_text(seen)
             == to_text(R"([{"role": "user", "content": "Hi"}])"_json));
}

// A thought that came in a separate field.
part thought_in(const std::string& field, std::string words) {
  auto made = thought(std::move(words));
  made.extra = json{{"partMetadata", {{"openai", {{"field", field}}}}}};
  return made;
}

// Returns the assistant's messages of two turns of a conversation with tools.
// The second turn has no thoughts.
json own_messages(part thinking, const std::string& base_url, bool has_tools) {
  const auto body = body_of(
    request_of(format(),
               {{"model", {std::move(thinking), call("1", "ping", {})}},
                {"user", {answer("1", "ping", {})}},
                {"model", {call("2", "ping", {})}},
                {"user", {answer("2", "ping", {})}},
                {"model", {part("Done.")}},
                user_text("Sure?")},
               [&](auto& request, auto& with) {
                 with.base_url = base_url;
                 if (has_tools)
                   request.tools.push_back({"ping", "", {}});
               }));
  auto own = json::array();
  for (const auto& message : body["messages"])
    if (message["role"] == "assistant")
      own.push_back(message);
  return own;
}

BOOST_AUTO_TEST_CASE(thoughts_go_back_in_the_field_in_which_they_came) {
  const std::string url = "https://api.deepseek.com";
  const auto in_content
    = own_messages(thought_in("reasoning_content", "Hm."), url, true);
  BOOST_TEST(in_content[0]["reasoning_content"] == "Hm.");
  BOOST_TEST(in_content[1]["reasoning_content"] == ""); // Must be present.
  BOOST_TEST(!in_content[2].contains("reasoning_content"));
  const auto plain = own_messages(thought_in("reasoning", "Hm."), url, true);
  BOOST_TEST(plain[0]["reasoning"] == "Hm.");
  BOOST_TEST(!plain[0].contains("reasoning_content"));
  BOOST_TEST(plain[1].size() == 3U);
}

BOOST_AUTO_TEST_CASE(thoughts_go_to_nobody_who_may_refuse_them) {
  const std::string url = "https://api.deepseek.com";
  for (const auto& own :
       {own_messages(thought("Hm."), url, true),
        own_messages(thought_in("content", "Hm."), url, true),
        own_messages(thought_in("reasoning_content", "Hm."), url, false),
        own_messages(thought_in("reasoning_content", "Hm."),
                     "https://api.openai.com/v1",
                     true)})
    for (const auto& message : own)
      for (const auto* field : {"reasoning", "reasoning_content"})
        BOOST_TEST(!message.contains(field));
}

BOOST_AUTO_TEST_CASE(what_a_call_came_with_goes_back_with_it) {
  const auto text = recordings("openai").text("gemini_signatures", ".json");
  auto said = format().read_answer(text, {}).value().content;
  said = content_from_json(to_json(said)).value(); // The stored form.
  const auto calls
    = parse_json(text).value()["choices"][0]["message"]["tool_calls"];
  const auto sent = messages({said})[0]["tool_calls"];
  BOOST_TEST(to_text(sent[0]["extra_content"])
             == to_text(calls[0]["extra_content"]));
  BOOST_TEST(!sent[1].contains("extra_content"));
  const auto body = body_of(request_of(format(), {said}, [](auto&, auto& with) {
    with.base_url = "https://api.openai.com/v1";
  }));
  BOOST_TEST(!body["messages"][0]["tool_calls"][0].contains("extra_content"));
}

BOOST_AUTO_TEST_CASE(media_go_in_the_form_of_their_kind) {
  const auto seen = messages(
    {{"user",
      {part("See:"),
       inline_data("\xFF\xFE", "image/png"),
       inline_data("wav", "audio/wav"),
       inline_data("mp3", "audio/mpeg; rate=1"),
       inline_data("%PDF", "Application/PDF", "bill.pdf"),
       wire_part(R"({"file_data": {"file_uri": "https://example.org/a.jpg",
                                   "mime_type": "image/jpeg"}})")}}});
  BOOST_TEST(to_text(seen) == to_text(R"([{"role": "user", "content": [
    {"type": "text", "text": "See:"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,//4="}},
    {"type": "input_audio", "input_audio": {"data": "d2F2", "format": "wav"}},
    {"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}},
    {"type": "file", "file": {"filename": "bill.pdf",
      "file_data": "data:application/pdf;base64,JVBERg=="}},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}}
    ]}])"_json));
}

BOOST_AUTO_TEST_CASE(media_that_it_cannot_take_are_named) {
  const auto reason = [](part said) {
    return asked({{"user", {std::move(said)}}});
  };
  BOOST_TEST(to_text(reason(inline_data("x", "video/mp4")))
             == R"({"code":"invalid_argument",)"
                R"("reason":"OpenAI takes no video/mp4"})");
  BOOST_TEST(reason(inline_data("x", ""))["reason"]
             == "inlineData without a MIME type");
  BOOST_TEST(reason(wire_part(
               R"({"fileData": {"fileUri": "gs://b/a.pdf",
                       "mimeType": "application/pdf"}})"))["reason"]
             == "OpenAI takes no application/pdf at gs://b/a.pdf");
  BOOST_TEST(reason(wire_part(R"({"ownPart": {}})"))["reason"]
             == "OpenAI takes no ownPart");
  BOOST_TEST(asked({{"model", {inline_data("x", "image/png")}}})["reason"]
             == "OpenAI takes no inlineData by the model");
  BOOST_TEST(reason(wire_part(R"({"inlineData": {"mimeType": "image/png",
                                                 "data": "?"}})"))["code"]
             == "invalid_argument");
}

const std::vector<setting> settings = {
  {"null", "{}"},
  {R"({"temperature": 0.5, "topP": 0.9, "stopSequences": ["x"], "seed": 7,
       "presencePenalty": 1, "frequencyPenalty": -1, "candidateCount": 1,
       "maxOutputTokens": 10, "topK": 5})",
   R"({"temperature": 0.5, "top_p": 0.9, "stop": ["x"], "seed": 7,
       "presence_penalty": 1, "frequency_penalty": -1, "max_tokens": 10,
       "top_k": 5})"},
  {R"({"top_p": 0.9, "max_output_tokens": 10, "seed": null})",
   R"({"top_p": 0.9, "max_tokens": 10})"},
  {R"({"responseLogprobs": true, "logprobs": 3})",
   R"({"logprobs": true, "top_logprobs": 3})"},
  {R"({"logprobs": true})", R"({"logprobs": true})"},
  {R"({"responseMimeType": "application/json"})",
   R"({"response_format": {"type": "json_object"}})"},
  {R"({"responseMimeType": "text/plain"})", "{}"},
  {R"({"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": true}})",
   R"({"reasoning_effort": "low"})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})",
   R"({"tool_choice": "required"})"},
  {R"({"tool_config": {"function_calling_config": {"mode": "ANY",
       "allowed_function_names": ["f"]}}})",
   R"({"tool_choice": {"type": "function", "function": {"name": "f"}}})"},
  {R"({"automatic_function_calling": {"disable": true}})", "{}"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}})",
   R"({"tool_choice": "none"})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}})",
   R"({"tool_choice": "auto"})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY",
       "allowedFunctionNames": ["look"]}}})",
   R"({"tool_choice": {"type": "function", "function": {"name": "look"}}})"},
  {R"({"parallel_tool_calls": false, "user": "ann"})",
   R"({"parallel_tool_calls": false, "user": "ann"})"},
};

BOOST_DATA_TEST_CASE(settings_have_the_vendors_names,
                     data::make(settings),
                     shown) {
  check_configured(
    format(), shown, R"([{"role": "user", "content": "Hi"}])"_json);
}

BOOST_AUTO_TEST_CASE(openai_itself_gets_the_new_limit_of_tokens) {
  for (const std::string url :
       {"https://api.openai.com/v1", "https://x.openai.azure.com/openai/v1"}) {
    const auto body = configured(format(), R"({"maxOutputTokens": 10})", url);
    BOOST_TEST(body["max_completion_tokens"] == 10);
    BOOST_TEST(!body.contains("max_tokens"));
    BOOST_TEST(configured(format(), R"({"topK": 10})", url)["reason"]
               == "generation_config: OpenAI has no 'topK'");
  }
}

const std::vector<std::string> refused = {
  R"([])",
  R"({"topP": 1, "top_p": 1})",
  R"({"candidateCount": 2})",
  R"({"responseMimeType": "text/x.enum"})",
  R"({"thinkingConfig": {"thinkingBudget": 100}})",
  R"({"thinkingConfig": {"thinkingLevel": 1}})",
  R"({"safetySettings": []})",
  R"({"cachedContent": "x"})",
  R"({"response_json_schema": {}})",
  R"({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}})",
  R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY",
      "allowedFunctionNames": ["a", "b"]}}})",
  R"({"httpOptions": {"timeout": 1}})",
  R"({"messages": []})",
  R"({"model": "x"})",
  R"({"stream": true})",
};

BOOST_DATA_TEST_CASE(settings_without_effect_are_refused,
                     data::make(refused),
                     config) {
  BOOST_TEST(configured(format(), config)["code"] == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_schema_that_can_be_strict_is_closed_and_strict) {
  BOOST_TEST(to_text(with_schema(R"({
    "type": "object", "required": ["stars", "of"], "properties": {
      "stars": {"type": "integer", "minimum": 1},
      "of": {"type": "array", "items": {"type": "object",
             "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}}},
    "$defs": {"a": {"anyOf": [{"type": "null"},
                              {"type": "object", "properties": {}}]}}})"))
             == to_text(R"({"type": "json_schema", "json_schema": {
    "name": "answer", "strict": true, "schema": {
    "type": "object", "additionalProperties": false,
    "required": ["stars", "of"], "properties": {
      "stars": {"type": "integer", "minimum": 1},
      "of": {"type": "array", "items": {"type": "object",
             "additionalProperties": false,
             "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}}},
    "$defs": {"a": {"anyOf": [{"type": "null"},
      {"type": "object", "additionalProperties": false,
       "properties": {}, "required": []}]}}}}})"_json));
}

// An object schema with one property.
std::string holding(const std::string& property) {
  return R"({"type": "object", "required": ["a"], "properties": {"a": )"
         + property + "}}";
}

std::string nested(std::size_t depth) {
  auto schema = holding(R"({"type": "string"})");
  for (std::size_t count = 1; count < depth; ++count)
    schema = holding(schema);
  return schema;
}

std::string with_values(std::size_t count) {
  auto values = json::array();
  for (std::size_t value = 0; value < count; ++value)
    values.push_back(value);
  return holding(to_text({{"enum", values}}));
}

const std::vector<std::string> strict_schemas = {
  holding(R"({"type": ["string", "null"], "format": "date-time"})"),
  holding(R"({"type": "string", "pattern": "^(?:a|b)$"})"),
  holding(R"({"enum": ["b", 1]})"),
  holding(R"({"const": "b"})"),
  holding(R"({"type": "array", "items": {"type": "string"}})"),
  holding(R"({"type": ["object", "null"], "properties": {}})"),
  nested(10),
  with_values(1'000),
};

BOOST_DATA_TEST_CASE(a_schema_that_openai_takes_is_strict,
                     data::make(strict_schemas),
                     schema) {
  BOOST_TEST(with_schema(schema)["json_schema"]["strict"] == true);
}

const std::vector<std::string> loose_schemas = {
  holding(R"({"type": "string", "format": "uri"})"),
  holding(R"({"$ref": "#/$defs/b", "description": "b"})"),
  holding(R"({"description": "anything"})"),
  holding(R"({"type": "array"})"),
  holding(R"({"type": "array", "items": {}})"),
  holding(R"({"type": "object"})"),
  holding(R"({"type": ["object", "null"], "properties":
              {"b": {"type": "string"}}})"),
  holding(R"json({"type": "string", "pattern": "^(?!b)"})json"),
  holding(R"({"type": "string", "pattern": "(?<=b)c"})"),
  R"({"type": "object", "required": ["a", "b"],
      "properties": {"a": {"type": "string"}}})",
  nested(11),
  with_values(1'001),
  R"({"type": "object", "properties": {"a": {"type": "string"}}})",
  R"({"type": "object", "properties": {}, "additionalProperties": true})",
  R"({"type": "array", "items": {"type": "string"}})",
  R"({"type": "object", "required": ["a"], "properties": {
      "a": {"type": "string", "minLength": 1}}})",
  R"({"type": "object", "required": ["a"], "properties": {
      "a": {"oneOf": [{"type": "string"}]}}})",
  R"({"type": "object", "required": ["a"], "properties": {
      "a": {"items": {"type": "object", "properties": {"b": {}}}}}})",
};

BOOST_DATA_TEST_CASE(any_other_schema_is_sent_as_it_is,
                     data::make(loose_schemas),
                     schema) {
  const auto seen = with_schema(schema)["json_schema"];
  BOOST_TEST(seen["strict"] == false);
  BOOST_TEST(to_text(seen["schema"]) == to_text(parse_json(schema).value()));
}

BOOST_AUTO_TEST_CASE(a_key_that_is_no_header_is_refused_and_not_told) {
  const auto made
    = request_of(format(), {user_text("Hi")}, [](auto&, auto& with) {
        with.key = "secret\r\nX-Evil: 1";
      });
  BOOST_TEST(code_of(made) == "invalid_argument");
  BOOST_TEST(reason_of(made).find("secret") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_refused_can_be_left_out_once) {
  const auto without
    = [](int status, std::string_view body, const wire_options& asked = {}) {
        return format().without_refused(status, body, asked);
      };
  constexpr std::string_view bad_schema
    = R"({"error": {"message": "Invalid schema for response_format 'answer'"}})";
  const auto loose = without(400, bad_schema);
  BOOST_TEST_REQUIRE(loose.has_value());
  BOOST_TEST(loose->without.strict_schema);
  BOOST_TEST(!loose->without.thoughts);
  BOOST_TEST(!without(400, bad_schema, *loose));
  for (
    const auto* body :
    {R"({"error": {"message": "property 'reasoning_content' is unsupported"}})",
     R"({"detail": [{"type": "extra_forbidden", "loc": ["reasoning"]}]})",
     "Cannot pass both content and thinking in an assistant message"})
    for (const int status : {400, 422, 500}) {
      const auto plain = without(status, body);
      BOOST_TEST_REQUIRE(plain.has_value(), body);
      BOOST_TEST(plain->without.thoughts);
      BOOST_TEST(!without(status, body, *plain));
    }
  BOOST_TEST(!without(500, bad_schema));
  BOOST_TEST(!without(401, "reasoning"));
  BOOST_TEST(!without(400, "'reasoning_effort' is unsupported"));
  BOOST_TEST(!without(400, ""));
}

BOOST_AUTO_TEST_CASE(what_was_refused_is_left_out) {
  const auto body = body_of(
    request_of(format(),
               {{"model", {thought_in("reasoning", "Hm."), part("Hi.")}}},
               [](auto& request, auto& with) {
                 request.tools.push_back({"ping", "", {}});
                 request.response_schema
                   = parse_json(holding(R"({"type": "string"})")).value();
                 with.without.thoughts = true;
                 with.without.strict_schema = true;
               }));
  BOOST_TEST(!body["messages"][0].contains("reasoning"));
  const auto schema = body["response_format"]["json_schema"];
  BOOST_TEST(schema["strict"] == false);
  BOOST_TEST(!schema["schema"].contains("additionalProperties"));
}

BOOST_AUTO_TEST_SUITE_END()
