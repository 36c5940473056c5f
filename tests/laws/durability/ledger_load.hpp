// Threads that do the work of a plan on a runtime, and record the events sent
// and acknowledged.

#pragma once

#include "troupe/runtime/session_service.hpp"

#include "ledger.hpp"
#include "ledger_work.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::testing {

struct load_plan {
  work_plan work;
  std::uint32_t run = 0; ///< Must differ between the loads of one store.
  std::uint32_t threads = 4;
  /// Appends under way per thread. With more than one, failures are not
  /// retried.
  std::uint32_t window = 1;
  /// Events per thread; 0: until it is stopped.
  std::uint32_t events = 0;
  /// After `store_failed`: true sends the same event until it is acknowledged,
  /// false continues with the next one.
  bool retries = false;
};

/// The two files of a load.
struct ledgers {
  explicit ledgers(const std::filesystem::path& folder)
    : sent(folder / "sent"),
      answered(folder / "answered") {}

  ledger sent;
  ledger answered;
};

class ledger_load {
public:
  /// `written` must outlive this.
  ledger_load(session_service service, load_plan plan, ledgers& written)
    : service_(std::move(service)),
      plan_(plan),
      written_(written) {}

  /// Creates the missing sessions. Returns the reason of the first failure, or
  /// nothing.
  std::string create_sessions();

  /// Appends until the end. May be called once.
  void work();

  /// Makes `work` return soon; thread-safe.
  void stop() noexcept { is_stopped_ = true; }

  std::size_t acknowledged() const noexcept { return acknowledged_; }

  std::size_t failed() const noexcept { return failed_; }

  /// Unexpected failures: all failures except `store_failed` when it is
  /// retried.
  std::vector<std::string> surprises() const;

private:
  void work_on_thread(std::uint32_t thread);
  void append(const job& wanted);
  void append_with_window(std::uint32_t thread);
  bool take_answer(const job_name& name, const result<event_ptr>& answer);

  session_service service_;
  const load_plan plan_;
  ledgers& written_;
  std::atomic<bool> is_stopped_{false};
  std::atomic<std::size_t> acknowledged_{0};
  std::atomic<std::size_t> failed_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> surprises_;
};

} // namespace troupe::testing
