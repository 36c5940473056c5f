// The samples of docs/cookbook.md but those of a store, which
// own_store_test.cpp has, and those of Boost.Asio, which asio_test.cpp
// has.

#include "troupe/core/environment.hpp"
#include "troupe/runtime/session_writer.hpp"

#include "page_fixture.hpp"
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(cookbook_page)

using troupe::testing::code_of;

// -- beside threads ----

BOOST_FIXTURE_TEST_CASE(threads_share_one_runtime,
                        troupe::testing::page_fixture) {
  const auto agent = troupe::llm(
    {.name = "clerk", .model = troupe::testing::saying({{.text = "Done."}})});

  std::vector<std::jthread> workers;
  for (int number = 0; number < 4; ++number)
    workers.emplace_back([&runtime = runtime, agent, number] {
      const troupe::session_key own(
        "my_app", "ann", "job-" + std::to_string(number));
      runtime.sessions().get_or_create(own).value();
      runtime.run(agent, own, "Work!").wait().value(); // Blocks this thread.
      runtime.sessions().state(own).add("user:jobs", 1).value();
    });
  workers.clear(); // Joins.

  BOOST_TEST(sessions.user_state("my_app", "ann").value()["jobs"] == 4);
}

BOOST_FIXTURE_TEST_CASE(a_thread_goes_on_while_appends_are_under_way,
                        troupe::testing::page_fixture) {
  std::latch stored(100);
  std::atomic<int> failed = 0;
  auto writer = sessions.writer(key); // Stored in the order of the calls.
  for (int number = 0; number < 100; ++number)
    writer.append(troupe::event(troupe::text("line {}", number)))
      .then([&](const troupe::result<troupe::event_ptr>& answer) {
        if (!answer)
          ++failed; // All later lines of this writer are refused.
        stored.count_down();
      });
  stored.wait();

  BOOST_TEST(failed == 0);
  const auto events = sessions.get(key).value().events();
  BOOST_REQUIRE(events.size() == 100U);
  for (std::size_t index = 0; index < events.size(); ++index)
    BOOST_TEST(events[index]->text() == "line " + std::to_string(index));
}

BOOST_FIXTURE_TEST_CASE(another_thread_ends_a_run,
                        troupe::testing::page_fixture) {
  std::latch begun(1);
  const auto waiter = troupe::custom(
    "waiter",
    [&begun](troupe::invocation_context& context) -> troupe::agent_run {
      begun.count_down();
      co_await context.sleep(1h);
    });

  auto run = runtime.run(waiter, key, "Wait!");
  std::jthread watch([&run, &begun] {
    begun.wait();
    run.cancel(); // From any thread, but not from a signal handler.
  });
  const auto ended = run.wait().get();

  BOOST_TEST(code_of(ended) == "cancelled");
}

// -- in a test ----

troupe::agent make_greeter(const troupe::model_ptr& model) {
  return troupe::llm({.name = "greeter",
                      .model = model,
                      .instruction = "Greet {user:name?}",
                      .output_key = "greeting"});
}

BOOST_AUTO_TEST_CASE(the_greeter_keeps_its_greeting) {
  const auto model = std::make_shared<troupe::scripted_model>(
    troupe::script{{"greeter", {{.text = "${instruction}!"}}}});
  auto runtime
    = troupe::runtime::open(
        {.environment = std::make_shared<troupe::simulated_environment>(7)})
        .value();
  const auto key = runtime.sessions()
                     .create({"hotel", "ann", "s1"}, {{"user:name", "Ann"}})
                     .value()
                     .key();

  runtime.run(make_greeter(model), key, "Hello").wait().value();

  const auto session = runtime.sessions().get(key).value();
  BOOST_TEST(session.state().get("greeting") == "Greet Ann!");
  BOOST_TEST(session.events().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_failure_of_the_model_ends_the_run) {
  const auto model = std::make_shared<troupe::scripted_model>(
    troupe::script{{"greeter", {{.failure = "the model is not in"}}}});
  auto runtime = troupe::runtime::open().value();
  const auto key = runtime.sessions().create({"hotel", "ann"}).value().key();

  const auto ended
    = runtime.run(make_greeter(model), key, "Hello").wait().get();

  BOOST_TEST((ended.error().code() == troupe::errc::model_failed));
  BOOST_TEST(!runtime.sessions().get(key).value().state().contains("greeting"));
}

BOOST_AUTO_TEST_CASE(ids_and_times_come_from_a_seed) {
  const auto ids = [](std::uint64_t seed) {
    auto runtime = troupe::runtime::open(
                     {.environment
                      = std::make_shared<troupe::simulated_environment>(seed)})
                     .value();
    return runtime.sessions().create({"hotel", "ann"}).value().key().id;
  };
  BOOST_TEST(ids(7) == ids(7));
  BOOST_TEST(ids(7) != ids(8));
}

// -- in a service ----

struct reply {
  int status = 200;
  std::string text;
};

int status_of(troupe::errc code) {
  switch (code) {
  case troupe::errc::invalid_argument:
  case troupe::errc::too_large:
    return 400;
  case troupe::errc::not_found:
    return 404;
  case troupe::errc::conflict:
    return 409;
  case troupe::errc::busy: // Refused at once and without effect.
  case troupe::errc::cancelled:
    return 503; // The client may try again later.
  case troupe::errc::deadline_exceeded:
    return 504;
  default:
    return 500;
  }
}

// Answers one request; called on any thread of the server.
reply serve(troupe::runtime& runtime,
            const troupe::agent& agent,
            const troupe::session_key& key,
            const std::string& question) {
  reply made;
  try {
    runtime.sessions().get_or_create(key).value();
    // Runs of one session wait for each other; other sessions do not.
    for (const auto& said :
         runtime.run(agent, key, question, {.deadline = 60s}))
      if (troupe::is_final(*said))
        made.text = said->text();
  } catch (const troupe::error& failure) {
    made = {status_of(failure.code()), to_string(failure)};
  }
  return made;
}

troupe::result<troupe::runtime> open_service(const std::string& file) {
  return troupe::runtime::open(
    {.store = "sqlite:" + file,
     .on_warning
     = [](const std::string& warning) { std::clog << warning << '\n'; },
     .append_wait_max = 500ms, // Beyond it appends are `busy`.
     .runs_max = 1'000,
     .live_sessions_max = 50'000});
}

BOOST_AUTO_TEST_CASE(a_service_answers_and_shuts_down) {
  const troupe::testing::temporary_folder folder;
  auto runtime = open_service((folder.path() / "service.db").string()).value();
  const auto agent = make_greeter(troupe::testing::echo());
  const troupe::session_key key("hotel", "ann", "s1");

  BOOST_TEST(serve(runtime, agent, key, "Hello").text == "Greet ");
  BOOST_TEST(serve(runtime, agent, {"hotel", "", "s1"}, "Hello").status == 400);

  // After SIGTERM, when the server takes no more requests:
  const auto closed = runtime.shut_down(); // Cancels the runs that are left.
  if (!closed)
    std::clog << to_string(closed.error()) << '\n';

  BOOST_TEST(code_of(closed) == "ok");
  BOOST_TEST(serve(runtime, agent, key, "Hello").status == 503);
}

// -- a model of one's own ----

// The engine of a program, which answers on a thread of its own.
class engine {
public:
  using listener = std::function<void(std::string words, bool is_end)>;

  void ask(std::string prompt, listener told) {
    boost::asio::post(thread_, [prompt = std::move(prompt), told] {
      told("I have read ", false);
      told(std::to_string(prompt.size()) + " bytes.", true);
    });
  }

private:
  boost::asio::thread_pool thread_{1};
};

class engine_model final : public troupe::model {
public:
  // `asked` must outlive all calls.
  explicit engine_model(engine& asked) : engine_(&asked) {}

  std::string name() const override { return "engine"; }

  void generate(troupe::model_request request,
                troupe::model_reply reply) override {
    auto prompt = request.system_instruction;
    for (const auto& said : request.contents)
      prompt += '\n' + said->role + ": " + said->text();
    const auto whole = std::make_shared<std::string>();
    engine_->ask(std::move(prompt),
                 [whole, reply, stop = request.stop](const std::string& words,
                                                     bool is_end) {
                   // The run is over: no answer is needed.
                   if (stop.stop_requested())
                     return;
                   *whole += words;
                   troupe::model_response piece(troupe::text("{}", words));
                   piece.partial = true;
                   reply(piece);
                   if (is_end)
                     reply(troupe::model_response(troupe::text("{}", *whole)));
                 });
  }

private:
  engine* engine_;
};

BOOST_AUTO_TEST_CASE(an_engine_answers_in_pieces) {
  engine own;
  auto runtime = troupe::runtime::open().value();
  const auto key = runtime.sessions().create({"hotel", "ann"}).value().key();
  const troupe::testing::printed_text printed;

  const auto reader = troupe::llm({.name = "reader",
                                   .model = std::make_shared<engine_model>(own),
                                   .instruction = "Read."});
  for (const auto& said : runtime.run(reader, key, "Hello"))
    std::cout << (said->partial ? "... " : "all: ") << said->text() << '\n';

  BOOST_TEST(
    printed.text()
    == "... I have read \n... 68 bytes.\nall: I have read 68 bytes.\n");
  BOOST_TEST(runtime.sessions().get(key).value().events().back()->text()
             == "I have read 68 bytes.");
}

BOOST_AUTO_TEST_SUITE_END()
