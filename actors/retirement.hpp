// Keeps memory to what is in use: suggests to sessions that were not used for
// long, or the longest when there are too many, that they leave it; users
// follow their sessions, and apps of which nothing is in use. Over a store
// alone, which brings them back on demand.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace troupe::actors {

struct setup;

/// Thread-safe.
class retirement {
public:
  /// `shared` outlives it.
  explicit retirement(setup& shared) : shared_(shared) {}

  /// Starts to look after age, from now on.
  void start();

  /// A session has come into memory; looks after their number.
  void note_entry();

  /// An app has, beside so many; looks after their number.
  void note_apps(std::size_t count);

  /// An idle owner leaves between one and one and a quarter of its age.
  static constexpr std::size_t looks_per_age = 4;

private:
  bool is_too_many(std::size_t count) const;

  void look_again_later();
  void look_after_age();
  void look_after_number();
  // Suggests it to all last used at `tick` or before.
  void suggest(std::uint64_t tick);

  setup& shared_;
  std::atomic<bool> counting_{false};
  std::atomic<bool> counting_apps_{false};
  std::mutex mutex_;
  std::deque<std::uint64_t> looks_; // The clock at the last looks after age.
};

} // namespace troupe::actors
