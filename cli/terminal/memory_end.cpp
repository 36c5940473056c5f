#include "troupe/cli/terminal/memory_end.hpp"

#include "troupe/core/support/low_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
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
    end_without_memory();
  __gnu_cxx::__verbose_terminate_handler(); // Prints the exception.
  std::abort();
}

} // namespace

void end_on_low_memory() {
  std::set_new_handler(end_without_memory);
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
