// The generateContent format: requests as in the reference, recorded answers,
// and failures.

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

BOOST_AUTO_TEST_SUITE(gemini)

namespace {

const wire_format& format() {
  static const wire_format_ptr made = gemini_format();
  return *made;
}

json contents(std::vector<content> said) {
  return conversation_in(format(), "contents", std::move(said));
}

std::string url_of(const std::string& model, bool streams) {
  const auto made
    = request_of(format(), {user_text("Hi")}, [&](auto&, auto& with) {
        with.model = model;
        with.streams = streams;
      });
  return made ? made->url : reason_of(made);
}

} // namespace

// -- requests ----

BOOST_AUTO_TEST_CASE(a_request_is_that_of_the_reference) {
  const auto made = request_of(
    format(), {user_text("How warm is it?")}, [](auto& request, auto&) {
      request.system_instruction = "Be brief.";
      add_tools(request, "Pings.");
    });
  BOOST_TEST_REQUIRE(code_of(made) == "ok");
  const http_headers expected{{"x-goog-api-key", "secret-key-1"},
                              {"Content-Type", "application/json"},
                              {"Accept", "application/json"}};
  BOOST_TEST((made->headers == expected));
  BOOST_TEST(to_text(body_of(made)) == to_text(R"({
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [{"role": "user", "parts": [{"text": "How warm is it?"}]}],
    "tools": [{"functionDeclarations": [
      {"name": "get_weather", "description": "Tells the weather.",
       "parametersJsonSchema": {"type": "object",
         "properties": {"city": {"type": "string"}}, "required": ["city"]}},
      {"name": "ping", "description": "Pings.",
       "parametersJsonSchema": {"type": "object", "properties": {}}}]}]
    })"_json));
}

BOOST_AUTO_TEST_CASE(the_model_is_in_the_path_and_the_key_is_not) {
  const std::string base = "https://models.example/v1beta/";
  BOOST_TEST(url_of("gemini-2.5-flash", false)
             == base + "models/gemini-2.5-flash:generateContent");
  BOOST_TEST(url_of("gemini-2.5-flash", true)
             == base + "models/gemini-2.5-flash:streamGenerateContent?alt=sse");
  BOOST_TEST(url_of("tunedModels/mine", false)
             == base + "tunedModels/mine:generateContent");
  for (const std::string name :
       {"", "a b", "a?key=1", "../x", "a\r\nb", "\xFF"})
    BOOST_TEST(url_of(name, false) == "no model is named '" + name + "'");
}

BOOST_AUTO_TEST_CASE(calls_go_without_our_ids_and_with_their_signatures) {
  const auto seen = contents({user_text("Compare."),
                              said("model", R"([
       {"text": "Both.", "thought": true},
       {"text": "I look.", "thoughtSignature": "YQ=="},
       {"functionCall": {"id": "adk-1", "name": "look", "args": {"at": 1}},
        "thoughtSignature": "Yg=="},
       {"functionCall": {"id": "adk-2", "name": "look", "args": {"at": 2}}},
       {"text": "", "thoughtSignature": "Yw=="}])"),
                              said("user", R"([
       {"functionResponse": {"id": "adk-1", "name": "look",
                             "response": {"result": "dark"}}},
       {"functionResponse": {"id": "adk-2", "name": "look",
                             "response": {"error": "blind"}}}])")});
  BOOST_TEST(to_text(seen) == to_text(R"([
    {"role": "user", "parts": [{"text": "Compare."}]},
    {"role": "model", "parts": [
      {"text": "I look.", "thoughtSignature": "YQ=="},
      {"functionCall": {"name": "look", "args": {"at": 1}},
       "thoughtSignature": "Yg=="},
      {"functionCall": {"name": "look", "args": {"at": 2}}},
      {"text": "", "thoughtSignature": "Yw=="}]},
    {"role": "user", "parts": [
      {"functionResponse": {"name": "look", "response": {"result": "dark"}}},
      {"functionResponse": {"name": "look", "response": {"error": "blind"}}}]}
    ])"_json));
}

BOOST_AUTO_TEST_CASE(media_of_a_response_go_back_with_it) {
  const auto field = [](const std::string& model, const std::string& fields) {
    const auto body = body_of(request_of(
      format(),
      {said("user",
            R"([{"functionResponse": {"name": "look", "response": {"at": 1},)"
              + fields + "}}]")},
      [&](auto&, auto& with) { with.model = model; }));
    return body.contains("contents")
             ? body["contents"][0]["parts"][0]["functionResponse"]
             : body;
  };
  const std::string fields = R"(
    "parts": [{"inline_data": {"mime_type": "image/png", "data": "_-8",
                               "display_name": "a.png"},
               "media_resolution": {"level": "HIGH"}},
              {"fileData": {"fileUri": "gs://a", "mimeType": "image/png"}}],
    "scheduling": "SILENT", "will_continue": true, "unknown": 1)";
  auto expected = R"({"name": "look", "response": {"at": 1},
    "parts": [{"inlineData": {"mimeType": "image/png", "data": "/+8=",
                              "displayName": "a.png"},
               "mediaResolution": {"level": "HIGH"}},
              {"fileData": {"fileUri": "gs://a", "mimeType": "image/png"}}],
    "scheduling": "SILENT", "willContinue": true})"_json;
  BOOST_TEST(to_text(field("gemini-3-pro", fields)) == to_text(expected));
  expected.erase("willContinue");
  BOOST_TEST(to_text(field("publishers/google/models/gemini-3-pro", fields))
             == to_text(expected));
  BOOST_TEST(field("gemini-3-pro", R"("parts": [{"executableCode": {}}])")
             == json({{"code", "invalid_argument"},
                      {"reason",
                       "Gemini takes no executableCode in a function "
                       "response"}}));
  BOOST_TEST(
    to_text(field("gemini-3-pro", R"("parts": null, "willContinue": null)"))
    == R"({"name":"look","response":{"at":1}})");
}

// Signatures of Claude are text.
BOOST_AUTO_TEST_CASE(thoughts_go_back_if_gemini_has_signed_them) {
  const auto seen = contents({said("model", R"([
    {"text": "Hm.", "thought": true, "thoughtSignature": "CiQB0e2Kb5v4"},
    {"text": "Of Claude.", "thought": true, "thoughtSignature": "YzJsbg=="},
    {"thought": true, "thoughtSignature": "CiQB0e2Kb5v4"},
    {"text": "Unsigned.", "thought": true}])")});
  BOOST_TEST(to_text(seen[0]["parts"]) == to_text(R"([
    {"text": "Hm.", "thought": true, "thoughtSignature": "CiQB0e2Kb5v4"}
    ])"_json));
}

// Returns the signatures of calls in two turns, of which the second has two
// steps.
std::vector<std::string> signatures_for(const std::string& model) {
  const auto called = [](const std::string& signature) {
    return said("model",
                R"([{"text": "I look."}, {"functionCall": {"name": "look"})"
                  + signature + R"(}, {"functionCall": {"name": "look"}}])");
  };
  const auto answered = said("user", R"([
    {"functionResponse": {"name": "look", "response": {}}},
    {"functionResponse": {"name": "look", "response": {}}}])");
  const auto body
    = body_of(request_of(format(),
                         {user_text("Look."),
                          called(""),
                          answered,
                          user_text("Look again."),
                          called(""),
                          answered,
                          called(R"(, "thoughtSignature": "CiQB0e2Kb5v4")"),
                          answered},
                         [&](auto&, auto& with) { with.model = model; }));
  std::vector<std::string> found;
  for (const auto& content : body["contents"])
    for (const auto& element : content["parts"])
      if (element.contains("functionCall"))
        found.push_back(element.value("thoughtSignature", ""));
  return found;
}

BOOST_AUTO_TEST_CASE(calls_from_elsewhere_are_signed_for_models_that_look) {
  const std::vector<std::string> looked_at{
    "", "", "skip_thought_signature_validator", "", "CiQB0e2Kb5v4", ""};
  for (const std::string model :
       {"gemini-3-pro-preview", "publishers/google/models/gemini-3.5-flash"})
    BOOST_TEST(signatures_for(model) == looked_at,
               boost::test_tools::per_element());
  const std::vector<std::string> kept{"", "", "", "", "CiQB0e2Kb5v4", ""};
  for (const std::string model :
       {"gemini-2.5-flash", "models/gemini-2.5-pro", "gemma-3-27b-it"})
    BOOST_TEST(signatures_for(model) == kept, boost::test_tools::per_element());
}

// Calls as a session stores them: troupe's ids, and the model's ids beside
// them.
const std::vector<content> called_by_id = {said("model", R"([
    {"functionCall": {"id": "adk-1", "name": "look", "args": {"at": 1}},
     "thoughtSignature": "CiQB",
     "partMetadata": {"gemini": {"id": "h3x0"}, "own": 1}},
    {"functionCall": {"id": "adk-2", "name": "look", "args": {"at": 2}},
     "partMetadata": {"gemini": {"id": "8tq2"}}}])"),
                                           said("user", R"([
    {"functionResponse": {"id": "adk-1", "name": "look", "response": {}}},
    {"functionResponse": {"id": "adk-2", "name": "look", "response": {}}}])")};

BOOST_AUTO_TEST_CASE(calls_and_responses_have_the_ids_of_the_model) {
  BOOST_TEST(to_text(contents(called_by_id)) == to_text(R"([
    {"role": "model", "parts": [
      {"functionCall": {"id": "h3x0", "name": "look", "args": {"at": 1}},
       "thoughtSignature": "CiQB", "partMetadata": {"own": 1}},
      {"functionCall": {"id": "8tq2", "name": "look", "args": {"at": 2}}}]},
    {"role": "user", "parts": [
      {"functionResponse": {"id": "h3x0", "name": "look", "response": {}}},
      {"functionResponse": {"id": "8tq2", "name": "look", "response": {}}}]}
    ])"_json));
}

BOOST_AUTO_TEST_CASE(vertex_knows_no_ids_of_calls) {
  const auto seen
    = body_of(request_of(format(), called_by_id, [](auto&, auto& with) {
        with.model = "publishers/google/models/gemini-x";
      }))["contents"];
  for (const auto& said : seen)
    for (const auto& element : said["parts"])
      BOOST_TEST(!element.begin().value().contains("id"));
}

// A session begun by ADK has the model's ids as its own.
BOOST_AUTO_TEST_CASE(ids_of_others_go_back_and_none_stands_for_two_calls) {
  const auto seen = contents({said("model", R"([
       {"functionCall": {"id": "h3x0", "name": "look", "args": {}}},
       {"functionCall": {"id": "adk-2", "name": "look", "args": {}},
        "partMetadata": {"gemini": {"id": "h3x0"}}},
       {"functionCall": {"name": "look", "args": {}}}])"),
                              said("user", R"([
       {"functionResponse": {"id": "h3x0", "name": "look", "response": {}}},
       {"functionResponse": {"id": "adk-2", "name": "look", "response": {}}},
       {"functionResponse": {"name": "look", "response": {}}}])")});
  for (const auto& said : seen)
    for (std::size_t index = 0; index < 3; ++index)
      BOOST_TEST(said["parts"][index].begin().value().value("id", "")
                 == (index == 0 ? "h3x0" : ""));
}

BOOST_AUTO_TEST_CASE(thoughts_empty_texts_and_foreign_fields_are_left_out) {
  const auto seen
    = contents({said("model", R"([{"text": "Hm.", "thought": true}])"),
                said("", R"([{"text": ""}, {"text": "Hi", "ownField": 1}])")});
  BOOST_TEST(
    to_text(seen)
    == to_text(R"([{"role": "user", "parts": [{"text": "Hi"}]}])"_json));
}

BOOST_AUTO_TEST_CASE(media_of_all_kinds_go_without_their_display_names) {
  const auto seen = contents(
    {{"user",
      {inline_data("\xFF\xFE", "video/mp4", "film.mp4"),
       said("", R"([{"file_data": {"file_uri": "gs://bucket/a.pdf",
                                   "mime_type": "application/pdf",
                                   "display_name": "a"}}])")
         .parts[0],
       said("", R"([{"inlineData": {"mimeType": "image/png", "data": "__4"},
                     "videoMetadata": {"fps": 1}}])")
         .parts[0],
       said("", R"([{"executableCode": {"code": "1"}}])").parts[0]}}});
  BOOST_TEST(to_text(seen) == to_text(R"([{"role": "user", "parts": [
    {"inlineData": {"mimeType": "video/mp4", "data": "//4="}},
    {"fileData": {"fileUri": "gs://bucket/a.pdf",
                  "mimeType": "application/pdf"}},
    {"inlineData": {"mimeType": "image/png", "data": "//4="}},
    {"executableCode": {"code": "1"}}]}])"_json));
}

BOOST_AUTO_TEST_CASE(parts_that_it_does_not_have_are_named) {
  BOOST_TEST(contents({said("user", R"([{"ownPart": {}}])")})["reason"]
             == "Gemini takes no ownPart");
  BOOST_TEST(contents({{"user", {inline_data("x", "")}}})["reason"]
             == "inlineData without a MIME type");
}

BOOST_AUTO_TEST_CASE(settings_go_where_the_reference_has_them) {
  const auto seen = configured(format(), R"({
    "temperature": 0.5, "top_p": 0.9, "maxOutputTokens": 10, "seed": null,
    "thinking_config": {"includeThoughts": true}, "candidateCount": 1,
    "safetySettings": [{"category": "C"}], "cached_content": "cachedContents/1",
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})");
  BOOST_TEST(to_text(seen) == to_text(R"({
    "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
    "generationConfig": {"temperature": 0.5, "topP": 0.9,
      "maxOutputTokens": 10, "candidateCount": 1,
      "thinkingConfig": {"includeThoughts": true}},
    "safetySettings": [{"category": "C"}],
    "cachedContent": "cachedContents/1",
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})"_json));
}

BOOST_AUTO_TEST_CASE(settings_that_the_request_makes_are_refused) {
  for (const std::string config : {R"({"tools": []})",
                                   R"({"system_instruction": {}})",
                                   R"({"contents": []})",
                                   "[]",
                                   R"({"topP": 1, "top_p": 1})"})
    BOOST_TEST(configured(format(), config)["code"] == "invalid_argument",
               config);
}

// Gemini would refuse them without a way out.
BOOST_AUTO_TEST_CASE(settings_of_the_client_of_adk_are_not_sent) {
  const std::string begin = "generation_config: ";
  BOOST_TEST(
    configured(format(), R"({"http_options": {"timeout": 1}})")["reason"]
    == begin
         + "'httpOptions' is a setting of ADK's client; set base_url, headers, "
           "attempts and timeouts of the model");
  BOOST_TEST(
    configured(format(), R"({"shouldReturnHttpResponse": true})")["reason"]
    == begin
         + "'shouldReturnHttpResponse' is a setting of ADK's client; leave it "
           "out");
  const auto seen = configured(
    format(), R"({"topK": 1, "automaticFunctionCalling": {"disable": true}})");
  BOOST_TEST(to_text(seen["generationConfig"]) == R"({"topK":1})");
}

BOOST_AUTO_TEST_CASE(a_schema_of_answers_is_json_schema) {
  const auto schema
    = R"({"type": "object", "properties": {"a": {"type": "string"}}})"_json;
  const auto seen = body_of(
    request_of(format(), {user_text("Hi")}, [&](auto& request, auto&) {
      request.response_schema = schema;
      request.generation_config = json{{"temperature", 1}};
    }));
  BOOST_TEST(to_text(seen["generationConfig"])
             == to_text({{"temperature", 1},
                         {"responseMimeType", "application/json"},
                         {"responseJsonSchema", schema}}));
}

// -- answers ----

BOOST_AUTO_TEST_CASE(what_a_model_said_goes_back_as_it_came) {
  const recordings recorded("gemini");
  auto answer = format()
                  .read_answer(recorded.text("parallel_calls", ".json"), {})
                  .value();
  const auto parts = parse_json(recorded.text("parallel_calls", ".json"))
                       .value()["candidates"][0]["content"]["parts"];
  const auto back = contents({std::move(answer.content)})[0]["parts"];
  BOOST_TEST(to_text(back[0]) == to_text(parts[0]));
  BOOST_TEST(to_text(back[1]) == to_text(parts[1]));
}

BOOST_AUTO_TEST_CASE(an_answer_that_says_nothing_is_one) {
  const auto read = format().read_answer("{}", {});
  BOOST_TEST_REQUIRE(code_of(read) == "ok");
  BOOST_TEST(read->content.parts.empty());
  BOOST_TEST(read->extra.is_null());
}

// The code that a run takes for a failure; empty for an answer.
std::string code_with(const std::string& reason, const std::string& parts) {
  const auto read
    = format()
        .read_answer(R"({"candidates": [{"content": {"parts": )" + parts
                       + R"(}, "finishReason": ")" + reason + R"("}]})",
                     {})
        .value();
  BOOST_TEST(read.extra.data()["finishReason"] == reason);
  return read.extra->value("errorCode", "");
}

BOOST_AUTO_TEST_CASE(an_answer_with_a_reason_that_is_unknown_is_an_answer) {
  const std::string words = R"([{"text": "Hi"}])";
  BOOST_TEST(code_with("NEW_REASON_OF_2027", words) == "");
  BOOST_TEST(code_with("CONTINUATION", words) == "");
  BOOST_TEST(code_with("NEW_REASON_OF_2027",
                       R"([{"functionCall": {"name": "f", "args": {}}}])")
             == "");
  BOOST_TEST(code_with("NEW_REASON_OF_2027", "[]") == "NEW_REASON_OF_2027");
  for (const std::string reason :
       {"SAFETY", "MALFORMED_FUNCTION_CALL", "MODEL_ARMOR"})
    BOOST_TEST(code_with(reason, words) == reason);
}

BOOST_AUTO_TEST_CASE(a_stream_with_a_reason_that_is_unknown_is_an_answer) {
  const auto seen = play(format(),
                         R"(data: {"candidates": [{"content": {"parts": )"
                         R"([{"text": "Hi"}]}, "finishReason": "NEW"}]})"
                         "\n\n",
                         {})
                      .whole;
  BOOST_TEST(to_text(seen["extra"]) == R"({"finishReason":"NEW"})");
}

const std::vector<bad_answer> bad_answers = {
  {R"({"candidates": {}})", "'candidates' in the answer is not of type list"},
  {R"({"candidates": [5]})",
   "'candidates' in the answer is not of type object"},
  {R"({"candidates": [{"content": {"parts": [{"text": 5}]}}]})",
   "'text' in the answer is not of type string"},
  {R"({"candidates": [{"content": {"parts": ["x"]}}]})",
   "'parts' in the answer is not of type object"},
  {R"({"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]})",
   "'name' is missing"},
  {R"({"candidates": [{"content": {"parts": [{"functionCall":
       {"name": "f", "args": {"a": 1, "a": 2}}}]}}]})",
   "it called function 'f' with malformed arguments: the key \"a\" comes "
   "twice"},
  {R"({"candidates": [{"content": {"parts": [{"functionCall":
       {"name": "f", "willContinue": true}}]}}]})",
   "streamed the arguments"},
  {R"({"usageMetadata": 5})", "'usageMetadata': it is no object"},
  {R"({"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}})",
   "INVALID_ARGUMENT: m"},
};

BOOST_DATA_TEST_CASE(what_is_no_answer_is_told,
                     data::make(bad_answers),
                     shown) {
  check_refused(format(), shown);
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_in_the_vendors_words) {
  BOOST_TEST(format().failure_of(429, R"({"error": {"code": 429,
    "message": "Quota exceeded.\nRetry in 3 s.",
    "status": "RESOURCE_EXHAUSTED", "details": []}})")
             == "RESOURCE_EXHAUSTED: Quota exceeded. Retry in 3 s.");
}

BOOST_AUTO_TEST_SUITE_END()
