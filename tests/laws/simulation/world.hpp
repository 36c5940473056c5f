// A simulated world: one thread, one clock and one random generator. A seed
// decides the order of all that a runtime does.

#pragma once

#include "troupe/actors/engine/job_loop.hpp"
#include "troupe/core/environment.hpp"

#include "dice.hpp"
#include "fiber.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

/// Thrown when a job waits for an event that never comes.
struct stuck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Not thread-safe. Must outlive everything that runs on it.
class world final : public actors::job_loop {
public:
  struct habits {
    /// One in so many times a woken job runs before its waker continues; 0:
    /// never.
    std::size_t preempts = 0;
    /// One in so many steps moves time although a job is ready.
    std::size_t hurries = 64;
    /// Kinds of jobs that run late: three times in four the choice is drawn
    /// again.
    bool slow[5] = {};
  };

  explicit world(std::uint64_t seed);
  ~world() override;

  void behave(const habits& chosen) { habits_ = chosen; }

  // -- interface of the jobs ----

  void post(actors::job_kind kind, std::function<void()> work) override;
  void run_until(const std::function<bool()>& done) override;

  /// Runs `work` after `delay`.
  void after(std::chrono::nanoseconds delay, std::function<void()> work);

  /// Lets other jobs run for `duration`, at least once. Called by jobs.
  void pause(std::chrono::nanoseconds duration);

  /// Makes the clock and the ids of one runtime.
  std::shared_ptr<environment> make_environment(std::uint64_t seed);

  std::chrono::nanoseconds elapsed() const noexcept { return elapsed_; }

  timestamp now() const;

  // -- results ----

  /// Adds a line to the history, which must be the same in every replay.
  void note(std::string_view what);

  std::uint64_t hash() const noexcept { return hash_; }

  std::size_t steps() const noexcept { return steps_; }

  /// Number of jobs that are ready or suspended.
  std::size_t jobs() const noexcept;

  /// Gets each note, if set.
  std::function<void(std::string_view)> on_note;

private:
  struct job {
    std::size_t kind = 0;
    std::function<void()> work;
    std::unique_ptr<fiber> left; // A suspended job; then `work` is not used.
  };

  using moment = std::pair<std::chrono::nanoseconds, std::uint64_t>;

  static constexpr std::size_t timer_kind = 4;

  void step();
  void run(job chosen);
  std::size_t pick();
  void move_time();
  void leave(std::function<void(job)> keep);
  void mix(std::uint64_t number) noexcept;

  dice choices_;
  habits habits_;
  std::vector<job> ready_;
  std::multimap<moment, job> later_;
  std::vector<std::unique_ptr<fiber>> idle_;
  // State of the running job.
  fiber* current_ = nullptr;
  std::size_t current_kind_ = 0;
  std::function<void(job)> keep_;

  std::chrono::nanoseconds elapsed_{0};
  // Time since the last note in which no job was ready.
  std::chrono::nanoseconds quiet_{0};
  std::uint64_t scheduled_ = 0;
  std::size_t left_ = 0;
  std::size_t steps_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

} // namespace troupe::testing
