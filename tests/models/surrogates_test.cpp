// Halves of surrogate pairs in answers: in the words and in the arguments of
// each format, whole and in a stream.

#include "troupe/models/formats/surrogates.hpp"

#include "troupe/models/formats/wire_format.hpp"

#include "recordings.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(surrogates)

namespace {

const std::vector<std::pair<std::string, std::string>> mended = {
  {R"("\ud800")", R"("\ufffd")"},
  {R"("\uDFFF")", R"("\ufffd")"},
  {R"("\ud800\ud83e\udd89")", R"("\ufffd\ud83e\udd89")"},
  {R"("\udd89\ud83e")", R"("\ufffd\ufffd")"},
  {R"("\ud83e \udd89")", R"("\ufffd \ufffd")"},
  {R"("\ud83e\\udd89")", R"("\ufffd\\udd89")"},
  {R"("\\\ud800")", R"("\\\ufffd")"},
  {R"({"\ud800": "\ud800)", R"({"\ufffd": "\ufffd)"},
};

const std::vector<std::string> untouched = {"",
                                            "\"x\"",
                                            R"("\ud83e\udd89")",
                                            R"("\\ud800")",
                                            R"("\\\\ud800")",
                                            R"("\ud7ff\ue000")",
                                            R"("\ud80)",
                                            R"("\ud8-0")",
                                            R"("\u)",
                                            "\\"};

struct answered {
  std::string name;
  wire_format_ptr (*format)();
  std::string whole;
  std::string stream;
};

std::ostream& operator<<(std::ostream& to, const answered& shown) {
  return to << shown.name;
}

// Answers with the text `a\ud800` and a call with the arguments `{"b":
// "\udc00"}`.
const std::vector<answered> answers = {
  {"openai",
   &openai_format,
   R"({"choices": [{"finish_reason": "tool_calls", "message": {
     "content": "a\ud800", "tool_calls": [{"id": "1", "function": {"name": "f",
     "arguments": "{\"b\": \"\\udc00\"}"}}]}}]})",
   "data: "
   R"({"choices": [{"delta": {"content": "a\ud800"}}]})"
   "\n\ndata: "
   R"({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "1",)"
   R"( "function": {"name": "f", "arguments": "{\"b\": \"\\u"}}]}}]})"
   "\n\ndata: "
   R"({"choices": [{"delta": {"tool_calls": [{"index": 0,)"
   R"( "function": {"arguments": "dc00\"}"}}]}}]})"
   "\n\ndata: [DONE]\n\n"},
  {"gemini",
   &gemini_format,
   R"({"candidates": [{"finishReason": "STOP", "content": {"parts": [
     {"text": "a\ud800"},
     {"functionCall": {"name": "f", "args": {"b": "\udc00"}}}]}}]})",
   "data: "
   R"({"candidates": [{"content": {"parts": [{"text": "a\ud800"}]}}]})"
   "\n\ndata: "
   R"({"candidates": [{"finishReason": "STOP", "content": {"parts": [)"
   R"({"functionCall": {"name": "f", "args": {"b": "\udc00"}}}]}}]})"
   "\n\n"},
  {"anthropic",
   &anthropic_format,
   R"({"stop_reason": "tool_use", "content": [
     {"type": "text", "text": "a\ud800"},
     {"type": "tool_use", "name": "f", "input": {"b": "\udc00"}}]})",
   "data: "
   R"({"type": "content_block_start", "index": 0,)"
   R"( "content_block": {"type": "text", "text": ""}})"
   "\n\ndata: "
   R"({"type": "content_block_delta", "index": 0,)"
   R"( "delta": {"type": "text_delta", "text": "a\ud800"}})"
   "\n\ndata: "
   R"({"type": "content_block_start", "index": 1,)"
   R"( "content_block": {"type": "tool_use", "name": "f", "input": {}}})"
   "\n\ndata: "
   R"({"type": "content_block_delta", "index": 1, "delta": {)"
   R"("type": "input_json_delta", "partial_json": "{\"b\": \"\\udc00\"}"}})"
   "\n\ndata: "
   R"({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})"
   "\n\ndata: "
   R"({"type": "message_stop"})"
   "\n\n"},
};

void check_parts(const json& seen) {
  BOOST_REQUIRE(seen.contains("content"));
  const auto& parts = seen["content"]["parts"];
  BOOST_REQUIRE(parts.size() == 2U);
  BOOST_TEST(parts[0]["text"] == "a\xEF\xBF\xBD");
  BOOST_TEST(to_text(parts[1]["functionCall"]["args"])
             == "{\"b\":\"\xEF\xBF\xBD\"}");
}

} // namespace

BOOST_AUTO_TEST_CASE(each_half_alone_is_replaced) {
  for (const auto& [text, expected] : mended)
    BOOST_TEST(without_lone_surrogates(text).value_or("unchanged") == expected,
               text);
}

BOOST_AUTO_TEST_CASE(other_text_is_unchanged) {
  for (const auto& text : untouched)
    BOOST_TEST(!without_lone_surrogates(text).has_value(), text);
}

BOOST_DATA_TEST_CASE(an_answer_with_half_a_pair_is_an_answer,
                     data::make(answers),
                     shown_answer) {
  const auto format = shown_answer.format();
  check_parts(shown(format->read_answer(shown_answer.whole, {})));
}

BOOST_DATA_TEST_CASE(a_stream_with_half_a_pair_is_an_answer,
                     data::make(answers),
                     shown_answer) {
  const auto format = shown_answer.format();
  const auto seen = play(*format, shown_answer.stream, {});
  check_parts(seen.whole);
  BOOST_REQUIRE(!seen.pieces.empty());
  BOOST_TEST(joined(seen.pieces, false) == "a\xEF\xBF\xBD");
}

BOOST_AUTO_TEST_SUITE_END()
