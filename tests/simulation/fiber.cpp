#include "fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace troupe::testing {

namespace {

void* make_stack(std::size_t bytes) {
  auto* made = mmap(nullptr,
                    bytes,
                    PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                    -1,
                    0);
  if (made == MAP_FAILED)
    throw std::bad_alloc();
  // Whoever needs more stack than there is stops here, not elsewhere.
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
  // It passes on nothing wider than an int.
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
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(
    fake_inside_, &outside_stack_, &outside_bytes_);
#endif
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
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_outside_, stack_, stack_bytes);
#endif
  swapcontext(&outside_, &inside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
#endif
  swap_handled(handled_inside_, handled_outside_);
  return has_ended_;
}

void fiber::switch_out() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_inside_, outside_stack_, outside_bytes_);
#endif
  swapcontext(&inside_, &outside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(
    fake_inside_, &outside_stack_, &outside_bytes_);
#endif
}

} // namespace troupe::testing
