#include "fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

// g++ and clang name AddressSanitizer differently.
#if defined(__SANITIZE_ADDRESS__)
#define TROUPE_FIBERS_ARE_TOLD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_FIBERS_ARE_TOLD
#endif
#endif

#if defined(TROUPE_FIBERS_ARE_TOLD)
#include <sanitizer/common_interface_defs.h>
#endif

namespace troupe::testing {

namespace {

// Tells AddressSanitizer of each change of stacks, before and after it. Without
// that, it reports an exception on a fiber as a stack overflow.

void tell_before([[maybe_unused]] void** fake_left,
                 [[maybe_unused]] const void* stack,
                 [[maybe_unused]] std::size_t bytes) {
#if defined(TROUPE_FIBERS_ARE_TOLD)
  __sanitizer_start_switch_fiber(fake_left, stack, bytes);
#endif
}

void tell_after([[maybe_unused]] void* fake_entered,
                [[maybe_unused]] const void** stack_left,
                [[maybe_unused]] std::size_t* bytes_left) {
#if defined(TROUPE_FIBERS_ARE_TOLD)
  __sanitizer_finish_switch_fiber(fake_entered, stack_left, bytes_left);
#endif
}

void* make_stack(std::size_t bytes) {
  auto* made = mmap(nullptr,
                    bytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                    -1,
                    0);
  if (made == MAP_FAILED)
    throw std::bad_alloc();
  // A stack overflow hits this guard page instead of other memory.
  mprotect(made, 4096, PROT_NONE);
  return made;
}

template <class Handled>
void swap_handled(Handled& kept, Handled& wanted) {
  auto* current = abi::__cxa_get_globals();
  std::memcpy(kept.data(), current, sizeof(Handled));
  std::memcpy(current, wanted.data(), sizeof(Handled));
}

} // namespace

fiber::fiber() : stack_(make_stack(stack_bytes)) {
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_;
  inside_.uc_stack.ss_size = stack_bytes;
  inside_.uc_link = nullptr;
  // `makecontext` passes only ints, so the address is split in two.
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&inside_,
              reinterpret_cast<void (*)()>(&fiber::enter),
              2,
              static_cast<unsigned>(address >> 32U),
              static_cast<unsigned>(address));
}

fiber::~fiber() {
  munmap(stack_, stack_bytes);
}

void fiber::enter(unsigned high, unsigned low) {
  reinterpret_cast<fiber*>((std::uintptr_t{high} << 32U) | low)->run();
}

void fiber::run() {
  tell_after(fake_inside_, &outside_stack_, &outside_bytes_);
  for (;;) {
    work_();
    work_ = nullptr;
    has_ended_ = true;
    switch_out();
  }
}

bool fiber::start(std::function<void()> work) {
  work_ = std::move(work);
  has_ended_ = false;
  return switch_in();
}

bool fiber::go_on() {
  return switch_in();
}

void fiber::leave() {
  switch_out();
}

bool fiber::switch_in() {
  swap_handled(handled_outside_, handled_inside_);
  tell_before(&fake_outside_, stack_, stack_bytes);
  swapcontext(&outside_, &inside_);
  tell_after(fake_outside_, nullptr, nullptr);
  swap_handled(handled_inside_, handled_outside_);
  return has_ended_;
}

void fiber::switch_out() {
  tell_before(&fake_inside_, outside_stack_, outside_bytes_);
  swapcontext(&inside_, &outside_);
  tell_after(fake_inside_, &outside_stack_, &outside_bytes_);
}

} // namespace troupe::testing
