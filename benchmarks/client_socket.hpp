// A connection to a server on loopback.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

class client_socket {
public:
  /// Throws `std::system_error` if no server listens on the port.
  explicit client_socket(std::uint16_t port);
  client_socket(client_socket&& other) noexcept;
  client_socket& operator=(client_socket&& other) noexcept;
  ~client_socket();

  int descriptor() const noexcept { return descriptor_; }

  /// Waits until all of the text is accepted. A closed connection is not an
  /// error here, because the next `receive` tells it.
  void send(std::string_view text) const;

  /// Appends the bytes that have come to `text`, without waiting for more.
  /// Returns false if the server has closed the connection.
  bool receive(std::string& text) const;

private:
  int descriptor_ = -1;
};

} // namespace bench
