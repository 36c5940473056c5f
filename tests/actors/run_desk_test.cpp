// The runs of a session: their order, and the history that is kept for them.

#include "troupe/actors/sessions/run_desk.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(runs_of_a_session)

namespace {

const error over(errc::cancelled, "over");

// The start of a run, without the invocation that hears of a refusal.
struct asked_run : start_run {
  explicit asked_run(caf::actor_id which,
                     history_extent extent = history_extent::none(),
                     int* count = nullptr)
    : refusals(count) {
    id = which;
    reads = extent;
  }

  void fail(const error&) override { ++*refusals; }

  int* refusals;
};

std::unique_ptr<start_run> asked(caf::actor_id which,
                                 history_extent extent = history_extent::none(),
                                 int* count = nullptr) {
  return std::make_unique<asked_run>(which, extent, count);
}

caf::actor_id take_next(run_desk& desk) {
  const auto next = desk.take_next();
  return next ? next->id : 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_interleaved_runs_start_beside_another) {
  run_desk desk;
  BOOST_TEST(desk.may_start(run_policy::queue));
  BOOST_TEST(desk.may_start(run_policy::reject));
  desk.start({.id = 1});
  BOOST_TEST(!desk.may_start(run_policy::queue));
  BOOST_TEST(!desk.may_start(run_policy::reject));
  BOOST_TEST(desk.may_start(run_policy::interleave));
}

BOOST_AUTO_TEST_CASE(an_active_run_starts_anew) {
  run_desk desk;
  desk.start({.id = 1, .first_read = 4, .message = 7});
  desk.start({.id = 1, .first_read = 9});
  BOOST_TEST(desk.active().size() == 1U);
  BOOST_TEST(desk.find(1)->first_read == 9U);
  BOOST_TEST(desk.find(1)->message == UINT64_MAX);
  BOOST_TEST(desk.end(1));
  BOOST_TEST(!desk.has_active());
}

BOOST_AUTO_TEST_CASE(runs_that_wait_start_in_order_when_no_other_is_active) {
  run_desk desk;
  desk.start({.id = 1});
  desk.start({.id = 2});
  desk.queue(asked(3));
  desk.queue(asked(4));
  BOOST_TEST(desk.end(1));
  BOOST_TEST(take_next(desk) == 0U);
  BOOST_TEST(desk.end(2));
  BOOST_TEST(take_next(desk) == 3U);
  BOOST_TEST(take_next(desk) == 4U);
  BOOST_TEST(desk.empty());
}

BOOST_AUTO_TEST_CASE(the_end_of_an_unknown_run_ends_none) {
  run_desk desk;
  desk.start({.id = 1});
  BOOST_TEST(!desk.end(2));
  BOOST_TEST(desk.has_active());
  BOOST_TEST((desk.find(2) == nullptr));
  BOOST_TEST((desk.find(1) != nullptr));
}

BOOST_AUTO_TEST_CASE(a_waiting_run_is_refused_alone) {
  run_desk desk;
  desk.start({.id = 1, .first_read = 11});
  int refused = 0;
  desk.queue(asked(2, history_extent::none(), &refused));
  desk.queue(asked(3, history_extent::all(), &refused));
  desk.queue(asked(4, history_extent::none(), &refused));
  BOOST_TEST(desk.oldest_read(10, {}) == 1U);
  desk.refuse(3, over);
  desk.refuse(7, over);
  BOOST_TEST(refused == 1);
  BOOST_TEST(desk.oldest_read(10, {}) > 1U); // Nothing is kept for it any more.
  desk.end(1);
  BOOST_TEST(take_next(desk) == 2U);
  BOOST_TEST(take_next(desk) == 4U);
}

BOOST_AUTO_TEST_CASE(the_oldest_event_that_any_run_reads_is_kept) {
  run_desk desk;
  BOOST_TEST(desk.oldest_read(10, {}) == UINT64_MAX);
  desk.start({.id = 1, .first_read = 8, .newest_max = 3});
  BOOST_TEST(desk.oldest_read(10, {}) == 8U);
  desk.queue(asked(2, history_extent::newest(5)));
  BOOST_TEST(desk.oldest_read(10, {}) == 6U); // Its message would be event 11.
  BOOST_TEST(desk.newest_max() == 5U);
  const auto waiting = desk.take_waiting();
  BOOST_TEST(desk.oldest_read(10, {}) == 8U);
  BOOST_TEST(desk.newest_max() == 3U);
}

BOOST_AUTO_TEST_CASE(a_run_reads_as_many_events_of_a_shorter_session) {
  run_desk desk;
  desk.start({.id = 1, .first_read = 8, .newest_max = 3});
  desk.reload(5, {});
  BOOST_TEST(desk.oldest_read(5, {}) == 3U); // The message is event 6 now.
  desk.reload(20, {});
  BOOST_TEST(desk.oldest_read(20, {}) == 3U);
}

BOOST_AUTO_TEST_CASE(views_are_numbered_in_order) {
  run_desk desk;
  auto first = desk.make_view({});
  const auto second = desk.make_view({});
  BOOST_TEST(first.number < second.number);
  BOOST_TEST((first.target == desk.view()));
}

BOOST_AUTO_TEST_SUITE_END()
