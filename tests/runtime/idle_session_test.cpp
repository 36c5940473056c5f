// Sessions without a store: those in use have an actor. An idle one is a record
// that its user keeps, and nothing of it is lost.

#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/runtime/actors.hpp"

#include "../random.hpp"
#include "agent_fixture.hpp"
#include "counting.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(idle_session, *boost::unit_test::timeout(200))

namespace {

runtime_options at_most(std::size_t live_sessions) {
  runtime_options options;
  options.live_sessions_max = live_sessions;
  return options;
}

std::size_t actors_of(runtime& on) {
  return detail::backend_of(on)->shared().directory->size();
}

// Waits until no more sessions than allowed have an actor.
void await_idle(runtime& on, std::size_t most) {
  const auto begin = std::chrono::steady_clock::now();
  while (actors_of(on) > most) {
    if (std::chrono::steady_clock::now() - begin > patience)
      throw std::runtime_error(std::to_string(actors_of(on))
                               + " sessions have an actor");
    std::this_thread::yield();
  }
}

session_key key_of(std::size_t number) {
  return {"press", "u" + std::to_string(number % 3), std::to_string(number)};
}

// Makes sessions with a state of their own, and one event each.
void make_sessions(runtime_fixture& on, std::size_t count) {
  for (std::size_t number = 0; number < count; ++number) {
    on.sessions().create(key_of(number), {{"number", number}}).value();
    BOOST_TEST_REQUIRE(
      on.append(key_of(number),
                change({{"said", number}}, "first " + std::to_string(number)))
      == "ok");
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(a_session_keeps_all_that_it_has) {
  runtime_fixture on(at_most(8));
  make_sessions(on, 100);
  await_idle(on.runtime, 9);
  for (std::size_t number = 0; number < 100; ++number) {
    const auto key = key_of(number);
    const auto id = "first " + std::to_string(number);
    // The event is known by its id.
    BOOST_TEST(on.append(key, change({{"said", number}}, id)) == "ok");
    BOOST_TEST(on.append(key, change({{"said", -1}}, id)) == "conflict");
    const auto found = on.fetch(key);
    BOOST_TEST(found.revision() == 1U);
    BOOST_TEST(ids_of(found.events()) == std::vector<std::string>({id}));
    const auto state = found.state().all();
    BOOST_TEST(state["number"] == number);
    BOOST_TEST(state["said"] == number);
    BOOST_TEST(on.append(key, counting()) == "ok");
  }
  BOOST_TEST(on.app_state() == json({{"n", 100}}));
}

BOOST_AUTO_TEST_CASE(idle_sessions_are_listed) {
  runtime_fixture on(at_most(2));
  make_sessions(on, 40);
  await_idle(on.runtime, 2);
  const auto rows = on.rows();
  BOOST_TEST(rows.size() == 40U);
  for (const auto& row : rows) {
    const auto number = std::stoi(row.key().id);
    BOOST_TEST(row.state().all()
               == json({{"number", number}, {"said", number}}));
    BOOST_TEST(row.revision() == 1U);
  }
  // Listing needs no actors.
  BOOST_TEST(actors_of(on.runtime) <= 2U);
  // A session that is used again moves to the front.
  BOOST_TEST(on.append(key_of(7), counting()) == "ok");
  BOOST_TEST(to_string(on.rows().front().key()) == to_string(key_of(7)));
}

BOOST_AUTO_TEST_CASE(idle_sessions_are_removed) {
  runtime_fixture on(at_most(2));
  make_sessions(on, 40);
  await_idle(on.runtime, 2);
  BOOST_TEST(on.sessions().remove(key_of(1)).value());
  BOOST_TEST(!on.sessions().remove(key_of(1)).value());
  BOOST_TEST(code_of(on.sessions().get(key_of(1)).get()) == "not_found");
  BOOST_TEST(on.append(key_of(1), counting()) == "not_found");
  BOOST_TEST(on.rows().size() == 39U);
  BOOST_TEST(on.sessions().remove_user("press", "u0").value());
  for (const auto& row : on.rows())
    BOOST_TEST(row.key().user != "u0");
  BOOST_TEST(code_of(on.sessions().get(key_of(3)).get()) == "not_found");
  BOOST_TEST(on.sessions().create(key_of(3)).value().revision() == 0U);
}

BOOST_AUTO_TEST_CASE(an_idle_session_takes_runs) {
  runtime_fixture on(at_most(1));
  make_sessions(on, 20);
  await_idle(on.runtime, 1);
  const auto said = custom("say", [](invocation_context& ctx) -> agent_run {
    co_await ctx.emit(text("{}", ctx.events().size()));
  });
  for (std::size_t number = 0; number < 20; ++number)
    BOOST_TEST(code_of(on.runtime.run(said, key_of(number), "Go!").wait().get())
               == "ok");
  BOOST_TEST(on.texts(key_of(3)).back() == "2");
  BOOST_TEST(
    code_of(on.runtime.run(said, {"press", "u0", "none"}, "Go!").wait().get())
    == "not_found");
}

BOOST_AUTO_TEST_CASE(a_session_whose_handle_is_held_keeps_its_actor) {
  runtime_fixture on(at_most(1));
  on.open();
  const auto handle
    = session_actor_of(on.runtime, {"press", "ann", "s"}).value();
  make_sessions(on, 20);
  await_idle(on.runtime, 2);
  auto said = std::make_shared<event>(change({{"a", 1}}));
  caf::scoped_actor self(detail::backend_of(on.runtime)->shared().system);
  std::string code = "nothing";
  self
    ->request(
      handle, caf::infinite, actors::append_atom::value, event_ptr(said))
    .receive(
      [&](const event_ptr&) { code = "ok"; },
      [&](const caf::error& failure) { code = to_error(failure).message(); });
  BOOST_TEST(code == "ok");
}

// The end of the runtime meets sessions on their way to become idle.
BOOST_AUTO_TEST_CASE(a_runtime_may_end_while_sessions_become_idle) {
  for (int round = 0; round < 300; ++round) {
    runtime_fixture on(at_most(1));
    for (int number = 0; number < 4; ++number)
      on.open("s" + std::to_string(number));
    BOOST_TEST_REQUIRE(on.runtime.shut_down().has_value());
  }
}

BOOST_DATA_TEST_CASE(calls_keep_their_order_while_sessions_become_idle,
                     data::xrange(10),
                     seed) {
  constexpr std::size_t sessions = 6;
  runtime_fixture on(at_most(1));
  for (std::size_t index = 0; index < sessions; ++index)
    on.open("s" + std::to_string(index));
  // The sources print their seeds to the test's log, which is not thread-safe.
  std::vector<random_source> randoms;
  for (std::uint64_t thread = 0; thread < 3; ++thread)
    randoms.emplace_back(static_cast<std::uint64_t>(seed) * 3 + thread);
  std::atomic<std::size_t> short_lists = 0;
  on_threads(3, [&](std::size_t thread) {
    auto& random = randoms[thread];
    answers<event_ptr> appended;
    for (int number = 0; number < 300; ++number) {
      const session_key key{
        "press", "ann", "s" + std::to_string(random.below(sessions))};
      auto said = random.one_in(2) ? counting() : change({{"last", number}});
      said.id = std::to_string(thread) + "-" + std::to_string(number);
      on.sessions().append_event(key, std::move(said)).then(appended.next());
      if (random.one_in(20))
        appended.await();
      if (random.one_in(10) && on.rows().size() != sessions)
        ++short_lists;
    }
    for (const auto& each : appended.await())
      each.value();
  });
  BOOST_TEST(short_lists == 0U);
  std::size_t events = 0;
  for (std::size_t index = 0; index < sessions; ++index) {
    const auto stored
      = on.events({"press", "ann", "s" + std::to_string(index)});
    check_source_order(stored);
    events += stored.size();
  }
  BOOST_TEST(events == 900U);
}

BOOST_AUTO_TEST_SUITE_END()
