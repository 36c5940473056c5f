#include "troupe/cli/terminal/memory_end.hpp"

#include "troupe/cli/terminal/exit_code.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>

namespace troupe::cli {

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

// Address space that a command needs to start: for libraries and I/O, and for
// the stack and allocator of a thread per core.
constexpr std::size_t needed_bytes = 96 * mebibyte;
constexpr std::size_t needed_bytes_per_core = 16 * mebibyte;

// The stack of one more thread.
constexpr std::size_t short_bytes = 16 * mebibyte;

constexpr std::string_view message
  = "error: internal: out of memory; acknowledged events are stored. Give the "
    "program more memory, or less work at a time\n";

bool has_address_space(std::size_t bytes) noexcept {
  void* const found = ::mmap(nullptr,
                             bytes,
                             PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1,
                             0);
  if (found == MAP_FAILED)
    return false;
  ::munmap(found, bytes);
  return true;
}

// Allocates nothing and runs no destructors, since other threads still run.
// When memory is short, several threads come here at the same time: one of them
// writes the message, and the others wait for the end.
[[noreturn]] void end() noexcept {
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
  ::_exit(exit_failed);
}

bool is_out_of_memory(const std::exception_ptr& thrown) noexcept {
  if (!thrown)
    return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const std::system_error& failure) {
    // A thread whose stack found no memory. By now another thread may have
    // given memory back.
    return failure.code() == std::errc::resource_unavailable_try_again
           || failure.code() == std::errc::not_enough_memory;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void on_terminate() noexcept {
  if (is_out_of_memory(std::current_exception())
      || !has_address_space(short_bytes))
    end();
  __gnu_cxx::__verbose_terminate_handler(); // Prints the exception.
  std::abort();
}

} // namespace

void end_on_low_memory() {
  std::set_new_handler(end);
  std::set_terminate(on_terminate);
}

result<void> check_address_space() {
  const auto bytes
    = needed_bytes
      + needed_bytes_per_core * std::thread::hardware_concurrency();
  if (has_address_space(bytes))
    return {};
  return error(errc::internal,
               fmt::format("less than {} MiB of address space are left "
                           "(ulimit -v), which is too little to start",
                           bytes / mebibyte));
}

} // namespace troupe::cli
