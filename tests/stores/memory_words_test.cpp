// The words by which memories are searched.

#include "troupe/stores/memory_words.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <string>

using namespace troupe;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(words_of_memories)

namespace {

std::string in_text(const std::string& text) {
  return fmt::format("{}", fmt::join(memory_words(text), "|"));
}

std::string in_query(const std::string& text) {
  return fmt::format("{}", fmt::join(query_words(text), "|"));
}

} // namespace

BOOST_AUTO_TEST_CASE(are_letters_and_digits_each_once) {
  BOOST_TEST(in_text("Don't panic, it's 42 o'clock: don't!")
             == "don|t|panic|it|s|42|o|clock");
  BOOST_TEST(in_text("user_id=17, C++") == "user|id|17|c");
  BOOST_TEST(in_text("") == "");
  BOOST_TEST(in_text("\n\t -- ?!") == "");
  BOOST_TEST(in_text("a\0b"s) == "a|b");
  BOOST_TEST(in_text("a\xff"
                     "b\xc3")
             == "a|b");
}

BOOST_AUTO_TEST_CASE(have_one_form) {
  BOOST_TEST(in_text("Éa e\xcc\x81"
                     "A ÉA")
             == "ea");
  BOOST_TEST(in_text("ﬁne ＡＢＣ x²") == "fine|abc|x2");
  // Marks of Indic scripts are parts of words.
  BOOST_TEST(in_text("हिन्दी") == "हिन्दी");
}

BOOST_AUTO_TEST_CASE(are_pairs_where_no_blanks_are_written) {
  BOOST_TEST(in_text("喝绿茶") == "喝|喝绿|绿|绿茶|茶");
  BOOST_TEST(in_query("喝绿茶") == "喝绿|绿茶");
  BOOST_TEST(in_query("茶") == "茶");
  BOOST_TEST(in_query("茶。茶") == "茶");
  BOOST_TEST(in_query("用Python写") == "用|python|写");
}

BOOST_AUTO_TEST_CASE(are_bounded) {
  BOOST_TEST(memory_words(std::string(1'000, 'a')).front().size() <= 64U);
  BOOST_TEST(memory_words(std::string(1'000, 'a'))
             == query_words(std::string(999, 'a')));
  std::string many;
  for (int count = 0; count < 10'000; ++count)
    many += fmt::format("w{} ", count);
  BOOST_TEST(memory_words(many).size() == 8'192U);
  BOOST_TEST(query_words(many).size() == 64U);
  BOOST_TEST(query_words(many).back() == "w63");
}

BOOST_AUTO_TEST_CASE(count_more_if_they_are_rare) {
  BOOST_TEST(word_weight(10, 1) > word_weight(10, 2));
  BOOST_TEST(word_weight(10, 10) > 0);
  BOOST_TEST(word_weight(10, 1) < 2 * word_weight(10, 2));
  BOOST_TEST(word_weight(1, 1) == 693);
}

BOOST_AUTO_TEST_SUITE_END()
