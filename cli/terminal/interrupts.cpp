#include "troupe/cli/terminal/interrupts.hpp"

#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/core/processes/running_children.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <utility>

namespace troupe::cli {

namespace {

sigset_t awaited() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

// The time that programs get after SIGTERM when the process ends before its
// command has begun.
constexpr std::chrono::milliseconds children_grace{1'000};

// Destructors do not run, so the programs that the process has started are
// ended here.
[[noreturn]] void end_with_children(int signal,
                                    std::chrono::milliseconds grace) {
  processes::running_children::all().end(grace);
  ::_exit(interrupts::exit_code(signal));
}

} // namespace

interrupts::interrupts() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_ < 0)
    throw std::system_error(errno, std::generic_category(), "eventfd");
  // Ignored signals make a closed pipe and a size limit failures of the write
  // call, which names the reason.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const auto signals = awaited();
  // Threads that are started from here on inherit the mask.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  waiting_ = std::thread([this] { run_thread([this] { wait(); }); });
}

interrupts::~interrupts() {
  done_ = true;
  pthread_kill(waiting_.native_handle(), SIGINT);
  waiting_.join();
  ::close(descriptor_);
}

void interrupts::divert(std::function<void()> on_interrupt) {
  const std::lock_guard guard(mutex_);
  on_interrupt_ = std::move(on_interrupt);
}

bool interrupts::divert_signal(int received) {
  const std::lock_guard guard(mutex_);
  if (done_ || received != SIGINT || !on_interrupt_)
    return false;
  on_interrupt_();
  return true;
}

void interrupts::set_early_error(std::string text) {
  const std::lock_guard guard(mutex_);
  early_error_ = std::move(text);
}

int interrupts::await_end(int first) const {
  const auto signals = awaited();
  for (;;) {
    const auto limit = exit_timeout_.load();
    int again = 0;
    if (limit == forever) {
      sigwait(&signals, &again);
      return again;
    }
    const timespec left{static_cast<std::time_t>(limit.count()), 0};
    do
      again = sigtimedwait(&signals, nullptr, &left);
    while (again < 0 && errno == EINTR);
    if (again > 0)
      return again;
    if (exit_timeout_.load() == limit)
      return first;
  }
}

void interrupts::end_process(int signal) {
  const std::lock_guard guard(mutex_);
  if (!early_error_.empty())
    report_last(error(errc::cancelled, early_error_));
  end_with_children(signal, std::chrono::milliseconds(0));
}

void interrupts::wait() {
  const auto signals = awaited();
  int first = 0;
  do
    sigwait(&signals, &first);
  while (divert_signal(first));
  if (done_)
    return;
  if (!begun_) {
    // The main thread would otherwise report a server that ends too early.
    report_last(
      error(errc::cancelled, "interrupted before the command started"));
    end_with_children(first, children_grace);
  }
  signal_ = first;
  const std::uint64_t one = 1;
  if (::write(descriptor_, &one, sizeof one) != sizeof one)
    end_with_children(first, std::chrono::milliseconds(0));
  stop_.request_stop();
  const int last = await_end(first);
  if (!done_)
    end_process(last);
}

} // namespace troupe::cli
