// The search for event ids in the store: answers, and the filter of all ids.

#include "troupe/actors/sessions/id_search.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(searched_ids)

namespace {

event_ptr named(const std::string& id) {
  auto made = std::make_shared<event>();
  made->id = id;
  return made;
}

// An answer that covers the events up to `revision`.
std::unique_ptr<find_events> answer_of(const id_search& search,
                                       const std::string& id,
                                       event_ptr found,
                                       std::uint64_t revision) {
  auto answered = std::make_unique<find_events>();
  answered->load = search.loads();
  answered->revision = revision;
  answered->ids = {id};
  answered->events = std::vector{std::move(found)};
  return answered;
}

std::unique_ptr<find_events> filter_of(const id_search& search,
                                       const std::string& id) {
  auto answered = std::make_unique<find_events>();
  answered->load = search.loads();
  answered->filter = std::make_unique<id_filter>(1);
  answered->filter->add(id_hash(id));
  return answered;
}

// Sends queries until a filter is asked for. Returns their number.
int queries_before_filter(id_search& search) {
  int sent = 1;
  while (!search.count_query(0, {}))
    ++sent;
  return sent;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_is_found_until_it_no_longer_covers_the_events) {
  id_search search;
  auto answered = answer_of(search, "a", named("a"), 5);
  BOOST_TEST(search.take(*answered));
  search.expire("a", 5);
  BOOST_REQUIRE(search.find("a") != nullptr);
  BOOST_TEST((*search.find("a"))->id == "a");
  BOOST_TEST(search.find("b") == nullptr);
  search.expire("a", 6);
  BOOST_TEST(search.find("a") == nullptr);
}

BOOST_AUTO_TEST_CASE(an_id_without_event_is_an_answer) {
  id_search search;
  auto answered = answer_of(search, "a", nullptr, 5);
  BOOST_TEST(search.take(*answered));
  BOOST_REQUIRE(search.find("a") != nullptr);
  BOOST_TEST(*search.find("a") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_failed_query_answers_nothing) {
  id_search search;
  auto answered = answer_of(search, "a", named("a"), 5);
  answered->events = error(errc::store_failed, "disk is full");
  BOOST_TEST(!search.take(*answered));
  BOOST_TEST(search.find("a") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_filter_knows_the_ids_that_were_accepted_meanwhile) {
  id_search search;
  append under_way;
  under_way.event = named("b");
  while (!search.count_query(0, {&under_way})) {
  }
  search.note("c", 3);
  auto answered = filter_of(search, "a");
  search.take_filter(*answered, 3);
  search.note("d", 4);
  for (const auto* const id : {"a", "b", "c", "d"})
    BOOST_TEST(!search.excludes(id, 4), id);
  BOOST_TEST(search.excludes("e", 4));
  BOOST_TEST(!search.excludes("e", 5));
}

BOOST_AUTO_TEST_CASE(a_filter_of_an_earlier_load_is_dropped) {
  id_search search;
  queries_before_filter(search);
  auto answered = filter_of(search, "a");
  search.restart();
  search.take_filter(*answered, 3);
  BOOST_TEST(!search.excludes("e", 3));
}

BOOST_AUTO_TEST_CASE(a_second_filter_is_asked_for_after_as_many_queries) {
  id_search search;
  const auto sent = queries_before_filter(search);
  find_events failed;
  search.take_filter(failed, 0);
  BOOST_TEST(queries_before_filter(search) == sent);
}

BOOST_AUTO_TEST_CASE(a_load_drops_answers_and_filter) {
  id_search search;
  queries_before_filter(search);
  auto filter = filter_of(search, "a");
  search.take_filter(*filter, 3);
  auto answered = answer_of(search, "a", named("a"), 3);
  search.take(*answered);
  search.restart();
  BOOST_TEST(search.find("a") == nullptr);
  BOOST_TEST(!search.excludes("e", 3));
}

BOOST_AUTO_TEST_SUITE_END()
