// The wire form of contents and parts.

#include "troupe/core/content.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(contents)

namespace {

result<content> read(std::string_view text) {
  return content_from_json(parse_json(text).value());
}

std::string rewritten(std::string_view text) {
  return to_text(to_json(read(text).value()));
}

// Wire texts that are written exactly as they were read.
const std::vector<std::string> faithful = {
  R"({"parts":[]})",
  R"({"parts":[],"role":"user"})",
  R"({"parts":[{"text":"hi"},{"text":""}],"role":"user"})",
  R"({"parts":[{"text":"hm","thought":true}],"role":"model"})",
  R"({"parts":[{"functionCall":{"args":{"a":[1]},"id":"c1","name":"f"}}],"role":"model"})",
  R"({"parts":[{"functionCall":{"args":{},"name":"f"},"thoughtSignature":"x"}]})",
  R"({"parts":[{"functionResponse":{"id":"c1","name":"f","response":{"result":1}}}],"role":"user"})",
  R"({"parts":[{"functionCall":{"args":{},"name":"f","new":[null,{"a_b":1}],"partialArgs":[{"jsonPath":"$.q","stringValue":"x"}],"willContinue":true}}]})",
  R"({"parts":[{"functionResponse":{"name":"f","new":1.5,"parts":[{"inlineData":{"data":"AAEC","mimeType":"image/png"}}],"response":{},"scheduling":"SILENT","willContinue":false}}]})",
  R"({"parts":[{"inlineData":{"data":"AAAA","mimeType":"image/png"}}]})",
  R"({"parts":[{"codeExecutionResult":{"outcome":"OUTCOME_OK"}},{}]})",
  R"({"parts":[{"text":"x","videoMetadata":{"fps":1}}]})",
};

const std::vector<std::pair<std::string, std::string>> refused = {
  {R"([])", "content"},
  {R"({"role": 1})", "role"},
  {R"({"parts": {}})", "parts"},
  {R"({"parts": ["hi"]})", "part"},
  {R"({"parts": [{"text": 1}]})", "text"},
  {R"({"parts": [{"text": "a", "thought": "yes"}]})", "thought"},
  {R"({"parts": [{"functionCall": []}]})", "functionCall"},
  {R"({"parts": [{"functionCall": {"args": {}}}]})", "name"},
  {R"({"parts": [{"functionCall": {"name": "f", "args": [1]}}]})", "args"},
  {R"({"parts": [{"functionCall": {"name": "f", "id": 7}}]})", "id"},
  {R"({"parts": [{"functionResponse": {"name": "f", "response": 1}}]})",
   "response"},
  {R"({"parts": [{"functionResponse": {"response": {}}}]})", "name"},
  {R"({"parts": [{"text": "a", "functionCall": {"name": "f"}}]})",
   "both text and a call"},
  {R"({"parts": [{"functionCall": {"name": "f"}, "functionResponse": {"name": "f"}}]})",
   "nothing else"},
  {R"({"parts": [{"function_call": {"name": "f"}, "functionCall": {"name": "f"}}]})",
   "function"},
};

} // namespace

BOOST_DATA_TEST_CASE(what_was_read_is_written_again,
                     data::make(faithful),
                     text) {
  BOOST_TEST(rewritten(text) == text);
  BOOST_TEST((read(text).value() == read(rewritten(text)).value()));
}

BOOST_AUTO_TEST_CASE(snake_case_is_read_and_camel_case_written) {
  BOOST_TEST(
    rewritten(
      R"({"parts": [{"function_call": {"name": "f"}, "thought_signature": "s"},
                    {"function_response": {"name": "f", "response": {"x_y": 1}}},
                    {"inline_data": {"data": ""}}]})")
    == R"({"parts":[{"functionCall":{"args":{},"name":"f"},"thoughtSignature":"s"},)"
       R"({"functionResponse":{"name":"f","response":{"x_y":1}}},)"
       R"({"inlineData":{"data":""}}]})");
}

BOOST_AUTO_TEST_CASE(further_fields_of_functions_are_read_in_either_spelling) {
  BOOST_TEST(
    rewritten(
      R"({"parts": [{"function_call": {"name": "f", "will_continue": true,
                                       "partial_args": [{"json_path": "$"}]}},
                    {"function_response": {"name": "f", "response": {},
                                           "will_continue": true}}]})")
    == R"({"parts":[{"functionCall":{"args":{},"name":"f",)"
       R"("partialArgs":[{"json_path":"$"}],"willContinue":true}},)"
       R"({"functionResponse":{"name":"f","response":{},"willContinue":true}}]})");
  BOOST_TEST(code_of(read(R"({"parts": [{"functionCall": {"name": "f",
               "will_continue": true, "willContinue": true}}]})"))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(functions_with_other_further_fields_differ) {
  const auto plain = function_response("c", "f", json::object());
  auto attached = plain;
  attached.extra = json{{"scheduling", "SILENT"}};
  BOOST_TEST((plain != attached));
  auto waiting = function_call("c", "f", json::object());
  const auto call = waiting;
  waiting.extra = json{{"willContinue", true}};
  BOOST_TEST((call != waiting));
}

BOOST_AUTO_TEST_CASE(the_media_of_a_response_are_parts) {
  function_response answer("c", "f", json::object());
  BOOST_TEST(attached_parts(answer).empty());
  for (const auto* none : {R"({"parts": null})", R"({"parts": {}})", "{}"}) {
    answer.extra = parse_json(none).value();
    BOOST_TEST(attached_parts(answer).empty());
  }
  answer.extra = parse_json(R"({"parts": [
      {"inline_data": {"data": "AAEC", "mime_type": "image/png"}}, 7,
      {"fileData": {"fileUri": "gs://a"}}]})")
                   .value();
  const auto attached = attached_parts(answer);
  BOOST_REQUIRE(attached.size() == 2U);
  const auto bytes = blob_of(attached[0]).value();
  BOOST_REQUIRE(bytes.has_value());
  BOOST_TEST(bytes->bytes == std::string("\0\1\2", 3));
  BOOST_TEST(bytes->mime_type == "image/png");
  BOOST_TEST(to_text(std::get<value>(attached[1].body).data())
             == R"({"fileData":{"fileUri":"gs://a"}})");
}

BOOST_AUTO_TEST_CASE(a_null_field_is_an_absent_one) {
  BOOST_TEST(rewritten(R"({"role": null, "parts": [
               {"text": "a", "thought": null, "functionCall": null}]})")
             == R"({"parts":[{"text":"a"}]})");
}

BOOST_AUTO_TEST_CASE(bad_contents_are_refused_with_the_name_of_the_field) {
  for (const auto& [text, field] : refused)
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(code_of(read(text)) == "invalid_argument");
      BOOST_TEST(reason_of(read(text)).find(field) != std::string::npos,
                 reason_of(read(text)));
    }
}

BOOST_AUTO_TEST_CASE(the_text_is_all_text_parts_but_thoughts) {
  const auto said
    = read(R"({"parts": [{"text": "a"}, {"text": "hm", "thought": true},
                         {"functionCall": {"name": "f"}}, {"text": "b"}]})")
        .value();
  BOOST_TEST(said.text() == "ab");
  BOOST_TEST(content().text().empty());
  BOOST_TEST(content().empty());
  BOOST_TEST(!said.empty());
}

BOOST_AUTO_TEST_CASE(short_forms_say_who_speaks) {
  BOOST_TEST(to_text(to_json(text("{} words", 7)))
             == R"({"parts":[{"text":"7 words"}],"role":"model"})");
  BOOST_TEST(to_text(to_json(user_text("{}")))
             == R"({"parts":[{"text":"{}"}],"role":"user"})");
}

BOOST_AUTO_TEST_SUITE_END()
