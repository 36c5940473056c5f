// Counts requests and bytes per connection of one libcurl handle. Libcurl does
// not report why nghttp2 has closed a connection; these numbers tell it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Used by one I/O thread.
class http_connections {
public:
  void note_opened(int socket);

  /// Records a request on the connection with this local port.
  void note_request(int local_port);

  /// Call it before `socket` is closed. Returns the local port if the
  /// connection carried a single request and received more bytes since than a
  /// server sends without an answer (greeting, TLS tickets, goodbye).
  std::optional<int> note_closed(int socket);

private:
  struct connection {
    int socket;
    std::size_t requests;
    std::uint64_t bytes_before;
  };

  std::vector<int> unused_;                  // Sockets without a request.
  std::unordered_map<int, connection> used_; // Indexed by local port.
};

} // namespace troupe
