#include "troupe/mcp/server/line_writer.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

namespace troupe::mcp {

namespace {

int new_wake() {
  const int made = ::eventfd(0, EFD_CLOEXEC);
  if (made < 0)
    throw std::system_error(errno, std::generic_category(), "eventfd");
  return made;
}

} // namespace

line_writer::line_writer(int target, std::function<void()> on_broken)
  : target_(target),
    wake_(new_wake()),
    on_broken_(std::move(on_broken)),
    thread_([this] { work(); }) {}

line_writer::~line_writer() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  const std::uint64_t one = 1;
  // Cannot fail: the counter has room for a second one.
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(wake_);
}

void line_writer::write(const json& message) {
  put(to_text(message) + '\n', false);
}

void line_writer::write_if_room(const json& message) {
  put(to_text(message) + '\n', true);
}

void line_writer::put(std::string line, bool only_if_room) {
  const std::lock_guard guard(mutex_);
  if (broken_ || (only_if_room && bytes_ > queue_bytes_max))
    return;
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  changed_.notify_all();
}

bool line_writer::wait_for_room(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool has_room = changed_.wait(
    lock, stop, [this] { return broken_ || bytes_ <= queue_bytes_max; });
  return has_room && !broken_ && !stop.stop_requested();
}

void line_writer::finish(std::chrono::steady_clock::time_point until,
                         const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(
    lock, stop, until, [this] { return broken_ || lines_.empty(); });
}

bool line_writer::is_broken() const {
  const std::lock_guard guard(mutex_);
  return broken_;
}

void line_writer::work() {
  // The failure of the write call is enough. The signal is for this thread
  // alone, and is gone with it.
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !lines_.empty(); });
    if (ends_)
      return;
    // Other threads add behind the first line and never take it.
    const auto& line = lines_.front();
    lock.unlock();
    const bool is_written = write_all(line);
    lock.lock();
    if (!is_written && ends_)
      return;
    bytes_ -= line.size();
    lines_.pop_front();
    if (!is_written) {
      broken_ = true;
      lines_.clear();
      bytes_ = 0;
    }
    changed_.notify_all();
    if (is_written)
      continue;
    lock.unlock();
    on_broken_();
    return;
  }
}

bool line_writer::write_all(std::string_view text) {
  while (!text.empty()) {
    std::array<pollfd, 2> waiting{pollfd{target_, POLLOUT, 0},
                                  pollfd{wake_, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      return false;
    if (waiting[1].revents != 0)
      return false;
    if (waiting[0].revents == 0)
      continue;
    // A pipe that polls as writable has room for this many bytes, so the write
    // does not block, and the end of the writer is noticed.
    const auto size = std::min<std::size_t>(text.size(), PIPE_BUF);
    const auto written = ::write(target_, text.data(), size);
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR && errno != EAGAIN)
      return false;
  }
  return true;
}

} // namespace troupe::mcp
