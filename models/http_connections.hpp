// The connections of one handle of libcurl: who has been on them, and how much
// has come. Curl itself does not tell why nghttp2 has ended one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe {

/// For one I/O thread.
class http_connections {
public:
  void note_opened(int socket);

  /// A request goes out on the connection with this port of ours.
  void note_request(int local_port);

  /// To be called before `socket` is closed. The port, if the connection had
  /// one request alone, and more has come since than a server says that answers
  /// nothing: its greeting, tickets of TLS, a goodbye.
  std::optional<int> note_closed(int socket);

private:
  struct connection {
    int socket;
    std::size_t requests;
    std::uint64_t bytes_before;
  };

  std::vector<int> unused_;                  // Sockets without a request.
  std::unordered_map<int, connection> used_; // By the port of ours.
};

} // namespace troupe
