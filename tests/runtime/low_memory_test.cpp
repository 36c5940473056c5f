// Events are appended and agents run while allocations fail; each test run lets
// others fail. The call throws, or the program ends with a message;
// acknowledged events are stored. This program is separate because it replaces
// the allocation of its process.

#include "troupe/runtime/runtime.hpp"

#include "../replaced_allocation.hpp"
#include "../stores/child_process.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max() / 2;

std::atomic<std::size_t> made{0};
// Number of the first allocation that fails, and the count of failures.
std::atomic<std::size_t> first_failure{never};
std::atomic<std::size_t> failures{1};

// True if this thread has allocated before the faults begin. Allocations of
// other threads never fail: CAF starts threads of its own late, and an
// exception at their start ends the program.
thread_local bool is_known = false;

} // namespace

bool troupe::testing::on_allocation(std::size_t) noexcept {
  const auto first = first_failure.load(std::memory_order_relaxed);
  is_known |= first == never;
  if (!is_known)
    return true;
  const auto number = made.fetch_add(1, std::memory_order_relaxed);
  return number < first || number >= first + failures.load();
}

namespace {

using namespace troupe;
using namespace troupe::testing;

constexpr int events = 4;
constexpr unsigned seconds_max = 20; // A child that hangs is ended by SIGALRM.
const session_key key{"an_app", "a_user", "a_session"};

event said(int number) {
  event next;
  next.id = fmt::format("an_event_with_a_long_id_{}", number);
  next.author = "somebody";
  next.actions.state_delta = delta::from_json({{"a_key_of_the_session", number},
                                               {"user:a_key_of_it", number},
                                               {"app:a_key_of_it", number}})
                               .value();
  return next;
}

// Makes `count` allocations fail, after `skipped` others.
struct fault {
  std::size_t skipped = 0;
  std::size_t count = 1;

  void begin() const {
    failures = count;
    first_failure = made.load() + skipped;
  }

  // Returns true if an allocation has failed.
  bool end() const {
    const bool has_failed = made.load() > first_failure.load();
    first_failure = never;
    return has_failed;
  }
};

// Opens a runtime with a session. Runs an agent first, so that the threads have
// allocated.
runtime open_at(const std::string& store) {
  runtime_options options;
  options.store = store;
  options.threads = 1;
  auto on = runtime::open(std::move(options)).value();
  const auto other = on.sessions().create({key.app, key.user}).value().key();
  const auto speaker
    = custom("speaker", [](invocation_context& context) -> agent_run {
        co_await context.emit(text("Here."));
      });
  on.run(speaker, other, "Are you there?").wait().value();
  on.sessions().create({key.app, key.user, key.id}).value();
  return on;
}

// Work of a child process. Returns true if an allocation failed.
using work = std::function<bool(const std::string& store, fault, int told)>;

// Appends events, and writes each acknowledged number to `told`. A call that
// throws or fails is made again with the same event.
bool append_all(const std::string& store, fault during, int told) {
  auto on = open_at(store);
  // Made before the faults: without memory, a json that is made from a list in
  // braces ends the program.
  std::vector<event> wanted;
  for (int number = 0; number < events; ++number)
    wanted.push_back(said(number));
  during.begin();
  for (int number = 0; number < events; ++number)
    for (bool is_stored = false; !is_stored;) {
      try {
        is_stored
          = on.sessions()
              .append_event(key, wanted[static_cast<std::size_t>(number)])
              .get()
              .has_value();
      } catch (const std::bad_alloc&) {
        continue;
      }
      if (is_stored && ::write(told, &number, sizeof number) != sizeof number)
        ::_exit(9);
    }
  const bool has_failed = during.end();
  const auto shown = on.sessions().get(key).value();
  if (shown.revision() != events
      || shown.state().get<int>("a_key_of_the_session") != events - 1)
    ::_exit(8);
  return has_failed;
}

// Runs two agents beside each other, and again without faults.
bool run_agents(const std::string& store, fault during, int) {
  auto on = open_at(store);
  const auto counter = [](const std::string& name) {
    return custom(name, [](invocation_context& context) -> agent_run {
      context.state().add("a_key_of_the_session", 1);
      co_await context.emit(text("one more than before"));
    });
  };
  const auto both = parallel("both", {counter("left"), counter("right")});
  during.begin();
  try {
    const auto ignored = on.run(both, key, "Count!").wait().get();
  } catch (const std::bad_alloc&) {
  }
  const bool has_failed = during.end();
  on.run(both, key, "Count again!").wait().value();
  if (on.sessions().get(key).value().state().get<int>("a_key_of_the_session")
      < 2)
    ::_exit(8);
  return has_failed;
}

struct ending {
  int status = 0;
  std::string errors;
  std::vector<int> told; // Numbers of acknowledged events.
};

template <class Take>
void read_all(int from, const Take& take) {
  char buffer[4096];
  for (ssize_t count; (count = ::read(from, buffer, sizeof buffer)) > 0;)
    take(buffer, static_cast<std::size_t>(count));
  ::close(from);
}

// Runs `done` in a child process. Its exit code is 0 when all is done after a
// failure, 1 when it ended without memory, and 7 when no allocation failed.
ending run_child(const work& done, const std::string& store, fault during) {
  int told[2];
  int errors[2];
  BOOST_REQUIRE(::pipe(told) == 0);
  BOOST_REQUIRE(::pipe(errors) == 0);
  const auto child = start([&] {
    // Boost.Test handles these signals, and would hide an abort.
    std::signal(SIGABRT, SIG_DFL);
    std::signal(SIGALRM, SIG_DFL);
    ::alarm(seconds_max);
    ::dup2(errors[1], STDERR_FILENO);
    if (!done(store, during, told[1]))
      ::_exit(7);
  });
  ::close(told[1]);
  ::close(errors[1]);
  ending seen;
  read_all(told[0], [&seen](const char* bytes, std::size_t size) {
    for (; size >= sizeof(int); bytes += sizeof(int), size -= sizeof(int)) {
      int number = 0;
      std::memcpy(&number, bytes, sizeof number);
      seen.told.push_back(number);
    }
  });
  read_all(errors[0], [&seen](const char* bytes, std::size_t size) {
    seen.errors.append(bytes, size);
  });
  seen.status = await(child);
  return seen;
}

void is_clean(const ending& seen) {
  BOOST_TEST_REQUIRE(WIFEXITED(seen.status),
                     "ended by signal " << WTERMSIG(seen.status) << ": "
                                        << seen.errors);
  const int code = WEXITSTATUS(seen.status);
  BOOST_TEST((code == 0 || code == 1 || code == 7), "exit code " << code);
  if (code == 1)
    BOOST_TEST(seen.errors.starts_with("error: internal: out of memory"));
}

// Each acknowledged event is stored, once and in order.
void has_stored(const std::string& store, const ending& seen) {
  auto on = runtime::open({.store = store}).value();
  const auto shown = on.sessions().get(key).value();
  const auto stored = shown.events();
  BOOST_TEST(stored.size() >= seen.told.size());
  for (std::size_t at = 0; at < stored.size(); ++at)
    BOOST_TEST(stored[at]->id == said(static_cast<int>(at)).id);
}

} // namespace

BOOST_AUTO_TEST_SUITE(low_memory)

BOOST_AUTO_TEST_CASE(one_failed_allocation_in_memory_is_told) {
  int ended_early = 0;
  int went_on = 0;
  for (fault during;; ++during.skipped) {
    BOOST_TEST_CONTEXT("after " << during.skipped << " allocations") {
      const auto seen = run_child(append_all, "memory:", during);
      is_clean(seen);
      if (WEXITSTATUS(seen.status) == 7)
        break;
      ++(WEXITSTATUS(seen.status) == 0 ? went_on : ended_early);
    }
  }
  BOOST_TEST(ended_early > 0);
  BOOST_TEST(went_on > 0);
}

BOOST_AUTO_TEST_CASE(failed_allocations_over_a_store_lose_nothing) {
  for (const std::size_t count : {1U, 30U})
    for (fault during{0, count};; ++during.skipped) {
      BOOST_TEST_CONTEXT(count << " after " << during.skipped
                               << " allocations") {
        const temporary_folder folder;
        const auto store = "sqlite:" + (folder.path() / "s.db").string();
        const auto seen = run_child(append_all, store, during);
        is_clean(seen);
        has_stored(store, seen);
        if (WEXITSTATUS(seen.status) == 7)
          break;
      }
    }
}

BOOST_AUTO_TEST_CASE(failed_allocations_in_a_run_are_told) {
  for (fault during;; ++during.skipped) {
    BOOST_TEST_CONTEXT("after " << during.skipped << " allocations") {
      const auto seen = run_child(run_agents, "memory:", during);
      is_clean(seen);
      if (WEXITSTATUS(seen.status) == 7)
        break;
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
