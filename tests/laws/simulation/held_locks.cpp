#include "held_locks.hpp"

#include <dlfcn.h>
#include <pthread.h>

namespace {

thread_local int held = 0;

using lock_function = int (*)(pthread_mutex_t*);

lock_function next_of(const char* name) noexcept {
  return reinterpret_cast<lock_function>(dlsym(RTLD_NEXT, name));
}

} // namespace

// Definitions of the program take precedence over those of the C library.
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto lock = next_of("pthread_mutex_lock");
  const auto failed = lock(mutex);
  held += failed == 0;
  return failed;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  static const auto lock = next_of("pthread_mutex_trylock");
  const auto failed = lock(mutex);
  held += failed == 0;
  return failed;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const auto unlock = next_of("pthread_mutex_unlock");
  --held;
  return unlock(mutex);
}
}

namespace troupe::testing {

bool holds_a_lock() noexcept {
  return held > 0;
}

} // namespace troupe::testing
