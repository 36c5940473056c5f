// The Responses API of OpenAI: requests as in the reference, items that go
// back, forms that the server refuses, and answers that are none.

#include "troupe/core/content.hpp"
#include "troupe/models/formats/wire_format.hpp"

#include "../outcome.hpp"
#include "asked_model.hpp"
#include "recordings.hpp"
#include "requests.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(responses)

namespace {

const wire_format& format() {
  static const wire_format_ptr made = openai_responses_format();
  return *made;
}

json input(std::vector<content> said, bool without_items = false) {
  return body_of(request_of(format(), std::move(said), [&](auto&, auto& with) {
    with.without.thoughts = without_items;
  }))["input"];
}

// Another suite of the program is named as the class.
const troupe::testing::recordings& recorded() {
  static const troupe::testing::recordings made("openai_responses");
  return made;
}

content answer_in(const std::string& name) {
  const auto text = recorded().text(name, ".json");
  return format().read_answer(text, {}).value().content;
}

json output_in(const std::string& name) {
  const auto text = recorded().text(name, ".json");
  return parse_json(text).value()["output"];
}

} // namespace

// -- requests ----

BOOST_AUTO_TEST_CASE(a_request_is_that_of_the_reference) {
  const auto made = request_of(
    format(), {user_text("How warm is it?")}, [](auto& request, auto&) {
      request.system_instruction = "Be brief.";
      add_tools(request);
    });
  BOOST_TEST_REQUIRE(code_of(made) == "ok");
  BOOST_TEST(made->url == "https://models.example/responses");
  const http_headers expected{{"Authorization", "Bearer secret-key-1"},
                              {"Content-Type", "application/json"},
                              {"Accept", "application/json"}};
  BOOST_TEST((made->headers == expected));
  BOOST_TEST(to_text(body_of(made)) == to_text(R"({
    "model": "some-model",
    "instructions": "Be brief.",
    "input": [{"role": "user", "content": "How warm is it?"}],
    "store": false,
    "include": ["reasoning.encrypted_content"],
    "tools": [
      {"type": "function",
       "name": "get_weather",
       "description": "Tells the weather.",
       "strict": false,
       "parameters": {"type": "object",
                      "properties": {"city": {"type": "string"}},
                      "required": ["city"]}},
      {"type": "function", "name": "ping", "strict": false,
       "parameters": {"type": "object", "properties": {}}}
    ]})"_json));
}

BOOST_AUTO_TEST_CASE(a_stream_of_a_model_without_thoughts_is_asked_for) {
  const auto made
    = request_of(format(), {user_text("Hi")}, [](auto&, auto& with) {
        with.model = "gpt-4.1-mini";
        with.streams = true;
        with.key.clear();
      });
  BOOST_TEST(to_text(body_of(made)) == to_text(R"({
    "model": "gpt-4.1-mini",
    "input": [{"role": "user", "content": "Hi"}],
    "store": false,
    "stream": true})"_json));
  const http_headers expected{{"Content-Type", "application/json"},
                              {"Accept", "text/event-stream"}};
  BOOST_TEST((made->headers == expected));
}

BOOST_AUTO_TEST_CASE(each_tool_of_the_vendor_has_its_form) {
  const auto tools = [](std::vector<vendor_tool> wanted) {
    auto body = body_of(
      request_of(format(), {user_text("Hi")}, [&](auto& request, auto& with) {
        with.model = "gpt-4.1";
        request.vendor_tools = std::move(wanted);
      }));
    for (const auto* other : {"input", "model", "store"})
      body.erase(other);
    return to_text(body);
  };
  BOOST_TEST(tools({vendor_tool("web_search"), vendor_tool("code_execution")})
             == to_text(R"({"tools": [
    {"type": "web_search"},
    {"type": "code_interpreter", "container": {"type": "auto"}}],
    "include": ["code_interpreter_call.outputs"]})"_json));
  BOOST_TEST(
    tools({vendor_tool("web_search", R"({"type": "web_search_2025_08_26",
             "search_context_size": "low"})"_json),
           vendor_tool("code_execution", R"({"container": "cntr_1"})"_json)})
    == to_text(R"({"tools": [
    {"type": "web_search_2025_08_26", "search_context_size": "low"},
    {"type": "code_interpreter", "container": "cntr_1"}],
    "include": ["code_interpreter_call.outputs"]})"_json));
}

BOOST_AUTO_TEST_CASE(media_have_the_form_of_the_vendor) {
  const auto seen = input({said("user", R"([{"text": "See."},
    {"inlineData": {"mimeType": "image/png", "data": "AAEC"}},
    {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://a.example/b"}},
    {"inlineData": {"mimeType": "application/pdf", "data": "AAEC"}},
    {"inlineData": {"mimeType": "application/pdf", "data": "AAEC",
                    "displayName": "a.pdf"}},
    {"fileData": {"mimeType": "application/pdf",
                  "fileUri": "https://a.example/c"}}])")});
  BOOST_TEST(to_text(seen) == to_text(R"([{"role": "user", "content": [
    {"type": "input_text", "text": "See."},
    {"type": "input_image", "detail": "auto",
     "image_url": "data:image/png;base64,AAEC"},
    {"type": "input_image", "detail": "auto",
     "image_url": "https://a.example/b"},
    {"type": "input_file", "filename": "document.pdf",
     "file_data": "data:application/pdf;base64,AAEC"},
    {"type": "input_file", "filename": "a.pdf",
     "file_data": "data:application/pdf;base64,AAEC"},
    {"type": "input_file", "file_url": "https://a.example/c"}]}])"_json));
  const auto sound = body_of(request_of(
    format(),
    {said("user",
          R"([{"inlineData": {"mimeType": "audio/wav", "data": "AAEC"}}])")},
    [](auto&, auto&) {}));
  BOOST_TEST(sound["code"] == "invalid_argument");
  BOOST_TEST(sound["reason"]
             == "the Responses API of OpenAI takes no "
                "audio/wav");
}

BOOST_AUTO_TEST_CASE(calls_and_their_outputs_are_items) {
  const auto seen = input(
    {user_text("Compare."),
     said("model", R"([{"text": "Both.", "thought": true}, {"text": "I look."},
       {"functionCall": {"id": "call_a", "name": "look", "args": {"at": 1}}},
       {"functionCall": {"name": "look", "args": {}}}])"),
     said("user", R"([
       {"functionResponse": {"id": "call_a", "name": "look",
          "response": {"result": "dark"}, "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "AAEC"}}]}},
       {"text": "Hurry."},
       {"functionResponse": {"name": "look", "response": {}}}])")});
  BOOST_TEST(to_text(seen) == to_text(R"([
    {"role": "user", "content": "Compare."},
    {"role": "assistant", "content": "I look."},
    {"type": "function_call", "call_id": "call_a", "name": "look",
     "arguments": "{\"at\":1}"},
    {"type": "function_call", "call_id": "call_1", "name": "look",
     "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_a", "output": [
      {"type": "input_text", "text": "{\"result\":\"dark\"}"},
      {"type": "input_image", "detail": "auto",
       "image_url": "data:image/png;base64,AAEC"}]},
    {"type": "function_call_output", "call_id": "call_1", "output": "{}"},
    {"role": "user", "content": "Hurry."}])"_json));
}

const std::vector<setting> settings = {
  {R"({"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 7})",
   R"({"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 7})"},
  {R"({"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": true}})",
   R"({"reasoning": {"effort": "high", "summary": "auto"}})"},
  {R"({"thinking_config": {"include_thoughts": false}})", "{}"},
  {R"({"reasoning": {"effort": "low"}, "thinkingConfig": {}})",
   R"({"reasoning": {"effort": "low"}})"},
  {R"({"responseMimeType": "application/json", "text": {"verbosity": "low"}})",
   R"({"text": {"verbosity": "low", "format": {"type": "json_object"}}})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})",
   R"({"tool_choice": "required"})"},
  {R"({"toolConfig": {"functionCallingConfig": {"mode": "ANY",
       "allowedFunctionNames": ["f"]}}})",
   R"({"tool_choice": {"type": "function", "name": "f"}})"},
  {R"({"prompt_cache_key": "k", "store": true, "background": false})",
   R"({"prompt_cache_key": "k", "store": true})"},
  {R"({"include": ["web_search_call.action.sources"]})",
   R"({"include": ["web_search_call.action.sources",
                   "reasoning.encrypted_content"]})"},
};

BOOST_DATA_TEST_CASE(settings_have_the_names_of_the_vendor,
                     data::make(settings),
                     each) {
  auto body = configured(format(), each.config);
  auto expected = parse_json(each.expected).value();
  if (!expected.contains("include"))
    expected["include"] = {"reasoning.encrypted_content"};
  if (!expected.contains("store"))
    expected["store"] = false;
  for (const auto* other : {"input", "model"})
    body.erase(other);
  BOOST_TEST(to_text(body) == to_text(expected));
}

const std::vector<setting> refused = {
  {R"({"seed": 1})",
   "generation_config: the Responses API of OpenAI has no 'seed'"},
  {R"({"stopSequences": ["a"]})",
   "generation_config: the Responses API of OpenAI has no 'stopSequences'"},
  {R"({"topK": 1})",
   "generation_config: the Responses API of OpenAI has no 'topK'"},
  {R"({"background": true})",
   "generation_config: 'background' cannot be used, because the answer would "
   "not come with the request"},
  {R"({"include": "a"})", "generation_config: 'include' must be a list"},
  {R"({"text": "a"})", "generation_config: 'text' must be an object"},
  {R"({"text": {"format": {}}, "responseMimeType": "application/json"})",
   "generation_config: the format of 'text' is set already"},
  {R"({"thinkingConfig": {"thinkingBudget": 5}})",
   "generation_config: OpenAI has no 'thinkingBudget', only thinkingLevel"},
  {R"({"input": []})", "generation_config: 'input' of OpenAI is set already"},
  {R"({"safetySettings": []})",
   "generation_config: OpenAI has no 'safetySettings'"},
};

BOOST_DATA_TEST_CASE(settings_without_effect_are_refused,
                     data::make(refused),
                     each) {
  const auto made = configured(format(), each.config);
  BOOST_TEST(made["code"] == "invalid_argument");
  BOOST_TEST(made["reason"] == each.expected);
}

BOOST_AUTO_TEST_CASE(a_schema_is_strict_where_that_is_possible) {
  const auto form = [](std::string_view schema, bool may_be_strict) {
    return body_of(
      request_of(format(), {user_text("Hi")}, [&](auto& request, auto& with) {
        request.response_schema = parse_json(schema).value();
        with.without.strict_schema = !may_be_strict;
      }))["text"]["format"];
  };
  constexpr std::string_view plain = R"({"type": "object",
    "properties": {"a": {"type": "string"}}, "required": ["a"]})";
  BOOST_TEST(to_text(form(plain, true)) == to_text(R"({"type": "json_schema",
    "name": "answer", "strict": true, "schema": {"type": "object",
    "properties": {"a": {"type": "string"}}, "required": ["a"],
    "additionalProperties": false}})"_json));
  BOOST_TEST(form(plain, false)["strict"] == false);
  BOOST_TEST(form(R"({"type": "object"})", true)["strict"] == false);
  BOOST_TEST(form(R"({"type": "array"})", true)["strict"] == false);
}

// -- items go back ----

BOOST_AUTO_TEST_CASE(thoughts_go_back_before_their_items) {
  const auto output = output_in("thoughts_and_calls");
  const auto call = [](const json& of, const char* arguments) {
    return json{{"type", "function_call"},
                {"call_id", of["call_id"]},
                {"name", of["name"]},
                {"arguments", arguments}};
  };
  const json expected{
    output[0],
    {{"role", "assistant"}, {"content", "I look."}, {"phase", "commentary"}},
    output[2],
    call(output[3], R"({"city":"Köln"})"),
    call(output[4], "{}")};
  const auto answer = answer_in("thoughts_and_calls");
  const content result(
    "user", {part(function_response("call_a1", "get_weather", {{"t", 9}}))});
  auto seen = input({user_text("Hi"), answer, result});
  BOOST_TEST_REQUIRE(seen.size() == 7U);
  BOOST_TEST(seen[6]["call_id"] == "call_a1");
  seen.erase(6);
  seen.erase(0);
  BOOST_TEST(to_text(seen) == to_text(expected));
  // Also after a store has kept it.
  const auto kept = content_from_json(to_json(answer)).value();
  BOOST_TEST(to_text(input({user_text("Hi"), kept, result})[3])
             == to_text(output[2]));
}

BOOST_AUTO_TEST_CASE(thoughts_alone_do_not_go_back) {
  auto answer = answer_in("thoughts_and_calls");
  answer.parts.resize(3); // The answer was cut off after a thought.
  const auto seen = input({user_text("Hi"), answer, user_text("And?")});
  BOOST_TEST(seen.size() == 4U);
  BOOST_TEST(seen[2]["content"] == "I look.");
  BOOST_TEST(seen[3]["content"] == "And?");
  // Nor do thoughts without encrypted text, which the server does not know.
  BOOST_TEST(
    to_text(input({user_text("Hi"), answer_in("open_thoughts"), text("x")}))
      .find("reasoning")
    == std::string::npos);
}

BOOST_AUTO_TEST_CASE(work_of_the_server_goes_back_as_it_came) {
  const auto answer = answer_in("server_tools");
  const auto output = output_in("server_tools");
  auto seen = input({user_text("Hi"), answer, user_text("And?")});
  BOOST_TEST_REQUIRE(seen.size() == 8U);
  for (std::size_t index = 0; index < 5; ++index)
    BOOST_TEST(to_text(seen[index + 1]) == to_text(output[index]));
  BOOST_TEST(seen[6]["content"] == output[5]["content"][0]["text"]);
}

BOOST_AUTO_TEST_CASE(items_that_are_refused_become_text) {
  auto answer = answer_in("server_tools");
  answer.parts.resize(6);
  const std::string words = "Code:```python\nprint(1+1)\n```\n"
                            "Execution Result:```code_output\n2\n\n```\n";
  const auto seen = input({user_text("Hi"), answer, user_text("And?")}, true);
  BOOST_TEST(to_text(seen[1])
             == to_text(json{{"role", "assistant"}, {"content", words}}));
  // As at another vendor, and for another agent.
  const auto chat
    = body_of(request_of(*openai_format(),
                         {user_text("Hi"), answer, user_text("And?")},
                         [](auto&, auto&) {}))["messages"];
  BOOST_TEST(chat[1]["content"] == words);
  auto other = answer;
  other.role = "user";
  BOOST_TEST(input({other})[0]["content"].size() == 2U);
}

BOOST_AUTO_TEST_CASE(gemini_and_claude_get_code_and_no_foreign_calls) {
  const auto answer = answer_in("server_tools");
  const auto of = [&](const wire_format& other) {
    return body_of(request_of(other,
                              {user_text("Hi"), answer, user_text("And?")},
                              [](auto&, auto&) {}));
  };
  const auto parts = of(*gemini_format())["contents"][1]["parts"];
  BOOST_TEST_REQUIRE(parts.size() == 5U);
  BOOST_TEST(to_text(parts[0])
             == R"j({"executableCode":{"code":"print(1+1)",)j"
                R"j("language":"PYTHON"}})j");
  BOOST_TEST(parts[4]["text"].get<std::string>().starts_with("Für Eulen"));
  const auto blocks = of(*anthropic_format())["messages"][1]["content"];
  BOOST_TEST_REQUIRE(blocks.size() == 5U);
  for (const auto& block : blocks)
    BOOST_TEST(block["type"] == "text");
}

// -- answers ----

BOOST_AUTO_TEST_CASE(words_come_in_the_pieces_that_the_vendor_sends) {
  const auto seen
    = play(format(), recorded().text("thoughts_and_calls", ".sse"), {}).pieces;
  BOOST_TEST(joined(seen, true) == "**Looking**\n\nBoth cities.\n\nTwo calls.");
  BOOST_TEST(joined(seen, false) == "I look.");
  BOOST_TEST(seen.size() > 4U);
}

const std::vector<bad_answer> bad_answers = {
  {"{}", "the answer has no output"},
  {R"({"output": {}})", "'output' in the answer is not of type list"},
  {R"({"status": "in_progress", "output": []})",
   "the response has no end: it is in_progress"},
  {R"({"status": "cancelled", "output": []})", "the response is cancelled"},
  {R"({"output": [{"type": "function_call"}]})",
   "it called a function without a name"},
  {R"({"output": [{"type": "function_call", "name": "f",
       "arguments": "[1]"}]})",
   "it called function 'f' with malformed arguments: they are no JSON object"},
  {R"({"output": [{"type": "message", "a": 1, "a": 2}]})", "comes twice"},
  {R"({"error": {"message": "no", "type": "t", "code": "c"}})", "c: no"},
};

BOOST_DATA_TEST_CASE(what_is_no_response_is_told,
                     data::make(bad_answers),
                     shown) {
  check_refused(format(), shown);
}

BOOST_AUTO_TEST_CASE(items_of_other_kinds_are_left_out) {
  const auto read = format().read_answer(R"({"output": [5, {"type": "new"},
    {"type": "message", "content": [{"type": "new"}, 7,
      {"type": "output_text", "text": "Hi", "annotations": null}]}]})",
                                         {});
  BOOST_TEST_REQUIRE(code_of(read) == "ok");
  BOOST_TEST(to_text(to_json(read->content))
             == R"({"parts":[{"text":"Hi"}],"role":"model"})");
}

BOOST_AUTO_TEST_CASE(a_stream_that_fails_without_a_reason_is_told) {
  const auto seen = play(
    format(), "data: {\"type\":\"response.failed\",\"response\":{}}\n\n", {});
  BOOST_TEST(seen.whole["code"] == "model_failed");
  BOOST_TEST(seen.whole["reason"] == "the server sent 'response.failed'");
  const auto bare
    = play(format(), "data: {\"error\":{\"message\":\"gone\"}}\n\n", {});
  BOOST_TEST(bare.whole["reason"] == "gone");
}

// -- over a socket ----

namespace {

const std::string response_of_owls
  = R"({"status": "completed", "model": "m", "output": [{"type": "message",
      "role": "assistant", "content": [{"type": "output_text",
      "annotations": [], "text": "Owls."}]}]})";

struct responding : asking {
  explicit responding(std::vector<server_script> scripts, bool streams = false)
    : asking(in_turn(std::move(scripts)), streams) {
    options.name = "openai-responses:m";
    options.format = openai_responses_format();
  }

  json body(std::size_t index) const {
    return parse_json(server.requests().at(index).body).value();
  }
};

std::string refusal_with(const std::string& words) {
  return json{{"error", {{"message", words}}}}.dump();
}

} // namespace

const std::vector<std::string> refusals
  = {"Encrypted content is not supported with this model.",
     "Reasoning input items can only be provided to a reasoning or computer "
     "use model.",
     "Item 'ws_1' of type 'web_search_call' was provided without its required "
     "'reasoning' item: 'rs_1'."};

BOOST_DATA_TEST_CASE(a_request_is_sent_again_without_refused_items,
                     data::make(refusals),
                     words) {
  responding on(
    {once(whole(refusal_with(words), 400)), once(whole(response_of_owls))});
  BOOST_TEST(on.text() == "Owls.");
  BOOST_TEST_REQUIRE(on.server.requests().size() == 2U);
  BOOST_TEST(on.server.requests()[0].line == "POST /v1/responses HTTP/1.1");
  BOOST_TEST(on.body(0).contains("include"));
  BOOST_TEST(!on.body(1).contains("include"));
}

BOOST_AUTO_TEST_CASE(a_schema_that_is_refused_is_sent_as_advice) {
  responding on({once(whole(refusal_with("Invalid schema for response_format "
                                         "'answer': no."),
                            400)),
                 once(whole(response_of_owls))});
  on.schema = value(R"({"type": "object", "required": ["a"],
    "properties": {"a": {"type": "string"}}})"_json);
  BOOST_TEST(on.text() == "Owls.");
  BOOST_TEST(on.body(0)["text"]["format"]["strict"] == true);
  BOOST_TEST(on.body(1)["text"]["format"]["strict"] == false);
}

BOOST_AUTO_TEST_CASE(a_response_that_failed_may_be_retried) {
  const std::string failed
    = R"({"status": "failed", "error": {"code": "server_error",
        "message": "later"}, "output": []})";
  responding on({once(whole(failed)), once(whole(response_of_owls))});
  BOOST_TEST(on.text() == "Owls.");
  const std::string flagged
    = R"({"status": "failed", "error": {"code": "invalid_prompt",
        "message": "no"}, "output": []})";
  responding other({once(whole(flagged))});
  BOOST_TEST(other.text() == "OpenAI model 'm': invalid_prompt: no");
  BOOST_TEST(other.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_stream_ends_with_its_last_event) {
  const auto text = recorded().text("text", ".sse");
  const server_script kept_open{say(stream_head + chunk(text)), hold()};
  responding on({kept_open}, true);
  BOOST_TEST(on.text() == "Grüße aus 東京 🌊!");
  BOOST_TEST(!on.pieces.empty());
}

// -- chosen by the tools ----

BOOST_AUTO_TEST_CASE(tools_at_openai_itself_choose_the_responses) {
  const auto chat = openai_format();
  const std::vector<vendor_tool> search{vendor_tool("web_search")};
  const std::vector<vendor_tool> code{vendor_tool("code_execution")};
  wire_options with;
  with.model = "gpt-5";
  with.base_url = "https://api.openai.com/v1";
  for (const auto& wanted : {search, code})
    BOOST_TEST(bool(chat->format_for(wanted, with)));
  BOOST_TEST(!chat->format_for({}, with));
  with.model = "gpt-4o-search-preview";
  BOOST_TEST(!chat->format_for(search, with));
  with.model = "gpt-5";
  with.base_url = "http://localhost:1/v1";
  BOOST_TEST(!chat->format_for(search, with));
  BOOST_TEST(!gemini_format()->format_for(search, with));

  http_model_options options;
  options.format = chat;
  options.model = "gpt-5";
  options.base_url = "https://api.openai.com/v1";
  const http_model model(options);
  BOOST_TEST(code_of(model.check_vendor_tools(search, true)) == "ok");
  BOOST_TEST(code_of(model.check_vendor_tools(code, true)) == "ok");
  BOOST_TEST(
    reason_of(model.check_vendor_tools({vendor_tool("google_search")}, false))
    == "OpenAI model 'gpt-5': the vendor does not run 'google_search' "
       "for this model; remove it or use another model (available: "
       "web_search, code_execution)");
}

namespace {

// Takes every server for OpenAI's.
class choosing_format : public wire_format {
public:
  std::string_view provider() const noexcept override { return "Chooser"; }

  result<void> check_tools_of(std::string_view,
                              const std::vector<vendor_tool>&,
                              bool) const override {
    return {};
  }

  wire_format_ptr format_for(const std::vector<vendor_tool>& wanted,
                             const wire_options& asked) const override {
    auto own = asked;
    own.base_url = "https://api.openai.com/v1";
    return chat_->format_for(wanted, own);
  }

  result<model_response> read_answer(std::string_view body,
                                     const wire_options& asked) const override {
    return chat_->read_answer(body, asked);
  }

  std::unique_ptr<stream_reader>
  read_stream(const wire_options& asked) const override {
    return chat_->read_stream(asked);
  }

private:
  result<http_request> build_request(const model_request& asked,
                                     const wire_options& with) const override {
    return chat_->make_request(asked, with);
  }

  const wire_format_ptr chat_ = openai_format();
};

} // namespace

BOOST_AUTO_TEST_CASE(each_call_has_the_format_that_its_tools_need) {
  for (const bool searches : {false, true}) {
    responding on({once(whole(searches ? response_of_owls : answer_of("Hi")))});
    on.options.format = std::make_shared<choosing_format>();
    http_model model(on.options);
    auto wanted = on.request();
    if (searches)
      wanted.vendor_tools = {vendor_tool("web_search")};
    std::promise<result<model_response>> ended;
    model.generate(std::move(wanted), [&](result<model_response> answer) {
      ended.set_value(std::move(answer));
    });
    const auto answer = ended.get_future().get();
    BOOST_TEST_REQUIRE(code_of(answer) == "ok");
    BOOST_TEST(answer->content.text() == (searches ? "Owls." : "Hi"));
    BOOST_TEST(on.server.requests()[0].line
               == (searches ? "POST /v1/responses HTTP/1.1"
                            : "POST /v1/chat/completions HTTP/1.1"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
