// Ends a program that runs out of memory in the middle of a change.

#pragma once

#include <exception>
#include <new>

namespace troupe {

/// Writes one line to stderr and ends the process with exit code 1. Allocates
/// nothing and runs no destructors, since other threads still run. When memory
/// is short, several threads come here at the same time: one of them writes the
/// line, and the others wait for the end. Thread-safe.
[[noreturn]] void end_without_memory() noexcept;

/// Returns `work()`. If it throws `std::bad_alloc`, ends the process: for work
/// that would leave a change half done.
template <class Work>
decltype(auto) with_memory_or_end(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    end_without_memory();
  }
}

/// Makes the first allocation of a thread. jemalloc 5.3 creates its data for a
/// thread then, and crashes if no memory is left for it. Call this at the start
/// of the thread, when memory is more likely to be left than in its work.
void allocate_once();

/// Runs `work` as the body of a thread. If it throws `std::bad_alloc`, ends the
/// process.
template <class Work>
void run_thread(Work&& work) {
  with_memory_or_end([&work] {
    allocate_once();
    work();
  });
}

/// Ends the process if `thrown` is a `std::bad_alloc`.
void end_if_out_of_memory(const std::exception_ptr& thrown) noexcept;

} // namespace troupe
