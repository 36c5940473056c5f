// A runtime for tests, with short calls for common actions, and conditions to
// wait for instead of sleeps.

#pragma once

#include "troupe/runtime/runtime.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The longest time that a test waits for anything.
inline constexpr std::chrono::seconds patience{60};

/// Counts events of other threads, and lets a test wait for them.
class tally {
public:
  void add() {
    // Notifies under the lock: the waiter may destroy the tally as soon as the
    // lock is free.
    const std::lock_guard guard(mutex_);
    ++count_;
    changed_.notify_all();
  }

  /// Waits until the count is at least `count`.
  void await(std::size_t count) {
    std::unique_lock guard(mutex_);
    if (!changed_.wait_for(guard, patience, [&] { return count_ >= count; }))
      throw std::runtime_error("waited in vain: " + std::to_string(count_)
                               + " of " + std::to_string(count));
  }

  /// Returns true if the count reaches `count` within `time`.
  bool reaches(std::size_t count, std::chrono::milliseconds time) {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, time, [&] { return count_ >= count; });
  }

  std::size_t count() const {
    const std::lock_guard guard(mutex_);
    return count_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

/// The answers of many calls with completions, in the order of the calls.
template <class T>
class answers {
public:
  /// Makes the completion of one more call.
  completion<T> next() {
    const std::lock_guard guard(kept_->mutex);
    kept_->slots.emplace_back();
    return [kept = kept_, index = kept_->slots.size() - 1](result<T> answer) {
      {
        const std::lock_guard lock(kept->mutex);
        auto& own = kept->slots[index];
        own.answer.emplace(std::move(answer));
        ++own.calls;
      }
      kept->answered.add();
    };
  }

  /// Waits for all answers; each call must get exactly one.
  std::vector<result<T>> await() {
    std::size_t count = 0;
    {
      const std::lock_guard guard(kept_->mutex);
      count = kept_->slots.size();
    }
    kept_->answered.await(count);
    return taken();
  }

  /// Returns true if an answer comes within `time`.
  bool any_within(std::chrono::milliseconds time) {
    return kept_->answered.reaches(1, time);
  }

  /// Returns all answers without waiting.
  std::vector<result<T>> taken() {
    const std::lock_guard guard(kept_->mutex);
    std::vector<result<T>> all;
    for (auto& each : kept_->slots) {
      if (each.calls != 1)
        throw std::runtime_error("a completion was called "
                                 + std::to_string(each.calls) + " times");
      all.push_back(*each.answer);
    }
    return all;
  }

private:
  struct slot {
    std::optional<result<T>> answer;
    int calls = 0;
  };

  struct kept {
    std::mutex mutex;
    std::vector<slot> slots;
    tally answered;
  };

  std::shared_ptr<kept> kept_ = std::make_shared<kept>();
};

/// Runs `body(index)` on `count` threads that start together.
inline void on_threads(std::size_t count,
                       const std::function<void(std::size_t)>& body) {
  std::promise<void> start;
  const auto started = start.get_future().share();
  std::vector<std::future<void>> all;
  for (std::size_t index = 0; index < count; ++index)
    all.push_back(std::async(std::launch::async, [&body, started, index] {
      started.wait();
      body(index);
    }));
  start.set_value();
  for (auto& each : all)
    each.get();
}

/// Number of threads of this process.
inline std::size_t thread_count() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

/// Simulated time that counts the timers set on it.
class watched_environment : public simulated_environment {
public:
  using simulated_environment::simulated_environment;

  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override {
    simulated_environment::call_after(delay, std::move(done));
    timers.add();
  }

  /// Counts all timers ever set.
  tally timers;
};

/// An event in wire form that changes state: `change({{"topic", "owls"}})`.
inline event change(json state_delta, const std::string& id = {}) {
  event said;
  said.id = id;
  said.author = "user";
  said.actions.state_delta = delta::from_json(state_delta).value();
  return said;
}

/// An event of typed operations: `operate({operation_on("n", "add", 1)})`.
inline event operate(const std::vector<json>& operations,
                     json state_delta = json::object(),
                     const std::string& id = {}) {
  auto said = change(std::move(state_delta), id);
  record_operations(said.actions.state_delta, operations).value();
  return said;
}

inline json
operation_on(const std::string& key, const std::string& op, json operand) {
  return {{"op", op}, {"key", key}, {"value", std::move(operand)}};
}

/// Returns the state after the stored deltas, applied in their order.
inline json replay(const event_slice& events, json start = json::object()) {
  for (const auto& said : events) {
    const auto stored = said->actions.state_delta.to_json();
    for (const auto& [key, value] : stored.items()) {
      if (value.is_null())
        start.erase(key);
      else
        start[key] = value;
    }
  }
  return start;
}

class runtime_fixture {
public:
  explicit runtime_fixture(runtime_options options = {})
    : runtime(troupe::runtime::open(std::move(options)).value()) {}

  static runtime_options in(std::shared_ptr<troupe::environment> time) {
    runtime_options options;
    options.environment = std::move(time);
    return options;
  }

  session_service& sessions() { return runtime.sessions(); }

  session_key open(const std::string& id = "s",
                   json state = json::object(),
                   const std::string& user = "ann") {
    return sessions()
      .create({"press", user, id}, std::move(state))
      .value()
      .key();
  }

  struct many {
    std::size_t sessions;
    std::size_t users;
    json state = json::object();
  };

  /// Creates sessions `s0`, `s1`, …, of the users `u0`, `u1`, … in turn.
  std::vector<session_key> open_many(const many& wanted) {
    std::vector<session_key> keys;
    for (std::size_t count = 0; count < wanted.sessions; ++count)
      keys.push_back(open("s" + std::to_string(count),
                          wanted.state,
                          "u" + std::to_string(count % wanted.users)));
    return keys;
  }

  session fetch(const session_key& key) { return sessions().get(key).value(); }

  event_slice events(const session_key& key) { return fetch(key).events(); }

  /// The rows of a list of the whole app.
  std::vector<session> rows(std::size_t limit = 1'000) {
    return sessions().list({"press", {}, limit}).value().sessions;
  }

  json state(const session_key& key) { return fetch(key).state().all(); }

  json app_state() { return sessions().app_state("press").value(); }

  json user_state(const std::string& user = "ann") {
    return sessions().user_state("press", user).value();
  }

  /// Appends the event and returns the code.
  std::string append(const session_key& key, event said) {
    return code_of(sessions().append_event(key, std::move(said)).get());
  }

  std::string append(const session_key& key, json state_delta) {
    return append(key, change(std::move(state_delta)));
  }

  /// The texts of a session's events.
  std::vector<std::string> texts(const session_key& key) {
    std::vector<std::string> all;
    for (const auto& said : events(key))
      all.push_back(said->text());
    return all;
  }

  troupe::runtime runtime;
};

/// Blocks the one thread of a runtime during its life: no job of it runs. Calls
/// of blocked threads still can.
class standstill {
public:
  standstill(runtime_fixture& on, const session_key& key) {
    on.sessions().get(key).then(
      [this, moved = moves_.get_future().share()](const result<session>&) {
        standing_.add();
        moved.wait();
      });
    standing_.await(1);
  }

  ~standstill() { moves_.set_value(); }

  standstill(const standstill&) = delete;
  standstill& operator=(const standstill&) = delete;

private:
  tally standing_;
  std::promise<void> moves_;
};

} // namespace troupe::testing
