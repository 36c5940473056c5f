// Waits for bytes on many descriptors.

#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <vector>

namespace bench {

class event_poll {
public:
  event_poll();
  event_poll(const event_poll&) = delete;
  event_poll& operator=(const event_poll&) = delete;
  ~event_poll();

  /// Waits also for this descriptor, until it is closed. `index` stands for it.
  void add(int descriptor, std::size_t index);

  /// Waits until some descriptors have bytes or were closed by the other side,
  /// and returns their indices. The next call makes them invalid.
  const std::vector<std::size_t>& wait();

private:
  static constexpr std::size_t events_max = 256;

  int descriptor_;
  std::array<epoll_event, events_max> events_{};
  std::vector<std::size_t> ready_;
};

} // namespace bench
