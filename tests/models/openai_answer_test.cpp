// Chat completions: recorded answers of OpenAI and of compatible servers, and
// failures.

#include "troupe/models/formats/wire_format.hpp"

#include "../outcome.hpp"
#include "recordings.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(openai_answers)

namespace {

const wire_format& format() {
  static const wire_format_ptr made = openai_format();
  return *made;
}

} // namespace

BOOST_AUTO_TEST_CASE(words_come_in_the_pieces_that_the_vendor_sends) {
  const auto seen
    = play(format(), recordings("openai").text("text", ".sse"), {}).pieces;
  BOOST_TEST_REQUIRE(seen.size() == 3U);
  BOOST_TEST(to_text(seen[1]) == to_text(R"({"role": "model",
    "parts": [{"text": " aus \u6771\u4eac"}]})"_json));
}

const std::string tagged = R"({"choices": [{"finish_reason": "stop",
  "message": {"content": "<think>Hm.</think>Hi"}}]})";

BOOST_AUTO_TEST_CASE(tags_are_words_at_openai_itself) {
  wire_options with;
  with.base_url = "https://api.openai.com/v1";
  BOOST_TEST(format().read_answer(tagged, with).value().content.text()
             == "<think>Hm.</think>Hi");
  BOOST_TEST(format().read_answer(tagged, {}).value().content.text() == "Hi");
}

BOOST_AUTO_TEST_CASE(tags_are_words_beside_thoughts_of_their_own_field) {
  const auto read = format().read_answer(R"({"choices": [{"message": {
    "content": "<think>Hm.</think>Hi", "reasoning": "Hm."}}]})",
                                         {});
  BOOST_TEST(read.value().content.text() == "<think>Hm.</think>Hi");
}

// The pieces were delivered already, but the whole answer is right.
BOOST_AUTO_TEST_CASE(a_tag_that_only_ends_is_understood_at_the_end) {
  const auto seen = play(format(),
                         R"(data: {"choices": [{"delta": {"content": "Hm."}}]})"
                         "\n\n"
                         R"(data: {"choices": [{"delta": {"content":)"
                         R"( "\n</think>\n\nHi"}, "finish_reason": "stop"}]})"
                         "\n\n",
                         {});
  BOOST_TEST(to_text(seen.whole["content"]["parts"]) == to_text(R"([
    {"text": "Hm.\n", "thought": true}, {"text": "Hi"}])"_json));
  BOOST_TEST(joined(seen.pieces, false) == "Hm.\n</think>\n\nHi");
}

const std::vector<bad_answer> bad_answers = {
  {"{}", "the answer has no choices"},
  {R"({"choices": []})", "the answer has no choices"},
  {R"({"choices": {}})", "'choices' in the answer is not of type list"},
  {R"({"choices": [{"message": {"content": 5}}]})",
   "'content' in the answer is not of type string"},
  {R"({"choices": [{"message": [], "finish_reason": "stop"}]})",
   "'message' in the answer is not of type object"},
  {R"({"choices": [{"message": {"tool_calls": [{}]}}]})",
   "it called a function without a name"},
  {R"({"choices": [{"message": {"tool_calls": [{"function":
       {"name": "f", "arguments": "[1]"}}]}}]})",
   "it called function 'f' with malformed arguments: they are no JSON object"},
  {R"({"choices": [{"message": {"tool_calls": [{"function":
       {"name": "f", "arguments": "{\"a\":1,\"a\":2}"}}]}}]})",
   "comes twice"},
  {R"({"choices": [{"message": {"tool_calls": [{"function":
       {"name": "f", "arguments": "{\"a\":1e999}"}}]}}]})",
   "does not fit 64 bits"},
  {R"({"error": {"message": "no", "type": "t", "code": "c"}})", "c: no"},
  {R"({"error": "just text"})", "just text"},
  {R"({"object": "error", "message": "vLLM says no", "type": "BadRequestError",
       "code": 400})",
   "BadRequestError: vLLM says no"},
};

BOOST_DATA_TEST_CASE(what_is_no_answer_is_told,
                     data::make(bad_answers),
                     shown) {
  check_refused(format(), shown);
}

BOOST_AUTO_TEST_CASE(arguments_that_nest_too_deep_are_refused) {
  const auto nested = std::string(70, '[') + std::string(70, ']');
  const json body{
    {"choices",
     {{{"message",
        {{"tool_calls",
          {{{"function",
             {{"name", "f"}, {"arguments", "{\"a\":" + nested + "}"}}}}}}}}}}}};
  BOOST_TEST(
    reason_of(format().read_answer(to_text(body), {})).find("deeper than")
    != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_passed_over) {
  const auto text = recordings("openai").text("text", ".json");
  BOOST_TEST(to_text(shown(format().read_answer("\xEF\xBB\xBF" + text, {})))
             == to_text(shown(format().read_answer(text, {}))));
}

BOOST_AUTO_TEST_CASE(of_several_alternatives_the_first_is_the_answer) {
  const auto read = format().read_answer(R"({"choices": [
    {"index": 1, "message": {"content": "B"}, "finish_reason": "length"},
    {"index": 0, "message": {"content": "A"}, "finish_reason": "stop"}]})",
                                         {});
  BOOST_TEST(to_text(shown(read)) == to_text(R"({
    "content": {"role": "model", "parts": [{"text": "A"}]},
    "extra": {"finishReason": "STOP"}})"_json));
}

BOOST_AUTO_TEST_CASE(odd_counts_of_tokens_are_passed_over) {
  const auto read = format().read_answer(R"({"choices": [{}], "usage": {
    "prompt_tokens": -1, "completion_tokens": 1e300, "total_tokens": "7",
    "prompt_tokens_details": {"cached_tokens": 18446744073709551615}}})",
                                         {});
  BOOST_TEST_REQUIRE(code_of(read) == "ok");
  BOOST_TEST(read->extra.is_null());
}

BOOST_AUTO_TEST_CASE(a_name_that_each_piece_repeats_is_one_name) {
  const std::string piece = R"(data: {"choices": [{"delta": {"tool_calls": [
    {"index": 0, "id": "1", "function": {"name": "f", "arguments": "X"}}]}}]})";
  std::string text;
  for (const std::string arguments : {"{", "}"}) {
    text += piece;
    text.replace(text.rfind('X'), 1, arguments);
    text.erase(text.rfind('\n'), 1);
    text += "\n\n";
  }
  const auto seen = play(format(), text + "data: [DONE]\n\n", {}).whole;
  BOOST_TEST(to_text(seen["content"]) == to_text(R"({"role": "model", "parts": [
    {"functionCall": {"id": "1", "name": "f", "args": {}}}]})"_json));
}

// Pieces of calls, and the calls that they make.
struct call_stream {
  std::vector<std::string> pieces;
  std::string expected;
};

std::ostream& operator<<(std::ostream& to, const call_stream& shown) {
  for (const auto& piece : shown.pieces)
    to << piece;
  return to;
}

const std::vector<call_stream> call_streams = {
  // Without an index, ids tell calls apart, also where the pieces alternate.
  {{R"({"id": "a", "function": {"name": "f", "arguments": "{\"n\":"}})",
    R"({"id": "b", "function": {"name": "f", "arguments": "{\"n\":"}})",
    R"({"id": "a", "function": {"arguments": "1}"}})",
    R"({"id": "b", "function": {"name": "f", "arguments": "2}"}})"},
   R"(a f {"n":1} b f {"n":2} )"},
  {{R"({"id": "a", "function": {"name": "f", "arguments": "{\"n\":"}})",
    R"({"function": {"arguments": "1"}})",
    R"({"function": {"arguments": "}"}})",
    R"({"id": "b", "function": {"name": "g", "arguments": "{}"}})"},
   R"(a f {"n":1} b g {} )"},
  {{R"({"id": "a", "function": {"name": "f"}})",
    R"({"id": "b"})",
    R"({"id": "b", "function": {"name": "g", "arguments": "{}"}})"},
   R"(a f {} b g {} )"},
  {{R"({"function": {"name": "f"}})",
    R"({"id": "a", "function": {"arguments": "{}"}})"},
   R"(a f {} )"},
  {{R"({"function": {"name": "f", "arguments": "{}"}})",
    R"({"id": "a", "function": {"name": "g", "arguments": "{}"}})"},
   R"( f {} a g {} )"},
  // Without index and id, a name begins a call unless it is a repetition.
  {{R"({"id": "a", "function": {"name": "f", "arguments": ""}})",
    R"({"function": {"name": "f", "arguments": "{\"n\":"}})",
    R"({"function": {"name": "f", "arguments": "1}"}})",
    R"({"function": {"name": "f", "arguments": ""}})"},
   R"(a f {"n":1} )"},
  {{R"({"function": {"name": "f"}})", R"({"function": {"name": "f"}})"},
   R"( f {}  f {} )"},
  {{R"({"function": {"name": "f", "arguments": "{\"n\":1}"}})",
    R"({"function": {"name": "f", "arguments": " {\"n\":2}"}})"},
   R"( f {"n":1}  f {"n":2} )"},
  // One index for all.
  {{R"({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}})",
    R"({"index": 0, "id": "b", "function": {"name": "f", "arguments": "{"}})",
    R"({"index": 0, "id": "a", "function": {"arguments": "}"}})",
    R"({"index": 0, "id": "b", "function": {"arguments": "}"}})"},
   R"(a f {} b f {} )"},
  {{R"({"index": 0, "id": "", "function": {"name": "f", "arguments": "{}"}})",
    R"({"index": 0, "id": "", "function": {"name": "f", "arguments": "{}"}})"},
   R"( f {}  f {} )"},
  {{R"({"index": 0, "id": "a", "function": {"name": "lo"}})",
    R"({"index": 0, "function": {"name": "ok", "arguments": "{\"n\":{}"}})",
    R"({"index": 0, "function": {"arguments": "}"}})"},
   R"(a look {"n":{}} )"},
  // The index counts more than an id that comes twice.
  {{R"({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}})",
    R"({"index": 1, "id": "a", "function": {"name": "g", "arguments": "{"}})",
    R"({"index": 0, "function": {"arguments": "}"}})",
    R"({"index": 1, "function": {"arguments": "}"}})"},
   R"(a f {} a g {} )"},
};

BOOST_DATA_TEST_CASE(pieces_of_calls_are_joined,
                     data::make(call_streams),
                     shown) {
  std::string text;
  for (const auto& piece : shown.pieces)
    text += R"(data: {"choices": [{"delta": {"tool_calls": [)" + piece
            + "]}}]}\n\n";
  const auto seen = play(format(), text + "data: [DONE]\n\n", {}).whole;
  std::string calls;
  for (const auto& element : seen["content"]["parts"]) {
    const auto& call = element["functionCall"];
    calls += call.value("id", "") + ' ' + call.value("name", "") + ' '
             + to_text(call["args"]) + ' ';
  }
  BOOST_TEST(calls == shown.expected, to_text(seen));
}

BOOST_AUTO_TEST_CASE(done_is_an_end_without_a_reason) {
  const auto seen = play(format(),
                         "data: {\"choices\": [{\"delta\": {\"content\": "
                         "\"Hi\"}}]}\n\ndata: [DONE]\n\n",
                         {})
                      .whole;
  BOOST_TEST(to_text(seen) == to_text(R"({
    "content": {"role": "model", "parts": [{"text": "Hi"}]},
    "extra": null})"_json));
}

BOOST_AUTO_TEST_CASE(counts_alone_are_an_end_behind_words) {
  const std::string counts
    = R"(data: {"choices": [], "usage": {"total_tokens": 3}})"
      "\n\n";
  const std::string words
    = R"(data: {"choices": [{"delta": {"content": "Hi"}}]})"
      "\n\n";
  BOOST_TEST(play(format(), words + counts, {}).whole.contains("content"));
  for (const auto& text : {counts, counts + words, words})
    BOOST_TEST(play(format(), text, {}).whole["reason"]
               == "the stream broke off before its end");
}

BOOST_AUTO_TEST_CASE(what_follows_the_end_is_passed_over) {
  const auto text = recordings("openai").text("text", ".sse");
  BOOST_TEST((play(format(), text + "data: nonsense\n\n", {})
              == play(format(), text, {})));
}

BOOST_AUTO_TEST_CASE(an_event_that_is_no_json_fails_the_stream) {
  const auto seen = play(format(), "data: <html>\n\n", {}).whole;
  BOOST_TEST(seen["code"] == "model_failed");
}

// -- failures ----

struct failure {
  std::string body;
  std::string expected;
};

std::ostream& operator<<(std::ostream& to, const failure& shown) {
  return to << shown.body;
}

const std::vector<failure> failures = {
  {R"({"error": {"message": "Incorrect API key provided: sk-x.",
       "type": "invalid_request_error", "param": null,
       "code": "invalid_api_key"}})",
   "invalid_api_key: Incorrect API key provided: sk-x."},
  {R"({"error": {"message": "Slow down", "type": "tokens", "code": null}})",
   "tokens: Slow down"},
  {R"({"error": "model 'x' not found"})", "model 'x' not found"},
  {R"({"error": {"code": 400, "message": "bad", "type": "invalid"}})",
   "invalid: bad"},
  {R"({"detail": "Not Found"})", "Not Found"},
  {R"({"message": "no Route matched"})", "no Route matched"},
  {R"({"reason": 1})", R"({"reason": 1})"},
  {R"([{"error": {"code": 400, "message": "m", "status": "INVALID"}}])",
   "INVALID: m"},
  {"<html><head><title>502 Bad Gateway</title><style>p {}</style></head>"
   "<body>\r\n<h1>502 Bad&nbsp;Gateway</h1><script>if (1 > 0) x();</script>"
   "nginx &amp; co</body></html>",
   "502 Bad Gateway nginx & co"},
  {"upstream connect error\n\nreset", "upstream connect error reset"},
  {"", "no reason given (status 502)"},
  {" \n", "no reason given (status 502)"},
  {"bad \xFF\x01 byte", "bad \xEF\xBF\xBD byte"},
};

BOOST_DATA_TEST_CASE(a_failure_is_told_in_the_vendors_words,
                     data::make(failures),
                     shown) {
  BOOST_TEST(format().failure_of(502, shown.body) == shown.expected);
}

BOOST_AUTO_TEST_CASE(a_long_failure_is_cut_between_characters) {
  for (std::size_t offset = 0; offset < 3; ++offset) {
    std::string body(offset, 'x');
    for (int count = 0; count < 1'000; ++count)
      body += "\xE6\x9D\xB1";
    const auto line = format().failure_of(500, body);
    BOOST_TEST(line.size() <= 500U);
    BOOST_TEST(line.size() >= 495U);
    BOOST_TEST(is_utf8(line));
    BOOST_TEST(line.ends_with("\xE2\x80\xA6"));
  }
}

BOOST_AUTO_TEST_CASE(a_failure_never_tells_the_key) {
  const std::string key = "secret-key-1";
  // The key is also hidden where the line is cut off within it.
  const auto body = std::string(490, 'x') + key + " and " + key;
  const auto line = format().failure_of(401, body, key);
  BOOST_TEST(line.find("secret") == std::string::npos);
  BOOST_TEST(format().failure_of(401, "Bearer " + key, key) == "Bearer ***");
}

BOOST_AUTO_TEST_SUITE_END()
