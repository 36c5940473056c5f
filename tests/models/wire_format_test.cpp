// Rules of every vendor's format, checked on the recorded answers.

#include "troupe/models/formats/wire_format.hpp"

#include "../outcome.hpp"
#include "recordings.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(wire_formats)

namespace {

struct vendor {
  std::string name;
  wire_format_ptr (*make)();
  std::uint32_t seed;
};

std::ostream& operator<<(std::ostream& to, const vendor& shown) {
  return to << shown.name;
}

const std::array vendors
  = {vendor{"openai", &openai_format, 1},
     vendor{"gemini", &gemini_format, 2},
     vendor{"anthropic", &anthropic_format, 3},
     vendor{"openai_responses", &openai_responses_format, 4}};

} // namespace

// The stream is read in one piece, byte by byte, and in two pieces split
// anywhere.
BOOST_DATA_TEST_CASE(streams_mean_what_is_expected_however_they_are_cut,
                     data::make(vendors),
                     of) {
  const auto format = of.make();
  const recordings recorded(of.name);
  for (const auto& name : recorded.names(".sse")) {
    const auto text = recorded.text(name, ".sse");
    const auto whole = play(*format, text, {});
    BOOST_TEST_INFO(name);
    BOOST_TEST(to_text(whole.whole) == to_text(recorded.expected(name)));
    std::vector<std::size_t> all;
    for (std::size_t at = 0; at < text.size(); ++at) {
      all.push_back(at);
      BOOST_TEST((play(*format, text, {at}) == whole),
                 name << " cut at " << at);
    }
    BOOST_TEST((play(*format, text, all) == whole), name << " byte by byte");
  }
}

BOOST_DATA_TEST_CASE(answers_at_once_mean_the_same_as_streams,
                     data::make(vendors),
                     of) {
  const auto format = of.make();
  const recordings recorded(of.name);
  for (const auto& name : recorded.names(".json")) {
    BOOST_TEST_INFO(name);
    BOOST_TEST(
      to_text(shown(format->read_answer(recorded.text(name, ".json"), {})))
      == to_text(recorded.expected(name)));
  }
}

const std::vector<bad_answer> bad_answers
  = {{"", "it sent nothing"},
     {"{", "the answer is not JSON"},
     {"[]", "the answer is not a JSON object"}};

BOOST_DATA_TEST_CASE(what_is_no_json_object_is_no_answer,
                     data::make(vendors) * data::make(bad_answers),
                     of,
                     shown) {
  const auto read = of.make()->read_answer(shown.text, {});
  BOOST_TEST(code_of(read) == "model_failed");
  BOOST_TEST(reason_of(read).find(shown.reason) != std::string::npos,
             reason_of(read));
}

// The pieces and the whole answer have the same text.
BOOST_DATA_TEST_CASE(pieces_are_the_words_of_the_whole,
                     data::make(vendors),
                     of) {
  const auto format = of.make();
  const recordings recorded(of.name);
  for (const auto& name : recorded.names(".sse")) {
    const auto seen = play(*format, recorded.text(name, ".sse"), {});
    if (!seen.whole.contains("content"))
      continue;
    const std::vector<json> whole{seen.whole["content"]};
    for (const bool thoughts : {false, true})
      BOOST_TEST(joined(seen.pieces, thoughts) == joined(whole, thoughts),
                 name);
  }
}

BOOST_DATA_TEST_CASE(a_stream_that_ends_anywhere_is_whole_or_has_failed,
                     data::make(vendors),
                     of) {
  const auto format = of.make();
  const recordings recorded(of.name);
  const auto text = recorded.text("text", ".sse");
  const auto whole = play(*format, text, {}).whole;
  for (std::size_t size = 0; size < text.size(); ++size) {
    auto seen = play(*format, text.substr(0, size), {}).whole;
    // An event without text (the counts of tokens) may be missing.
    if (seen.contains("content"))
      BOOST_TEST(to_text(seen["content"]) == to_text(whole["content"]));
    else
      BOOST_TEST(seen["reason"] == "the stream broke off before its end");
  }
}

// A result may also enter a session.
BOOST_DATA_TEST_CASE(no_damage_makes_a_reader_throw, data::make(vendors), of) {
  const auto format = of.make();
  const recordings recorded(of.name);
  std::mt19937 draw(of.seed);
  const std::vector<std::string> parts = {"null",
                                          "[",
                                          "{}",
                                          "1e999",
                                          "-1",
                                          "\"x\"",
                                          "\xFF",
                                          "\\ud800",
                                          "\n",
                                          "true",
                                          "\"",
                                          ",",
                                          "99999999999999999999",
                                          "[[[[[",
                                          "\0"};
  const auto check = [](const json& seen) {
    if (seen.contains("content"))
      BOOST_TEST(code_of(check_json(seen, "answer")) == "ok");
    else
      BOOST_TEST((seen["code"] == "model_failed" || seen["code"] == "busy"));
  };
  for (const auto& name : recorded.names(".expected.json"))
    for (int count = 0; count < 100; ++count) {
      const bool streamed = recorded.names(".sse").contains(name);
      auto text = recorded.text(name, streamed ? ".sse" : ".json");
      for (int change = 0; change < 2; ++change)
        text.replace(
          draw() % text.size(), draw() % 20, parts[draw() % parts.size()]);
      BOOST_TEST_INFO(name << ", seed " << of.seed);
      check(streamed ? play(*format, text, {}).whole
                     : shown(format->read_answer(text, {})));
    }
}

BOOST_AUTO_TEST_SUITE_END()
