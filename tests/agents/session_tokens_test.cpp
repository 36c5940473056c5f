// The count of the tokens of a session.

#include "troupe/agents/turns/session_tokens.hpp"

#include "troupe/core/rewind.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(session_token_counts)

namespace {

event_ptr using_tokens(const std::string& id, json count) {
  event said;
  said.id = id;
  said.extra = json{{"usageMetadata", {{"totalTokenCount", count}}}};
  return std::make_shared<const event>(std::move(said));
}

event_ptr taking_back(std::uint64_t count) {
  event said;
  said.id = "rewind";
  take_back(said, count);
  return std::make_shared<const event>(std::move(said));
}

} // namespace

BOOST_AUTO_TEST_CASE(each_event_is_counted_once) {
  event_log log;
  log.push_back(using_tokens("a", 10));
  log.push_back(std::make_shared<const event>());
  token_count count;
  count.add(log.slice());
  count.add(log.slice());
  BOOST_TEST(count.tokens == 10U);
  BOOST_TEST(count.number == 2U);
  log.push_back(using_tokens("c", 5));
  count.add(log.slice());
  BOOST_TEST(count.tokens == 15U);
  BOOST_TEST(count.id == "c");
}

BOOST_AUTO_TEST_CASE(counts_that_make_no_sense_use_up_nothing) {
  BOOST_TEST(tokens_of(*using_tokens("a", "7")) == 0U);
  BOOST_TEST(tokens_of(*using_tokens("a", -7)) == 0U);
  BOOST_TEST(tokens_of(*using_tokens("a", 1e300)) == 1'000'000'000'000'000U);
  BOOST_TEST(tokens_of(event()) == 0U);
}

BOOST_AUTO_TEST_CASE(a_count_fits_until_events_are_taken_back) {
  event_log log;
  log.push_back(using_tokens("a", 10));
  log.push_back(using_tokens("b", 10));
  token_count count;
  count.add(log.slice().live());
  log.push_back(using_tokens("c", 10));
  BOOST_TEST(count.fits(log.slice().live(), 3));
  BOOST_TEST(!count.fits(log.slice().live(), 1));
  log.push_back(taking_back(1));
  BOOST_TEST(!count.fits(log.slice().live(), 4));
  token_count again;
  again.add(log.slice().live());
  BOOST_TEST(again.tokens == 20U);
}

BOOST_AUTO_TEST_CASE(a_count_of_another_session_does_not_fit) {
  event_log log;
  log.push_back(using_tokens("a", 10));
  token_count count;
  count.add(log.slice());
  event_log other;
  other.push_back(using_tokens("z", 10));
  BOOST_TEST(!count.fits(other.slice(), 1));
  BOOST_TEST(token_count().fits(other.slice(), 1));
}

BOOST_AUTO_TEST_CASE(counts_of_sessions_are_kept) {
  token_counts counts;
  BOOST_TEST(counts.find({"p", "u", "s"}).number == 0U);
  counts.keep({"p", "u", "s"}, {3, "c", 30});
  BOOST_TEST(counts.find({"p", "u", "s"}).tokens == 30U);
  BOOST_TEST(counts.find({"p", "u", "t"}).tokens == 0U);
  for (int number = 0; number < 10'000; ++number)
    counts.keep({"p", "u", std::to_string(number)}, {1, "a", 1});
  BOOST_TEST(counts.find({"p", "u", "9999"}).tokens == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
