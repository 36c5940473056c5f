// One thread, one clock and one generator: everything that a runtime does, in
// an order that a seed decides.

#pragma once

#include "troupe/actors/job_loop.hpp"
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

/// Something waits for what never comes.
struct stuck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Not thread-safe. Outlives all that runs on it.
class world final : public actors::job_loop {
public:
  struct habits {
    /// One in so many times something that is woken runs before its waker goes
    /// on; 0: never.
    std::size_t preempts = 0;
    /// One in so many steps time moves although something is ready.
    std::size_t hurries = 64;
    /// Kinds of jobs that are passed over three times in four.
    bool slow[5] = {};
  };

  explicit world(std::uint64_t seed);
  ~world() override;

  void behave(const habits& chosen) { habits_ = chosen; }

  // -- for what runs on it
  // -----------------------------------------------------

  void post(actors::job_kind kind, std::function<void()> work) override;
  void run_until(const std::function<bool()>& done) override;

  /// Runs `work` when so much time has passed.
  void after(std::chrono::nanoseconds delay, std::function<void()> work);

  /// Lets others run for so long, or just for once; called by jobs.
  void pause(std::chrono::nanoseconds duration);

  /// Time and ids for one runtime.
  std::shared_ptr<environment> make_environment(std::uint64_t seed);

  std::chrono::nanoseconds elapsed() const noexcept { return elapsed_; }

  timestamp now() const;

  // -- what happened
  // -----------------------------------------------------------

  /// Adds to what must be the same every time.
  void note(std::string_view what);

  std::uint64_t hash() const noexcept { return hash_; }

  std::size_t steps() const noexcept { return steps_; }

  /// Jobs that are ready or were left in the middle.
  std::size_t jobs() const noexcept;

  /// Gets each note, if set.
  std::function<void(std::string_view)> on_note;

private:
  struct job {
    std::size_t kind = 0;
    std::function<void()> work;
    std::unique_ptr<fiber> left; // To go on with, instead of `work`.
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
  // Of the job that runs.
  fiber* current_ = nullptr;
  std::size_t current_kind_ = 0;
  std::function<void(job)> keep_;

  std::chrono::nanoseconds elapsed_{0};
  // In which nobody had anything to do, since the last note.
  std::chrono::nanoseconds quiet_{0};
  std::uint64_t scheduled_ = 0;
  std::size_t left_ = 0;
  std::size_t steps_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

} // namespace troupe::testing
