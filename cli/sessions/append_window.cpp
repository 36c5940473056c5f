#include "troupe/cli/sessions/append_window.hpp"

#include "troupe/core/support/low_memory.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::cli {

append_window::append_window(session_writer writer,
                             std::string what,
                             hooks told)
  : writer_(std::move(writer)),
    what_(std::move(what)),
    hooks_(std::move(told)),
    passing_on_([this] { run_thread([this] { keep_passing_on(); }); }) {}

append_window::~append_window() {
  {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }
  answered_.notify_one();
  passing_on_.join();
}

result<void>
append_window::push(event said, std::size_t number, std::size_t bytes) {
  std::uint64_t position = 0;
  {
    std::unique_lock lock(mutex_);
    passed_on_.wait(lock, [this, bytes] {
      return failing_ || queue_.empty()
             || (queue_.size() < count_max && bytes_ + bytes <= bytes_max);
    });
    if (failing_) {
      lock.unlock();
      return drain();
    }
    position = front_ + queue_.size();
    bytes_ += bytes;
    queue_.push_back({number, bytes, std::nullopt});
  }
  writer_.append(std::move(said))
    .then([this, position](result<event_ptr> given) {
      answer(position, std::move(given));
    });
  return {};
}

result<void> append_window::drain() {
  std::unique_lock lock(mutex_);
  passed_on_.wait(lock, [this] { return queue_.empty(); });
  if (failure_)
    return *failure_;
  return {};
}

void append_window::answer(std::uint64_t position, result<event_ptr> given) {
  // Notified under the lock: after the last answer the window may be destroyed.
  const std::lock_guard guard(mutex_);
  failing_ = failing_ || !given;
  queue_[position - front_].answer = std::move(given);
  if (position == front_)
    answered_.notify_one();
}

void append_window::keep_passing_on() {
  bool is_cut = false; // An earlier `on_stored` failed.
  std::unique_lock lock(mutex_);
  for (;;) {
    answered_.wait(lock, [this] {
      return queue_.empty() ? ended_ : queue_.front().answer.has_value();
    });
    if (queue_.empty())
      return;

    std::vector<event_ptr> stored;
    std::optional<error> failed;
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (auto& next : queue_) {
      if (!next.answer)
        break;
      ++count;
      bytes += next.bytes;
      auto& given = *next.answer;
      if (given && !(*given)->partial)
        stored.push_back(std::move(*given));
      else if (!given && !failed)
        failed
          = error(given.error().code(),
                  fmt::format(
                    "{} {}: {}", what_, next.number, given.error().message()));
    }

    lock.unlock();
    // Events that were under way after a failed one and were stored are passed
    // on, too. After a failed `on_stored`, no event is passed on: its output
    // may be incomplete.
    if (!stored.empty() && hooks_.on_stored && !is_cut)
      if (auto passed = hooks_.on_stored(stored); !passed) {
        is_cut = true;
        if (!failed)
          failed = passed.error();
      }
    lock.lock();
    if (failed && !failure_) {
      failing_ = true;
      failure_ = std::move(failed);
      if (hooks_.on_failure)
        hooks_.on_failure();
    }
    front_ += count;
    bytes_ -= bytes;
    queue_.erase(queue_.begin(),
                 queue_.begin() + static_cast<std::ptrdiff_t>(count));
    passed_on_.notify_all();
  }
}

} // namespace troupe::cli
