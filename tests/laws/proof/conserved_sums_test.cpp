// Reads that add up, and reads that show half of a transfer.

#include "conserved_sums.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(conserved_sums)

BOOST_AUTO_TEST_CASE(whole_transfers_add_up) {
  const std::vector<transfer> moved{{"a", "user:a", 7, 1, 10, 20}};
  const auto verdict = check_sums(200,
                                  moved,
                                  {{{{"a", 100}, {"user:a", 100}}, 2, 1, 2},
                                   {{{"a", 93}, {"user:a", 107}}, 2, 15, 16}});
  BOOST_TEST(verdict.reads == 2U);
  BOOST_TEST(verdict.wrong == 0U);
  BOOST_TEST(verdict.finding == "");
}

BOOST_AUTO_TEST_CASE(half_of_a_transfer_is_found_and_named) {
  const std::vector<transfer> moved{{"a", "user:a", 7, 1, 10, 20},
                                    {"a", "user:a", 8, 1, 10, 20},
                                    {"a", "user:a", 7, 1, 30, 40}};
  const auto verdict = check_sums(200,
                                  moved,
                                  {{{{"a", 93}, {"user:a", 100}}, 2, 15, 16},
                                   {{{"a", 100}, {"user:a", 107}}, 3, 15, 16}});
  BOOST_TEST(verdict.wrong == 2U);
  BOOST_TEST(
    verdict.finding
    == "process 2 [15, 16] reads a=93 user:a=100: together 193, not "
       "200\n  possibly half of 7 from a to user:a by process 1 [10, 20]");
}

BOOST_AUTO_TEST_SUITE_END()
