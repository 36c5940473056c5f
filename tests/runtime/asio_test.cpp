// Calls of troupe inside of Boost.Asio.

#include "troupe/runtime/asio.hpp"

#include "agent_fixture.hpp"
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <string>
#include <thread>
#include <vector>

// g++ 12 takes the frame of an Asio coroutine, which Asio allocates and frees
// itself, for one that `new` has made.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(asio)

namespace {

namespace asio = boost::asio;

// Runs a coroutine to its end on one thread, and rethrows its exception.
void run_all(asio::io_context& context, asio::awaitable<void> body) {
  std::exception_ptr failure;
  asio::co_spawn(context, std::move(body), [&](std::exception_ptr thrown) {
    failure = std::move(thrown);
  });
  context.run();
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace

BOOST_AUTO_TEST_CASE(
  a_coroutine_of_asio_awaits_calls_and_continues_on_its_thread) {
  agent_fixture on;
  asio::io_context context;
  const auto here = std::this_thread::get_id();
  std::vector<std::string> codes;
  std::uint64_t revision = 0;
  const auto body = [&]() -> asio::awaitable<void> {
    // JSON in braces inside of a co_await expression does not compile.
    const auto said = change({{"k", 1}});
    const session_key absent("press", "ann", "none");
    auto stored = co_await awaitable(on.sessions().append_event(on.key, said));
    codes.push_back(code_of(stored));
    BOOST_TEST((std::this_thread::get_id() == here));
    auto held = co_await awaitable(on.sessions().get(on.key));
    codes.push_back(code_of(held));
    BOOST_TEST((std::this_thread::get_id() == here));
    revision = held.value().revision();
    const auto missing = co_await awaitable(on.sessions().get(absent));
    codes.push_back(code_of(missing));
    // Refused at once, on this thread.
    const auto refused = co_await awaitable(on.sessions().get(session_key()));
    codes.push_back(code_of(refused));
  };
  run_all(context, body());
  BOOST_TEST(codes
               == (std::vector<std::string>{
                 "ok", "ok", "not_found", "invalid_argument"}),
             boost::test_tools::per_element());
  BOOST_TEST(revision == 1U);
}

BOOST_AUTO_TEST_CASE(a_coroutine_of_asio_takes_the_events_of_a_run) {
  agent_fixture on;
  asio::io_context context;
  std::string line;
  const auto body = [&]() -> asio::awaitable<void> {
    auto running = on.runtime.run(says("writer", "owls"), on.key, "go");
    for (;;) {
      auto said = co_await awaitable(running.next());
      if (!said.value())
        break;
      line += said.value()->text() + ";";
    }
  };
  run_all(context, body());
  BOOST_TEST(line == "owls;");
}

BOOST_AUTO_TEST_CASE(many_coroutines_of_asio_share_one_counter) {
  agent_fixture on;
  asio::io_context context;
  int ended = 0;
  const auto body = [&]() -> asio::awaitable<void> {
    for (int count = 0; count < 10; ++count) {
      auto added = co_await awaitable(on.sessions().state(on.key).add("n", 1));
      added.value();
    }
    ++ended;
  };
  for (int count = 0; count < 20; ++count)
    asio::co_spawn(context, body(), asio::detached);
  context.run();
  BOOST_TEST(ended == 20);
  BOOST_TEST(on.state_now() == json({{"n", 200}}));
}

BOOST_AUTO_TEST_CASE(other_tokens_of_asio_get_the_answer_too) {
  agent_fixture on;
  asio::io_context context;
  auto later = async_answer(on.sessions().get(on.key), asio::use_future);
  BOOST_TEST(code_of(later.get()) == "ok");
  std::string code;
  async_answer(on.sessions().app_state("press"),
               asio::bind_executor(context, [&](result<json> answer) {
                 code = code_of(answer);
               }));
  context.run();
  BOOST_TEST(code == "ok");
}

BOOST_AUTO_TEST_SUITE_END()
