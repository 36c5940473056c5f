// Replaces the allocation of a program, which defines `on_allocation`. For one
// source of a program alone.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace troupe::testing {

/// Called before each allocation of `size` bytes. If it returns false, the
/// allocation fails. Thread-safe; must not allocate.
bool on_allocation(std::size_t size) noexcept;

} // namespace troupe::testing

// Out of line, because GCC warns of a mismatched `free` when they are inlined.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (troupe::testing::on_allocation(size))
    if (void* made = std::malloc(size))
      return made;
  throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void* gone) noexcept {
  std::free(gone);
}

[[gnu::noinline]] void operator delete(void* gone, std::size_t) noexcept {
  std::free(gone);
}
