#include "event_poll.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace bench {

event_poll::event_poll() : descriptor_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (descriptor_ < 0)
    throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

event_poll::~event_poll() {
  ::close(descriptor_);
}

void event_poll::add(int descriptor, std::size_t index) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = index;
  if (::epoll_ctl(descriptor_, EPOLL_CTL_ADD, descriptor, &wanted) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

const std::vector<std::size_t>& event_poll::wait() {
  ready_.clear();
  const int count = ::epoll_wait(descriptor_, events_.data(), events_max, -1);
  for (int index = 0; index < count; ++index)
    ready_.push_back(events_[static_cast<std::size_t>(index)].data.u64);
  return ready_;
}

} // namespace bench
