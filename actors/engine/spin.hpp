// The pause of a thread that looks for something again and again.

#pragma once

#include <thread>

namespace troupe::actors {

/// Waits for some tens of nanoseconds without leaving the core.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

} // namespace troupe::actors
