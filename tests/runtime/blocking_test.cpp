// Blocking calls: the blocked thread runs the activations of the owners that it
// wakes, and nothing else.

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/runtime/runtime.hpp"

#include "runtime_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(blocking, *boost::unit_test::timeout(120))

namespace {

runtime_options one_thread() {
  runtime_options options;
  options.threads = 1;
  return options;
}

event wide(int number) {
  return change({{"k", number}, {"user:k", number}, {"app:k", number}});
}

} // namespace

// Without a lent thread each of these calls would wait for ever.
BOOST_AUTO_TEST_CASE(calls_need_no_worker_in_memory) {
  runtime_fixture on(one_thread());
  const auto key = on.open();
  const standstill held(on, key);
  BOOST_TEST(on.append(key, wide(1)) == "ok");
  BOOST_TEST(on.append(key, {{"k", 2}}) == "ok");
  const auto other = on.open("other", {{"user:k", 3}}, "ben");
  BOOST_TEST(on.append(other, wide(4)) == "ok");
  BOOST_TEST(on.state(key) == json({{"k", 2}, {"user:k", 1}, {"app:k", 4}}));
  BOOST_TEST(on.rows().size() == 2U);
  BOOST_TEST(on.user_state("ben") == json({{"k", 4}}));
  BOOST_TEST(on.app_state() == json({{"k", 4}}));
  BOOST_TEST(code_of(on.sessions().state(key).set("k", 5).get()) == "ok");
  BOOST_TEST(on.sessions().remove(other).value());
  BOOST_TEST(on.sessions().remove_user("press", "ben").value());
  BOOST_TEST(code_of(on.sessions().get(other).get()) == "not_found");
}

BOOST_AUTO_TEST_CASE(completions_of_others_run_on_workers) {
  runtime_fixture on;
  const auto key = on.open();
  const auto& backend = *detail::backend_of(on.runtime);
  const auto session = backend.shared().directory->find(key);
  std::atomic<std::thread::id> completed_on{};
  tally completed;
  {
    actors::lent_thread lent(backend.shared());
    {
      // The session is asleep and stays so until both calls were made. This
      // thread then wakes it.
      const actors::inbox_actor::pause paused(*session);
      std::thread([&] {
        on.sessions()
          .append_event(key, wide(1))
          .then([&](const result<event_ptr>&) {
            completed_on = std::this_thread::get_id();
            completed.add();
          });
      }).join();
    }
    std::size_t activations = 0;
    while (lent.run_next())
      ++activations;
    BOOST_TEST(activations > 2U); // Session, user and app, and back.
  }
  completed.await(1);
  BOOST_TEST((completed_on.load() != std::this_thread::get_id()));
  BOOST_TEST(on.fetch(key).revision() == 1U);
}

BOOST_AUTO_TEST_CASE(activations_above_the_bound_go_to_the_workers) {
  runtime_fixture on;
  const auto key = on.open();
  const auto& backend = *detail::backend_of(on.runtime);
  const auto session = backend.shared().directory->find(key);
  constexpr int count = 3'000; // Many times the letters of a lent thread.
  answers<event_ptr> all;
  {
    actors::lent_thread lent(backend.shared());
    {
      const actors::inbox_actor::pause paused(*session);
      std::thread([&] {
        for (int number = 0; number < count; ++number)
          on.sessions().append_event(key, wide(number)).then(all.next());
      }).join();
    }
    BOOST_TEST(lent.run_next());
  }
  for (const auto& each : all.await())
    BOOST_TEST(code_of(each) == "ok");
  BOOST_TEST(on.fetch(key).revision() == std::uint64_t{count});
}

BOOST_AUTO_TEST_CASE(a_thread_is_lent_to_one_runtime) {
  runtime_fixture on;
  runtime_fixture other;
  const auto key = other.open();
  actors::lent_thread lent(detail::backend_of(on.runtime)->shared());
  answers<event_ptr> stored;
  other.sessions().append_event(key, wide(1)).then(stored.next());
  BOOST_TEST(!lent.run_next());
  BOOST_TEST(code_of(stored.await().front()) == "ok");
}

// The only worker is blocked, and the queue's writer was not woken.
BOOST_AUTO_TEST_CASE(a_blocked_caller_writes_its_append) {
  const staged_place place;
  auto options = place.options();
  options.threads = 1;
  runtime_fixture on(std::move(options));
  const auto key = on.open();
  BOOST_TEST(on.append(key, wide(0)) == "ok");
  std::atomic<int> commits = 0;
  std::atomic<int> own_commits = 0;
  place.script->each_commit(
    [&, caller = std::this_thread::get_id()]() -> store_script::step {
      ++commits;
      own_commits += std::this_thread::get_id() == caller ? 1 : 0;
      return store_script::step::work;
    });
  {
    const standstill held(on, key);
    for (int number = 1; number <= 20; ++number)
      BOOST_TEST(on.append(key, wide(number)) == "ok");
  }
  BOOST_TEST(commits == 20);
  // The writer may wake by itself and be faster.
  BOOST_TEST(own_commits > 10);
}

BOOST_AUTO_TEST_CASE(a_lent_thread_that_leaves_hands_its_writing_over) {
  const staged_place place;
  runtime_fixture on(place.options());
  const auto key = on.open();
  const auto& backend = *detail::backend_of(on.runtime);
  const auto session = backend.shared().directory->find(key);
  answers<event_ptr> stored;
  {
    actors::lent_thread lent(backend.shared());
    {
      const actors::inbox_actor::pause paused(*session);
      std::thread([&] {
        on.sessions()
          .append_event(key, {change({{"k", 1}})})
          .then(stored.next());
      }).join();
    }
    while (lent.run_next()) {
    }
  }
  BOOST_TEST(code_of(stored.await().front()) == "ok");
}

// A hook that runs inside an owner's activation must not block on the runtime,
// on whichever thread the activation runs.
BOOST_AUTO_TEST_CASE(a_blocking_call_in_a_lent_turn_is_refused) {
  std::string code;
  runtime_fixture* calls = nullptr;
  session_key key;
  auto options = one_thread();
  options.on_commit = [&](std::size_t) {
    if (calls != nullptr)
      code = code_of(calls->sessions().get(key).get());
  };
  runtime_fixture on(std::move(options));
  key = on.open();
  {
    const standstill held(on, key);
    calls = &on;
    BOOST_TEST(on.append(key, wide(1)) == "ok");
    calls = nullptr;
  }
  BOOST_TEST(code == "would_deadlock");
}

// A completion may take a lock that a blocked thread holds, because it never
// runs there. Two completions at a time wait for the lock here; the third
// worker runs the owners that its holder waits for.
BOOST_AUTO_TEST_CASE(a_caller_may_hold_a_lock_of_its_own) {
  runtime_options options;
  options.threads = 3;
  runtime_fixture on(std::move(options));
  const auto key = on.open();
  std::mutex mutex;
  std::atomic<int> completed = 0;
  std::atomic<int> refused = 0;
  constexpr int rounds = 300;
  on_threads(4, [&](std::size_t thread) {
    for (int round = 0; round < rounds; ++round) {
      if (thread % 2 == 0) {
        const std::lock_guard guard(mutex);
        if (on.append(key, wide(round)) != "ok")
          ++refused;
      } else {
        tally one;
        on.sessions()
          .append_event(key, wide(round))
          .then([&](const result<event_ptr>&) {
            const std::lock_guard guard(mutex);
            ++completed;
            one.add();
          });
        one.await(1);
      }
    }
  });
  BOOST_TEST(refused == 0);
  BOOST_TEST(completed == 2 * rounds);
  BOOST_TEST(on.fetch(key).revision() == std::uint64_t{4 * rounds});
}

BOOST_DATA_TEST_CASE(a_caller_keeps_its_order,
                     data::make({1U, 8U, 40U}),
                     callers) {
  runtime_fixture on;
  const auto keys = on.open_many({3, 2, {{"app:n", 0}}});
  std::atomic<std::size_t> disordered = 0;
  constexpr std::uint64_t rounds = 120;
  on_threads(callers, [&](std::size_t caller) {
    const auto& key = keys[caller % keys.size()];
    std::uint64_t last = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      auto said = wide(static_cast<int>(round));
      said.author = "caller";
      const auto stored
        = on.sessions().append_event(key, std::move(said)).value();
      const auto now = on.fetch(key).revision();
      disordered += now <= last;
      last = now;
    }
  });
  BOOST_TEST(disordered == 0U);
  std::uint64_t events = 0;
  for (const auto& key : keys)
    events += on.fetch(key).revision();
  BOOST_TEST(events == callers * rounds);
}

BOOST_AUTO_TEST_CASE(a_runtime_ends_while_threads_are_lent) {
  for (int round = 0; round < 30; ++round) {
    runtime_fixture on;
    const auto keys = on.open_many({4, 2});
    std::atomic<std::uint64_t> stored = 0;
    std::atomic<int> wrong = 0;
    tally begun;
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < 6; ++caller)
      callers.emplace_back([&, caller] {
        for (int number = 0;; ++number) {
          const auto code = on.append(keys[caller % keys.size()], wide(number));
          if (number == 20)
            begun.add();
          if (code != "ok") {
            wrong += code != "cancelled";
            return;
          }
          ++stored;
        }
      });
    begun.await(3);
    on.runtime.shut_down().value();
    for (auto& each : callers)
      each.join();
    BOOST_TEST(wrong == 0);
    BOOST_TEST(stored >= 60U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
