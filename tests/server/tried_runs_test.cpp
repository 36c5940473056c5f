// Which open runs a server tries to recover at which look.

#include "troupe/server/recovery/tried_runs.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::serving;

BOOST_AUTO_TEST_SUITE(tried_run_lists)

namespace {

unfinished_run listed(const std::string& holder, bool is_free = true) {
  unfinished_run made;
  made.session = {"press", "ann", "s"};
  made.invocation_id = "run";
  made.agent = "root";
  made.holder = holder;
  made.is_free = is_free;
  return made;
}

result<void> failure(errc code) {
  return error(code, "told to fail");
}

// The number of looks until the run is tried; fails after 100.
std::size_t looks_until_try(tried_runs& on, const unfinished_run& left) {
  for (std::size_t count = 1; count <= 100; ++count)
    if (on.begin(left))
      return count;
  BOOST_FAIL("it is not tried any more");
  return 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_a_free_run_is_tried) {
  tried_runs on;
  BOOST_TEST(!on.begin(listed("one", false)));
  BOOST_TEST(on.begin(listed("one")));
}

BOOST_AUTO_TEST_CASE(a_run_is_tried_once_at_a_time) {
  tried_runs on;
  BOOST_TEST(on.begin(listed("one")));
  BOOST_TEST(!on.begin(listed("one")));
  // This process has it now.
  BOOST_TEST(!on.begin(listed("own", false)));
}

// Two seconds at first, a minute in the end.
BOOST_AUTO_TEST_CASE(waits_after_failures_of_the_store_grow) {
  tried_runs on;
  std::vector<std::size_t> waits;
  for (int count = 0; count < 8; ++count) {
    waits.push_back(looks_until_try(on, listed("one")));
    on.end("run", failure(errc::store_failed));
  }
  BOOST_TEST(waits == (std::vector<std::size_t>{1, 1, 2, 4, 8, 16, 30, 30}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_run_that_has_ended_well_is_forgotten) {
  tried_runs on;
  for (int count = 0; count < 3; ++count) {
    looks_until_try(on, listed("one"));
    on.end("run", failure(errc::store_failed));
  }
  looks_until_try(on, listed("one"));
  on.end("run", {});
  BOOST_TEST(on.begin(listed("one")));
}

// Its claim may have been stored. This process has left the run then.
BOOST_AUTO_TEST_CASE(a_run_that_was_left_here_waits_longer) {
  tried_runs on;
  BOOST_TEST(on.begin(listed("one")));
  on.end("run", failure(errc::store_failed));
  BOOST_TEST(on.begin(listed("own.1.left")));
  on.end("run", failure(errc::store_failed));
  BOOST_TEST(looks_until_try(on, listed("own.2.left")) == 2U);
}

// It is alive after all. When it is silent again, the run is tried at once.
BOOST_AUTO_TEST_CASE(a_run_whose_process_lives_waits_for_its_end) {
  tried_runs on;
  for (int count = 0; count < 3; ++count) {
    looks_until_try(on, listed("one"));
    on.end("run", failure(errc::busy));
  }
  for (int count = 0; count < 50; ++count)
    BOOST_TEST(!on.begin(listed("one", false)));
  BOOST_TEST(on.begin(listed("one")));
}

BOOST_AUTO_TEST_CASE(a_refused_run_is_tried_again_after_another_process) {
  tried_runs on;
  BOOST_TEST(on.begin(listed("one")));
  on.end("run", failure(errc::conflict));
  for (int count = 0; count < 50; ++count)
    BOOST_TEST(!on.begin(listed("one")));
  // This process, or another one with other agents, has refused it.
  auto refused = listed("refused");
  refused.was_refused = true;
  BOOST_TEST(!on.begin(refused));
  BOOST_TEST(on.begin(listed("two")));
}

BOOST_AUTO_TEST_CASE(a_refused_run_is_tried_again_after_its_process_lived) {
  tried_runs on;
  BOOST_TEST(on.begin(listed("one")));
  on.end("run", failure(errc::limit_exceeded));
  BOOST_TEST(!on.begin(listed("one", false)));
  BOOST_TEST(on.begin(listed("one")));
}

// Only those of the app that the list is of.
BOOST_AUTO_TEST_CASE(failed_runs_that_are_closed_are_forgotten) {
  tried_runs on;
  for (int count = 0; count < 3; ++count) {
    looks_until_try(on, listed("one"));
    on.end("run", failure(errc::store_failed));
  }
  on.forget_closed("other", {});
  on.forget_closed("press", {listed("one")});
  BOOST_TEST(!on.begin(listed("one")));
  on.forget_closed("press", {});
  BOOST_TEST(on.begin(listed("one")));
}

BOOST_AUTO_TEST_SUITE_END()
