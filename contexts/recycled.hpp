// Memory of objects that live briefly: frames of coroutines, letters between
// owners, calls. Each thread keeps the freed blocks for its next objects.
//
// A block belongs to no thread while it is in use: the thread that frees it
// keeps it. So no lock is needed, and an object may end on another thread.

#pragma once

#include <cstddef>

namespace troupe {

/// The base class of types whose objects `new` makes in recycled memory. If
/// they are deleted through a base class, its destructor must be virtual, so
/// that the size is known. A thread keeps up to 64 KiB of blocks of each size,
/// and none above 4 KiB, until it ends.
class recycled {
public:
  /// Returns a block that this thread keeps, or allocates one. Throws
  /// `std::bad_alloc`.
  static void* operator new(std::size_t size);

  /// Keeps the block for this thread, or frees it.
  static void operator delete(void* gone, std::size_t size) noexcept;
};

} // namespace troupe
