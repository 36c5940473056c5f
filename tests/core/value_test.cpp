// An immutable JSON value: compared by content, shared by copies.

#include "troupe/core/value.hpp"

#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(values)

BOOST_AUTO_TEST_CASE(a_value_is_null_until_it_is_given_one) {
  BOOST_TEST(value().is_null());
  BOOST_TEST(value(nullptr).is_null());
  BOOST_TEST(!value(0).is_null());
  BOOST_TEST(!value(json::object()).is_null());
  BOOST_TEST(!value("").is_null());
}

BOOST_DATA_TEST_CASE(a_value_is_the_json_it_was_made_from,
                     data::xrange(30),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto made_from = random.data(4);
  const value one(made_from);
  const value other(made_from);
  const auto copy = one;
  BOOST_TEST(to_text(one.data()) == to_text(made_from));
  BOOST_TEST((one == other));
  BOOST_TEST((one == copy));
  BOOST_TEST((one != value(json::array({made_from}))));
}

BOOST_AUTO_TEST_CASE(copies_of_structured_values_share_the_data) {
  const value list(json::array({1, 2, 3}));
  const auto copy = list;
  BOOST_TEST(&copy.data() == &list.data());
}

BOOST_AUTO_TEST_CASE(copies_may_end_on_any_thread) {
  const value shared(json::array({"held", "by", "many"}));
  std::vector<std::thread> threads;
  for (int count = 0; count < 4; ++count)
    threads.emplace_back([shared] {
      for (int round = 0; round < 10'000; ++round) {
        const auto copy = shared;
        if (copy->size() != 3)
          std::terminate();
      }
    });
  for (auto& thread : threads)
    thread.join();
  BOOST_TEST(to_text(shared.data()) == R"(["held","by","many"])");
}

BOOST_AUTO_TEST_SUITE_END()
