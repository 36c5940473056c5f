// The one form of every call: its start, its single answer, and the requests
// that may be written inside a co_await expression.

#include "troupe/agents/agent.hpp"
#include "troupe/contexts/tool_call.hpp"
#include "troupe/runtime/session_writer.hpp"

#include "runtime_fixture.hpp"

#include <array>
#include <exception>
#include <thread>
#include <type_traits>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(one_form_per_call, *boost::unit_test::timeout(100))

namespace {

// Runs a coroutine outside of any agent, and waits for its end.
void run_to_end(task<> work) {
  std::promise<std::exception_ptr> ended;
  start(std::move(work), [&ended](const std::exception_ptr& failure) {
    ended.set_value(failure);
  });
  if (const auto failure = ended.get_future().get())
    std::rethrow_exception(failure);
}

// g++ 12 copies the bytes of an aggregate that is made inside a co_await
// expression, and destroys both. Types with a constructor, and types whose
// bytes may be copied, are safe.
template <class... Types>
constexpr bool may_be_made_in_an_await
  = ((!std::is_aggregate_v<Types> || std::is_trivially_copyable_v<Types>)&&...);

static_assert(may_be_made_in_an_await<session_key,
                                      create_request,
                                      list_request,
                                      app_list_request,
                                      user_list_request,
                                      expiry_request,
                                      get_options,
                                      append_options,
                                      remove_options,
                                      fork_options,
                                      rewind_options,
                                      run_options,
                                      user_message,
                                      event,
                                      event_actions,
                                      content,
                                      part,
                                      function_call,
                                      function_response,
                                      model_request,
                                      model_response,
                                      tool_confirmation>);

// Too long for the inner buffer of a string, which would hide a wrong copy.
const std::string long_id = "an-id-that-is-too-long-for-the-buffer-of-a-string";

} // namespace

BOOST_AUTO_TEST_CASE(a_call_that_nobody_asks_is_never_made) {
  runtime_fixture on;
  const auto key = on.open();
  { const auto dropped = on.sessions().append_event(key, change({{"k", 1}})); }
  { const auto dropped = on.sessions().remove(key); }
  BOOST_TEST(on.fetch(key).revision() == 0U);
}

BOOST_AUTO_TEST_CASE(calls_take_effect_in_the_order_in_which_they_start) {
  runtime_fixture on;
  const auto key = on.open();
  auto first = on.sessions().append_event(key, change({{"k", "first"}}));
  auto second = on.sessions().append_event(key, change({{"k", "second"}}));
  answers<event_ptr> answered;
  second.then(answered.next());
  first.then(answered.next());
  const auto stored = answered.await();
  BOOST_TEST(on.state(key)["k"] == "first");
  BOOST_TEST(stored[0].value()->timestamp.time_since_epoch().count()
             <= stored[1].value()->timestamp.time_since_epoch().count());
}

BOOST_AUTO_TEST_CASE(a_call_sees_the_world_at_its_start) {
  runtime_fixture on;
  const session_key key("press", "ann", "s");
  auto appended = on.sessions().append_event(key, change({{"k", 1}}));
  on.open();
  BOOST_TEST(code_of(appended.get()) == "ok");
}

BOOST_AUTO_TEST_CASE(an_answer_is_given_once) {
  runtime_fixture on;
  const auto key = on.open();
  auto asked = on.sessions().append_event(key, change({{"k", 1}}));
  BOOST_TEST(code_of(asked.get()) == "ok");
  BOOST_TEST(code_of(asked.get()) == "invalid_argument");
  BOOST_CHECK_THROW(asked.value(), error);
  answers<event_ptr> answered;
  asked.then(answered.next());
  BOOST_TEST(code_of(answered.taken().at(0)) == "invalid_argument");
  std::string awaited;
  run_to_end([](pending<event_ptr>& again, std::string& code) -> task<> {
    code = code_of(co_await again);
  }(asked, awaited));
  BOOST_TEST(awaited == "invalid_argument");
  BOOST_TEST(on.fetch(key).revision() == 1U);
}

BOOST_AUTO_TEST_CASE(value_throws_the_error_of_the_call) {
  runtime_fixture on;
  const auto is_not_found
    = [](const error& thrown) { return thrown.code() == errc::not_found; };
  BOOST_CHECK_EXCEPTION(
    on.sessions().get({"press", "ann", "none"}).value(), error, is_not_found);
  BOOST_TEST(on.sessions().create({"press", "ann"}).value().revision() == 0U);
}

BOOST_AUTO_TEST_CASE(a_refused_blocking_call_is_not_made) {
  runtime_fixture on;
  const auto key = on.open();
  std::string code;
  tally ended;
  on.sessions().get(key).then([&](const result<session>&) {
    code = code_of(on.sessions().append_event(key, change({{"k", 1}})).get());
    ended.add();
  });
  ended.await(1);
  BOOST_TEST(code == "would_deadlock");
  BOOST_TEST(on.fetch(key).revision() == 0U);
}

BOOST_AUTO_TEST_CASE(
  a_call_may_start_on_another_thread_and_outlive_its_service) {
  runtime_fixture on;
  const auto key = on.open();
  auto moved = [&] {
    auto service = on.sessions();
    return service.append_event(key, change({{"k", 1}}));
  }();
  std::string code;
  std::thread([&, asked = std::move(moved)]() mutable {
    code = code_of(asked.get());
  }).join();
  BOOST_TEST(code == "ok");
}

BOOST_AUTO_TEST_CASE(a_call_that_starts_after_the_end_is_refused) {
  auto on = std::make_unique<runtime_fixture>();
  const auto key = on->open();
  auto late = on->sessions().append_event(key, change({{"k", 1}}));
  auto next = on->sessions().list({"press"});
  on.reset();
  BOOST_TEST(code_of(late.get()) == "cancelled");
  BOOST_TEST(code_of(next.get()) == "cancelled");
}

// With aggregates this ended the program: their strings were freed twice.
BOOST_AUTO_TEST_CASE(requests_may_be_written_inside_an_await) {
  runtime_fixture on;
  std::array<std::string, 6> codes;
  run_to_end([](session_service sessions, auto& told) -> task<> {
    told[0] = code_of(co_await sessions.create({long_id, "ann", long_id}));
    told[1] = code_of(co_await sessions.append_event(
      {long_id, "ann", long_id}, user_text(long_id), {.expected_revision = 0}));
    told[2] = code_of(co_await sessions.append_event(
      {long_id, "ann", long_id},
      content("user", std::vector<part>(1, long_id))));
    told[3] = code_of(co_await sessions.get({long_id, "ann", long_id},
                                            {.num_recent_events = 1}));
    told[4] = code_of(co_await sessions.list({long_id, "ann", 3}));
    told[5] = code_of(co_await sessions.writer({long_id, "ann", long_id})
                        .append(user_text(long_id)));
  }(on.sessions(), codes));
  BOOST_TEST(
    codes == (std::array<std::string, 6>{"ok", "ok", "ok", "ok", "ok", "ok"}),
    boost::test_tools::per_element());
  BOOST_TEST(on.texts({long_id, "ann", long_id})
               == std::vector<std::string>(3, long_id),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_run_may_be_written_inside_an_await) {
  runtime_fixture on;
  const auto key = on.open();
  const auto says
    = custom("says", [](invocation_context& context) -> agent_run {
        co_await context.emit(
          text("{}", context.state().get<std::string>("topic")));
      });
  std::string code;
  run_to_end([](runtime& owners,
                const agent& root,
                const session_key& where,
                std::string& told) -> task<> {
    const json delta = {{"topic", long_id}};
    told = code_of(
      co_await owners.run(root, where, {long_id, delta}, {.model_calls_max = 3})
        .wait());
  }(on.runtime, says, key, code));
  BOOST_TEST(code == "ok");
  BOOST_TEST(on.texts(key) == (std::vector<std::string>{long_id, long_id}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
