// Reads of state in memory that need no other thread: they show the same as the
// answer to a letter.

#include "troupe/actors/owners/direct_read.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/runtime/runtime.hpp"

#include "runtime_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(direct_reads, *boost::unit_test::timeout(120))

namespace {

// A coroutine that reads without a pause until it is stopped.
class reader {
public:
  reader(runtime_fixture& on, const session_key& key) {
    start(read_on(on, key, stop_),
          [this](const std::exception_ptr&) { ended_.set_value(); });
  }

  void stop() {
    stop_ = true;
    ended_.get_future().wait();
  }

private:
  static task<> read_on(runtime_fixture& on,
                        session_key key,
                        const std::atomic<bool>& until) {
    while (!until)
      (void)co_await on.sessions().get(key);
  }

  std::atomic<bool> stop_ = false;
  std::promise<void> ended_;
};

std::optional<session> read(const runtime_fixture& on,
                            const session_key& key,
                            const get_options& options = {}) {
  return actors::read_directly(
    detail::backend_of(on.runtime)->shared(), key, options);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_read_shows_state_and_events) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 0}, {"user:k", 1}, {"app:k", 2}});
  for (int number = 1; number <= 5; ++number)
    on.append(key, {{"k", number}});
  const auto found = read(on, key, {.num_recent_events = 2});
  BOOST_REQUIRE(found.has_value());
  BOOST_TEST((found->key() == key));
  BOOST_TEST(found->revision() == 5U);
  BOOST_TEST(found->events().size() == 2U);
  BOOST_TEST(found->state().all()
             == json({{"k", 5}, {"user:k", 1}, {"app:k", 2}}));
  BOOST_TEST((found->last_update_time() == on.fetch(key).last_update_time()));
}

BOOST_AUTO_TEST_CASE(a_letter_on_its_way_comes_first) {
  runtime_fixture on;
  const auto key = on.open();
  const auto& shared = detail::backend_of(on.runtime)->shared();
  const auto owner = shared.directory->find(key);
  answers<event_ptr> stored;
  {
    const actors::inbox_actor::pause paused(*owner);
    BOOST_TEST(paused.holds());
    // Another reader finds the session busy.
    BOOST_TEST(!read(on, key).has_value());
    on.sessions().append_event(key, change({{"k", 1}})).then(stored.next());
    BOOST_TEST(!paused.holds());
  }
  BOOST_TEST(code_of(stored.await().front()) == "ok");
  BOOST_TEST(on.fetch(key).revision() == 1U);
}

BOOST_AUTO_TEST_CASE(sessions_that_are_not_there_are_asked_for) {
  runtime_fixture on;
  const auto key = on.open();
  on.sessions().remove(key).value();
  BOOST_TEST(!read(on, key).has_value());
  BOOST_TEST(!read(on, {"none", "ann", "s"}).has_value());
  BOOST_TEST(code_of(on.sessions().get(key).get()) == "not_found");
  BOOST_TEST(code_of(on.sessions().get({" press ", "ann", "s"}).get())
             == "not_found");
}

BOOST_AUTO_TEST_CASE(coroutines_read_directly_too) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}});
  std::thread::id before;
  std::thread::id behind;
  start(
    [](runtime_fixture& in,
       session_key wanted,
       std::thread::id& from,
       std::thread::id& to) -> task<> {
      from = std::this_thread::get_id();
      const auto found = co_await in.sessions().get(wanted);
      to = std::this_thread::get_id();
      BOOST_TEST(found.value().state().get<int>("k") == 1);
    }(on, key, before, behind),
    [](const std::exception_ptr&) {});
  BOOST_TEST((before == behind));
}

// A coroutine that is always answered at once would never return to the code
// that starts it.
BOOST_AUTO_TEST_CASE(
  a_coroutine_that_only_reads_leaves_the_thread_that_starts_it) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}});
  reader(on, key).stop();
}

// One worker serves others while a coroutine reads without a pause.
BOOST_AUTO_TEST_CASE(a_coroutine_that_only_reads_does_not_keep_a_worker) {
  runtime_fixture on({.threads = 1});
  const auto key = on.open("s", {{"k", 1}});
  reader reading(on, key);
  for (int number = 0; number < 10; ++number) {
    answers<event_ptr> stored;
    on.sessions()
      .append_event(key, change({{"k", number}}))
      .then(stored.next());
    BOOST_TEST(code_of(stored.await().front()) == "ok");
  }
  reading.stop();
}

// One writer sets the same number in all three scopes, of its session and of
// another one of the same user. A torn read would show two numbers.
BOOST_AUTO_TEST_CASE(a_read_shows_each_event_completely_or_not_at_all) {
  runtime_fixture on;
  const json begin{{"k", 0}, {"user:k", 0}, {"app:k", 0}};
  const auto key = on.open("s", begin);
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> direct = 0;
  std::atomic<std::size_t> torn = 0;
  std::atomic<std::size_t> backwards = 0;
  on_threads(3, [&](std::size_t thread) {
    if (thread == 0) {
      for (int number = 1; number <= 20'000; ++number)
        on.append(key, {{"k", number}, {"user:k", number}, {"app:k", number}});
      stop = true;
      return;
    }
    int last = 0;
    while (!stop) {
      auto found = read(on, key, {.num_recent_events = 0});
      direct += found.has_value();
      if (!found)
        found = on.sessions().get(key, {.num_recent_events = 0}).value();
      const auto& state = found->state();
      const auto now = state.get<int>("k");
      torn += now != state.get<int>("user:k") || now != state.get<int>("app:k")
              || static_cast<std::uint64_t>(now) != found->revision();
      backwards += now < last;
      last = now;
    }
  });
  BOOST_TEST(torn == 0U);
  BOOST_TEST(backwards == 0U);
  BOOST_TEST(direct > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
