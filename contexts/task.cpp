#include "troupe/contexts/task.hpp"

namespace troupe {

namespace {

thread_local executor* current_executor = nullptr;

} // namespace

executor* executor::current() noexcept {
  return current_executor;
}

executor::current_guard::current_guard(executor* entered) noexcept
  : before_(std::exchange(current_executor, entered)) {}

executor::current_guard::~current_guard() {
  current_executor = before_;
}

} // namespace troupe
