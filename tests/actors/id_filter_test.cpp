// A filter forgets no id, and seldom takes a new id for a known one.

#include "troupe/actors/parts/id_filter.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>

using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(id_filters)

namespace {

// Returns different numbers of 31 bits, in no order.
std::uint32_t hash_of(std::uint32_t number) {
  return (number * 2'654'435'761U) & 0x7fff'ffffU;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_full_filter_knows_its_ids_and_few_others) {
  constexpr std::uint32_t first_ids = 100'000;
  id_filter filter(first_ids);
  std::uint32_t added = 0;
  while (!filter.is_full())
    filter.add(hash_of(added++));
  BOOST_TEST(added > first_ids + first_ids / 2);
  std::uint32_t forgotten = 0;
  for (std::uint32_t number = 0; number < added; ++number)
    forgotten += filter.may_have(hash_of(number)) ? 0 : 1;
  BOOST_TEST(forgotten == 0U);
  std::uint32_t taken = 0;
  for (std::uint32_t number = added; number < added + 100'000; ++number)
    taken += filter.may_have(hash_of(number)) ? 1 : 0;
  BOOST_TEST(taken < 3'000U);
}

BOOST_AUTO_TEST_CASE(it_takes_12_bits_for_each_id_that_it_begins_with) {
  BOOST_TEST(id_filter(1'000'000).bytes() * 8 < 12'100'000U);
}

BOOST_AUTO_TEST_CASE(an_empty_filter_knows_none) {
  id_filter filter(0);
  BOOST_TEST(!filter.may_have(7));
  filter.add(7);
  BOOST_TEST(filter.may_have(7));
}

BOOST_AUTO_TEST_SUITE_END()
