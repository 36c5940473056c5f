#include "ledger_load.hpp"

#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <semaphore>
#include <thread>

namespace troupe::testing {

namespace {

// Time between two attempts of a caller, as a client would leave it. No result
// is waited for.
constexpr std::chrono::milliseconds respite{2};

constexpr std::size_t surprises_max = 10;

} // namespace

std::string ledger_load::create_sessions() {
  for (std::uint32_t number = 0; number < plan_.work.sessions; ++number) {
    const auto key = session_of(plan_.work, number);
    for (;;) {
      const auto made = service_.create(key, birth_of(number)).get();
      if (made || made.error().code() == errc::already_exists)
        break;
      if (made.error().code() != errc::store_failed || !plan_.retries
          || is_stopped_)
        return to_string(made.error());
      ++failed_;
      std::this_thread::sleep_for(respite);
    }
    written_.answered.write(ledger_entry::created, {.number = number});
  }
  return {};
}

void ledger_load::work() {
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < plan_.threads; ++thread)
    threads.emplace_back([this, thread] { work_on_thread(thread); });
}

std::vector<std::string> ledger_load::surprises() const {
  const std::lock_guard guard(mutex_);
  return surprises_;
}

void ledger_load::work_on_thread(std::uint32_t thread) {
  if (plan_.window > 1) {
    append_with_window(thread);
    return;
  }
  const auto last = plan_.events == 0
                      ? std::numeric_limits<std::uint32_t>::max()
                      : plan_.events;
  for (std::uint32_t number = 0; number < last && !is_stopped_; ++number)
    append(job_of(plan_.work, {plan_.run, thread, number}));
}

void ledger_load::append(const job& wanted) {
  const auto key = session_of(plan_.work, wanted.session);
  written_.sent.write(ledger_entry::sent, wanted.name);
  for (;;) {
    const auto answer = service_.append_event(key, event_of(wanted)).get();
    if (take_answer(wanted.name, answer))
      return;
    if (!plan_.retries) {
      written_.answered.write(ledger_entry::failed, wanted.name);
      return;
    }
    if (is_stopped_)
      return;
    std::this_thread::sleep_for(respite);
  }
}

void ledger_load::append_with_window(std::uint32_t thread) {
  // Shared, because the last completion may still hold it when this returns.
  const auto free = std::make_shared<std::counting_semaphore<>>(plan_.window);
  for (std::uint32_t number = 0;
       (plan_.events == 0 || number < plan_.events) && !is_stopped_;
       ++number) {
    const auto wanted = job_of(plan_.work, {plan_.run, thread, number});
    free->acquire();
    written_.sent.write(ledger_entry::sent, wanted.name);
    service_
      .append_event(session_of(plan_.work, wanted.session), event_of(wanted))
      .then([this, name = wanted.name, free](const result<event_ptr>& answer) {
        if (!take_answer(name, answer))
          written_.answered.write(ledger_entry::failed, name);
        free->release();
      });
  }
  for (std::uint32_t count = 0; count < plan_.window; ++count)
    free->acquire();
}

// Returns false if the append failed. After `store_failed` its outcome is
// unknown.
bool ledger_load::take_answer(const job_name& name,
                              const result<event_ptr>& answer) {
  if (answer) {
    ++acknowledged_;
    written_.answered.write(ledger_entry::acknowledged, name);
    return true;
  }
  ++failed_;
  if (answer.error().code() != errc::store_failed || !plan_.retries) {
    const std::lock_guard guard(mutex_);
    if (surprises_.size() < surprises_max)
      surprises_.push_back(to_string(name) + ": " + to_string(answer.error()));
  }
  return false;
}

} // namespace troupe::testing
