#include "troupe/contexts/recycled.hpp"

#include "troupe/core/support/sanitized.hpp"

#include <array>
#include <new>
#include <utility>

namespace troupe {

namespace {

// Blocks differ in size by a cache line.
constexpr std::size_t step = 64;
constexpr std::size_t size_max = 4096;
// A limit for each size, not for all: letters from callers end on the threads
// of the runtime, and must not take the place of frames there.
constexpr std::size_t kept_max = std::size_t{64} * 1024;

struct free_block {
  free_block* next;
};

struct free_list {
  free_block* first = nullptr;
  std::size_t bytes = 0;
};

// It has no destructor, so that it can be used until the very end of a thread,
// when destructors of other objects of the thread may still free blocks.
struct kept_blocks {
  std::array<free_list, size_max / step> lists{};
  bool closed = false;
};

constinit thread_local kept_blocks kept;

// Frees the kept blocks of a thread at its end.
struct thread_end {
  ~thread_end() {
    kept.closed = true;
    for (auto& list : kept.lists)
      while (list.first != nullptr)
        ::operator delete(std::exchange(list.first, list.first->next));
  }
};

void free_at_thread_end() noexcept {
  thread_local const thread_end at_end{};
}

// A sanitizer finds the use of a freed block only if the block goes back to it,
// so that nothing is kept then.
constexpr bool is_recycled(std::size_t size) {
  return !is_sanitized && size <= size_max;
}

free_list& list_for(std::size_t size) noexcept {
  return kept.lists[(size - 1) / step];
}

constexpr std::size_t block_bytes(std::size_t size) {
  return (size + step - 1) / step * step;
}

} // namespace

void* recycled::operator new(std::size_t size) {
  if (!is_recycled(size))
    return ::operator new(size);
  auto& list = list_for(size);
  if (list.first == nullptr)
    return ::operator new(block_bytes(size));
  list.bytes -= block_bytes(size);
  return std::exchange(list.first, list.first->next);
}

void recycled::operator delete(void* gone, std::size_t size) noexcept {
  if (gone == nullptr || !is_recycled(size) || kept.closed)
    return ::operator delete(gone);
  auto& list = list_for(size);
  if (list.bytes + block_bytes(size) > kept_max)
    return ::operator delete(gone);
  free_at_thread_end();
  list.first = ::new (gone) free_block{list.first};
  list.bytes += block_bytes(size);
}

} // namespace troupe
