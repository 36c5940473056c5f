// Appends under way, and the delivery of their results.

#include "troupe/cli/sessions/append_window.hpp"

#include "troupe/runtime/runtime.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(append_window)

namespace {

event said(const std::string& words) {
  event made;
  made.author = "user";
  made.content = {"user", {part(words)}};
  return made;
}

} // namespace

// The second event is stored while the first one is delivered.
BOOST_AUTO_TEST_CASE(nothing_is_passed_on_behind_a_failure_to_do_so) {
  auto owners = runtime::open({}).value();
  const session_key key{"press", "ann", "s1"};
  owners.sessions().create(key).value();
  std::promise<void> begun;
  std::promise<void> pushed;
  std::atomic<int> calls{0};
  cli::append_window window(
    owners.sessions().writer(key),
    "line",
    {.on_stored = [&](const std::vector<event_ptr>&) -> result<void> {
       if (++calls > 1)
         return {};
       begun.set_value();
       pushed.get_future().wait();
       return error(errc::store_failed, "the disk is full");
     },
     .on_failure = {}});
  window.push(said("one"), 1, 1).value();
  begun.get_future().wait();
  window.push(said("two"), 2, 1).value();
  pushed.set_value();
  BOOST_TEST(reason_of(window.drain()) == "the disk is full");
  BOOST_TEST(calls == 1);
  BOOST_TEST(owners.sessions().get(key).value().revision() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
