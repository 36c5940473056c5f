// The samples of docs/cookbook.md about Boost.Asio.

#include "troupe/runtime/asio.hpp"

#include "page_fixture.hpp"
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <string>
#include <thread>

// g++ 12 takes the frame of an Asio coroutine, which Asio allocates and frees
// itself, for one that `new` has made.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

BOOST_AUTO_TEST_SUITE(asio_page)

boost::asio::awaitable<std::string> answer(troupe::runtime& runtime,
                                           troupe::agent agent,
                                           troupe::session_key key,
                                           std::string question) {
  auto session
    = co_await troupe::awaitable(runtime.sessions().get_or_create(key));
  session.value(); // Throws the error of a failure.
  auto run = runtime.run(agent, key, question);
  std::string said;
  while (true) {
    auto next = co_await troupe::awaitable(run.next());
    const auto event = next.value();
    if (event == nullptr)
      co_return said;
    if (troupe::is_final(*event))
      said = event->text();
  }
}

BOOST_AUTO_TEST_CASE(a_coroutine_of_asio_answers_a_question) {
  auto runtime = troupe::runtime::open().value();
  const auto agent
    = troupe::llm({.name = "clerk",
                   .model = troupe::testing::saying({{.text = "At nine."}})});
  const troupe::session_key key("shop", "ann", "s1");

  boost::asio::io_context context;
  auto said
    = boost::asio::co_spawn(context,
                            answer(runtime, agent, key, "When do you open?"),
                            boost::asio::use_future);
  context.run(); // Returns when the coroutine has ended.

  BOOST_TEST(said.get() == "At nine.");
}

BOOST_AUTO_TEST_CASE(other_forms_of_asio_take_answers_too) {
  auto runtime = troupe::runtime::open().value();
  boost::asio::io_context context;

  std::future<troupe::result<troupe::session>> made = troupe::async_answer(
    runtime.sessions().create({"shop", "ann", "s1"}), boost::asio::use_future);
  troupe::async_answer(
    runtime.sessions().list({"shop"}),
    boost::asio::bind_executor(
      context, [](const troupe::result<troupe::session_page>& page) {
        if (page) // On a thread of the context.
          std::cout << page->sessions.size() << " sessions\n";
      }));

  BOOST_TEST(made.get().value().key().id == "s1");
  const troupe::testing::printed_text printed;
  context.run();
  BOOST_TEST(printed.text().ends_with(" sessions\n"));
}

BOOST_AUTO_TEST_SUITE_END()
