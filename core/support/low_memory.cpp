#include "troupe/core/support/low_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace troupe {

namespace {

constexpr std::string_view message
  = "error: internal: out of memory; acknowledged events are stored. Give the "
    "program more memory, or less work at a time\n";

} // namespace

void end_without_memory() noexcept {
  static std::atomic_flag is_ending;
  while (is_ending.test_and_set())
    ::pause();
  auto left = message;
  while (!left.empty()) {
    const auto written = ::write(STDERR_FILENO, left.data(), left.size());
    if (written <= 0)
      break;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  ::_exit(EXIT_FAILURE);
}

void allocate_once() {
  // Volatile, so that the compiler keeps the allocation.
  void* volatile made = ::operator new(1);
  ::operator delete(made);
}

void end_if_out_of_memory(const std::exception_ptr& thrown) noexcept {
  try {
    if (thrown)
      std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (...) { // Of no concern here; the caller handles it.
  }
}

} // namespace troupe
