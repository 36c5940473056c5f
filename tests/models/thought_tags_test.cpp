// Thoughts in tags: the tags that count; the pieces of a text make no
// difference.

#include "troupe/models/formats/thought_tags.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <vector>

using namespace troupe;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(tagged_thoughts)

namespace {

struct told {
  std::string thoughts;
  std::string words;

  friend bool operator==(const told&, const told&) = default;
};

struct answer {
  std::string text;
  told expected;
};

std::ostream& operator<<(std::ostream& to, const answer& shown) {
  return to << '"' << shown.text << '"';
}

told read(const std::vector<std::string>& pieces) {
  told seen;
  const auto say = [&seen](std::string_view words, bool thought) {
    (thought ? seen.thoughts : seen.words) += words;
  };
  thought_tags tags;
  for (const auto& piece : pieces)
    tags.take(piece, say);
  tags.finish(say);
  return seen;
}

const std::vector<answer> answers = {
  {"Hi", {"", "Hi"}},
  {"", {"", ""}},
  {" \n", {"", " \n"}},
  {" \nHi ", {"", " \nHi "}},
  {"<think>\nHm.\n</think>\n\nHi ", {"\nHm.\n", "Hi "}},
  {" \n<thinking>Hm.</thinking>Hi", {"Hm.", "Hi"}},
  {"<think></think>Hi", {"", "Hi"}},
  {"<think>1 < 2 </thin </think>Hi", {"1 < 2 </thin ", "Hi"}},
  {"<think>a</thinking>b</think>c", {"a</thinking>b", "c"}},
  {"<think>a</think>b<think>c</think>", {"a", "b<think>c</think>"}},
  {"Use <think>a</think>", {"", "Use <think>a</think>"}},
  {"<think>Never closed </thi", {"Never closed </thi", ""}},
  {"<think>", {"", ""}},
  {"<thin", {"", "<thin"}},
  {"<thinker>a", {"", "<thinker>a"}},
  {"<think >a</think>", {"", "<think >a</think>"}},
};

} // namespace

BOOST_DATA_TEST_CASE(a_tag_at_the_start_holds_the_thoughts,
                     data::make(answers),
                     shown) {
  BOOST_TEST((read({shown.text}) == shown.expected));
}

BOOST_DATA_TEST_CASE(cutting_changes_nothing, data::make(answers), shown) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < shown.text.size(); ++at) {
    BOOST_TEST((read({shown.text.substr(0, at), shown.text.substr(at)})
                == shown.expected),
               "cut at " << at);
    all.push_back(shown.text.substr(at, 1));
  }
  BOOST_TEST((read(all) == shown.expected), "byte by byte");
}

BOOST_AUTO_TEST_CASE(no_more_is_held_back_than_a_tag) {
  std::string seen;
  const auto say = [&seen](std::string_view words, bool) { seen += words; };
  thought_tags tags;
  tags.take("<think>Hm</th", say);
  BOOST_TEST(seen == "Hm");
  tags.take("is", say);
  BOOST_TEST(seen == "Hm</this");
  tags.take("</think> Hi <", say);
  BOOST_TEST(seen == "Hm</thisHi <");
}

BOOST_AUTO_TEST_CASE(tags_are_words_where_thoughts_have_come_otherwise) {
  told seen;
  const auto say = [&seen](std::string_view words, bool thought) {
    (thought ? seen.thoughts : seen.words) += words;
  };
  thought_tags tags;
  tags.take("<thi", say);
  tags.close(say);
  tags.take("nk>a</think>", say);
  tags.finish(say);
  BOOST_TEST((seen == told{"", "<think>a</think>"}));
}

const std::vector<answer> half_tagged = {
  {"Hm.\n</think>\n\nHi", {"Hm.\n", "Hi"}},
  {"Hm.\n \t</thinking>Hi", {"Hm.\n \t", "Hi"}},
  {"</think>\n\nHi", {"", "Hi"}},
  {" </think>Hi", {" ", "Hi"}},
  {"a\n</think>b\n</think>c", {"a\n", "b\n</think>c"}},
  {"Hi", {"", "Hi"}},
  {"", {"", ""}},
  {"Close it by </think>.", {"", "Close it by </think>."}},
  {"Write\n<think>\nHm.\n</think>", {"", "Write\n<think>\nHm.\n</think>"}},
};

BOOST_DATA_TEST_CASE(a_tag_that_only_ends_ends_what_precedes_it,
                     data::make(half_tagged),
                     shown) {
  const auto [thought, words] = split_at_closing_tag(shown.text);
  BOOST_TEST(thought == shown.expected.thoughts);
  BOOST_TEST(words == shown.expected.words);
}

BOOST_AUTO_TEST_SUITE_END()
