// Many clients that follow one session by server-sent events, on the calling
// thread.

#pragma once

#include "client_socket.hpp"
#include "event_poll.hpp"
#include "measure.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

class follower_crowd {
public:
  /// Opens `count` connections, sends the request over each, and waits until
  /// all answers have begun.
  follower_crowd(std::uint16_t port,
                 const std::string& request,
                 std::size_t count);

  /// Waits until each follower has got one event, and returns the time at which
  /// the last one got it. Comments are skipped.
  clock::time_point await_event();

private:
  struct member {
    client_socket from;
    std::string seen;
  };

  // Waits until `is_enough` is true once for the bytes of each member, and then
  // forgets these bytes.
  template <class Predicate>
  void await_all(Predicate is_enough);

  event_poll poll_;
  std::vector<member> members_;
};

} // namespace bench
