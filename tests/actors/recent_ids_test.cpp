// The ids that a session remembers, compared with a plain list.

#include "troupe/actors/parts/recent_ids.hpp"

#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe::actors;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(recently_seen_ids, *boost::unit_test::timeout(60))

namespace {

class memory {
public:
  explicit memory(std::size_t kept) : kept_(kept) {}

  void add(const std::string& id) {
    all_.push_back(id);
    ids_.add(id, all_.size(), kept_);
  }

  /// Adds an id of an event that is then refused.
  void add_and_forget(const std::string& id) {
    ids_.add(id, all_.size() + 1, kept_);
    ids_.forget(id, all_.size() + 1);
  }

  std::uint64_t find(const std::string& id) const {
    return ids_.find(id, all_.size(), kept_, [&](std::uint64_t number) {
      return number >= 1 && number <= all_.size() && all_[number - 1] == id;
    });
  }

  /// Returns the number of the event among the newest ones, found by a search.
  std::uint64_t expected(const std::string& id) const {
    for (auto number = all_.size(); number > 0 && number + kept_ > all_.size();
         --number)
      if (all_[number - 1] == id)
        return number;
    return 0;
  }

private:
  std::size_t kept_;
  std::vector<std::string> all_;
  recent_ids ids_;
};

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_known_at_first) {
  BOOST_TEST(memory(10).find("a") == 0U);
}

BOOST_AUTO_TEST_CASE(exactly_as_many_as_are_kept_are_found) {
  memory seen(4);
  for (int count = 1; count <= 100; ++count) {
    seen.add(std::to_string(count));
    for (int number = 1; number <= count; ++number)
      BOOST_TEST(
        seen.find(std::to_string(number))
        == (number > count - 4 ? static_cast<std::uint64_t>(number) : 0U));
  }
}

BOOST_DATA_TEST_CASE(a_model_agrees,
                     data::make({1U, 2U, 7U, 64U, 4'096U})
                       * data::xrange(1U, 4U),
                     kept,
                     seed) {
  random_source random(seed);
  memory seen(kept);
  for (int count = 0; count < 3'000; ++count) {
    const auto id = std::to_string(random.below(100'000));
    const auto found = seen.find(id);
    BOOST_REQUIRE(found == seen.expected(id));
    if (found == 0 && random.one_in(4))
      seen.add_and_forget(id);
    else if (found == 0)
      seen.add(id);
  }
}

BOOST_AUTO_TEST_CASE(what_was_refused_pushes_nothing_out) {
  for (int before = 4; before < 40; ++before) {
    memory seen(4);
    for (int number = 1; number <= before; ++number)
      seen.add(std::to_string(number));
    seen.add_and_forget("refused");
    for (int number = before - 3; number <= before; ++number)
      BOOST_TEST(seen.find(std::to_string(number))
                 == static_cast<std::uint64_t>(number));
  }
}

BOOST_AUTO_TEST_CASE(a_number_that_was_never_appended_is_not_found) {
  // A refused event under way: its number is given to the next event.
  recent_ids ids;
  ids.add("refused", 1, 10);
  ids.add("stored", 1, 10);
  const auto is_stored = [](std::uint64_t number) { return number == 1; };
  BOOST_TEST(ids.find("stored", 1, 10, is_stored) == 1U);
  BOOST_TEST(ids.find("refused", 1, 10, [](std::uint64_t) { return false; })
             == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
