// Runs whose session is deleted by another process.

#include "agent_fixture.hpp"
#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(deleted_elsewhere, *boost::unit_test::timeout(120))

namespace {

// A run that waits for the test, and whose next event then waits in the store.
class waiting_run {
public:
  explicit waiting_run(std::function<task<>(invocation_context&)> go_on)
    : one_(place_.options()),
      other_(place_.beside()) {
    one_.open();
    auto waiting = custom(
      "waiting",
      [this, go_on = std::move(go_on)](invocation_context& ctx) -> agent_run {
        co_await ctx.emit(text("begun"));
        begun_.pass();
        co_await go_on(ctx);
      });
    run_ = one_.runtime.run(waiting, here, "Go!");
    begun_.await_arrival();
  }

  // Returns the end of the run when another process removes the session, before
  // the run's event is stored or before the run continues.
  std::string end_after(const std::function<void(session_service&)>& removal,
                        bool before_event) {
    if (before_event)
      removal(other_.sessions());
    const auto seen = place_.script->arrived.count();
    place_.script->hold();
    begun_.open();
    if (!before_event) {
      place_.script->arrived.await(seen + 1);
      removal(other_.sessions());
    }
    place_.script->release();
    return code_of(run_->wait().get());
  }

private:
  staged_place place_;
  gate begun_;
  runtime_fixture one_;
  runtime_fixture other_;
  std::optional<run> run_;
};

task<> go_on_by_event(invocation_context& ctx) {
  co_await ctx.emit(text("more"));
}

task<> go_on_by_wide_event(invocation_context& ctx) {
  ctx.state().set("user:seen", 1);
  ctx.state().set("app:seen", 1);
  co_await ctx.emit(text("more"));
}

constexpr task<> (*ways[])(invocation_context&)
  = {go_on_by_event, go_on_by_wide_event};

void remove_user(session_service& sessions) {
  BOOST_TEST(sessions.remove_user("press", "ann").value());
}

void remove_session(session_service& sessions) {
  BOOST_TEST(sessions.remove(here).value());
}

} // namespace

BOOST_DATA_TEST_CASE(a_run_whose_user_is_removed_elsewhere_is_cancelled,
                     data::xrange(std::size(ways)) * data::make({true, false}),
                     way,
                     before_event) {
  waiting_run run(ways[way]);
  BOOST_TEST(run.end_after(remove_user, before_event) == "cancelled");
}

BOOST_DATA_TEST_CASE(a_run_whose_session_is_deleted_elsewhere_is_cancelled,
                     data::xrange(std::size(ways)) * data::make({true, false}),
                     way,
                     before_event) {
  waiting_run run(ways[way]);
  BOOST_TEST(run.end_after(remove_session, before_event) == "cancelled");
}

BOOST_AUTO_TEST_SUITE_END()
