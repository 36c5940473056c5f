// Coroutines that await each other: values, failures, and chains of any length.

#include "troupe/contexts/task.hpp"

#include <boost/test/unit_test.hpp>

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using troupe::task;

// g++ resumes an awaiter by a tail call only with optimisation and without
// sanitizers. Otherwise each step of a chain needs stack.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)                    \
  && !defined(__SANITIZE_THREAD__)
constexpr int many = 100'000;
#else
constexpr int many = 1'000;
#endif

// Suspends until the test resumes it.
class gate {
public:
  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) { waiting_ = waiting; }

  void await_resume() const noexcept {}

  void open() { std::exchange(waiting_, nullptr).resume(); }

  bool is_waited_for() const { return waiting_ != nullptr; }

private:
  std::coroutine_handle<> waiting_;
};

// The end of a task that runs on its own.
struct ending {
  bool over = false;
  std::string failure;
};

void run(task<> work, ending& end) {
  troupe::start(std::move(work), [&end](std::exception_ptr failure) {
    end.over = true;
    try {
      if (failure)
        std::rethrow_exception(failure);
    } catch (const std::exception& thrown) {
      end.failure = thrown.what();
    }
  });
}

// Runs a task that needs no resumption by the test.
ending run(task<> work) {
  ending end;
  run(std::move(work), end);
  return end;
}

task<int> number(int made) {
  co_return made;
}

task<std::unique_ptr<std::string>> boxed(std::string words) {
  co_return std::make_unique<std::string>(std::move(words));
}

task<int> failing(std::string why) {
  throw std::runtime_error(why);
  co_return 0;
}

task<> failing_quietly() {
  throw std::runtime_error("quiet");
  co_return;
}

task<int> sum(int left, int right) {
  co_return co_await number(left) + co_await number(right);
}

task<> note(task<int> asked, int& seen) {
  seen = co_await asked;
}

task<> note_box(std::string& seen) {
  seen = *co_await boxed("owl");
}

task<> recover(std::string& seen) {
  try {
    co_await failing("lost");
  } catch (const std::runtime_error& failure) {
    seen = failure.what();
  }
  try {
    co_await failing_quietly();
  } catch (const std::runtime_error& failure) {
    seen += failure.what();
  }
  seen += std::to_string(co_await number(1));
}

task<> pass_on(int& steps) {
  ++steps;
  co_await failing("deep");
  ++steps;
}

task<> pass_on_twice(int& steps) {
  co_await pass_on(steps);
  ++steps;
}

task<> wait_at(gate& entrance, std::shared_ptr<int> held, int& steps) {
  ++steps;
  co_await entrance;
  ++steps;
  *held += 1;
}

task<> wait_below(gate& entrance, std::shared_ptr<int> held, int& steps) {
  co_await wait_at(entrance, std::move(held), steps);
  ++steps;
}

task<> add_many(int count, std::int64_t& total) {
  for (int next = 0; next < count; ++next)
    total += co_await number(next);
}

task<int> depth(int levels) {
  if (levels == 0)
    co_return 0;
  co_return 1 + co_await depth(levels - 1);
}

task<int> sink(int levels) {
  if (levels == 0)
    throw std::runtime_error("bottom");
  co_return co_await sink(levels - 1);
}

task<> await_sink(int levels) {
  co_await sink(levels);
}

} // namespace

BOOST_AUTO_TEST_SUITE(tasks)

BOOST_AUTO_TEST_CASE(awaiting_gives_what_was_returned) {
  int seen = 0;
  BOOST_TEST(run(note(sum(20, 22), seen)).over);
  BOOST_TEST(seen == 42);
  std::string words;
  BOOST_TEST(run(note_box(words)).over);
  BOOST_TEST(words == "owl");
}

BOOST_AUTO_TEST_CASE(awaiting_throws_what_was_thrown) {
  std::string seen;
  const auto end = run(recover(seen));
  BOOST_TEST(end.over);
  BOOST_TEST(end.failure.empty());
  BOOST_TEST(seen == "lostquiet1");
}

BOOST_AUTO_TEST_CASE(a_failure_ends_everything_above_it) {
  int steps = 0;
  const auto end = run(pass_on_twice(steps));
  BOOST_TEST(end.over);
  BOOST_TEST(end.failure == "deep");
  BOOST_TEST(steps == 1);
}

BOOST_AUTO_TEST_CASE(nothing_runs_before_it_is_awaited) {
  int steps = 0;
  gate entrance;
  const auto held = std::make_shared<int>(0);
  {
    const auto never = wait_at(entrance, held, steps);
    BOOST_TEST(held.use_count() == 2);
  }
  BOOST_TEST(steps == 0);
  BOOST_TEST(held.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_suspended_chain_goes_on_where_it_stopped) {
  int steps = 0;
  gate entrance;
  const auto held = std::make_shared<int>(0);
  ending end;
  run(wait_below(entrance, held, steps), end);
  BOOST_TEST(!end.over);
  BOOST_TEST(steps == 1);
  BOOST_REQUIRE(entrance.is_waited_for());
  entrance.open();
  BOOST_TEST(end.over);
  BOOST_TEST(steps == 3);
  BOOST_TEST(*held == 1);
  BOOST_TEST(held.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_dropped_task_takes_what_it_awaits_with_it) {
  int steps = 0;
  gate entrance;
  const auto held = std::make_shared<int>(0);
  {
    const auto dropped = wait_below(entrance, held, steps);
    dropped.await_suspend(std::noop_coroutine()).resume();
    BOOST_TEST(steps == 1);
    BOOST_TEST(held.use_count() == 2);
  }
  BOOST_TEST(held.use_count() == 1);
  BOOST_TEST(*held == 0);
}

BOOST_AUTO_TEST_CASE(a_task_can_be_moved_and_replaced) {
  int seen = 0;
  auto first = number(1);
  auto second = std::move(first);
  second = number(2);
  run(note(std::move(second), seen));
  BOOST_TEST(seen == 2);
}

BOOST_AUTO_TEST_CASE(a_loop_of_awaits_needs_no_stack) {
  std::int64_t total = 0;
  BOOST_TEST(run(add_many(many, total)).over);
  BOOST_TEST(total == std::int64_t{many} * (many - 1) / 2);
}

BOOST_AUTO_TEST_CASE(a_chain_of_awaits_needs_no_stack) {
  int seen = 0;
  BOOST_TEST(run(note(depth(many), seen)).over);
  BOOST_TEST(seen == many);
}

BOOST_AUTO_TEST_CASE(a_failure_climbs_a_long_chain) {
  BOOST_TEST(run(await_sink(1000)).failure == "bottom");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(executors)

BOOST_AUTO_TEST_CASE(the_current_one_is_that_of_the_innermost_block) {
  struct idle : troupe::executor {
    void post(std::coroutine_handle<>) override {}
  };

  idle outer;
  idle inner;
  BOOST_TEST(troupe::executor::current() == nullptr);
  {
    const troupe::executor::current_guard entered(&outer);
    BOOST_TEST(troupe::executor::current() == &outer);
    {
      const troupe::executor::current_guard deeper(&inner);
      BOOST_TEST(troupe::executor::current() == &inner);
    }
    BOOST_TEST(troupe::executor::current() == &outer);
  }
  BOOST_TEST(troupe::executor::current() == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
