#include "client_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace bench {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

} // namespace

client_socket::client_socket(std::uint16_t port)
  : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (descriptor_ < 0)
    fail("socket");
  const int on = 1;
  ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto address = loopback(port);
  if (::connect(descriptor_,
                reinterpret_cast<const sockaddr*>(&address),
                sizeof address)
      == 0)
    return;
  const int reason = errno;
  ::close(std::exchange(descriptor_, -1));
  errno = reason;
  fail("connect");
}

client_socket::client_socket(client_socket&& other) noexcept
  : descriptor_(std::exchange(other.descriptor_, -1)) {}

client_socket& client_socket::operator=(client_socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

client_socket::~client_socket() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

void client_socket::send(std::string_view text) const {
  while (!text.empty()) {
    const auto sent
      = ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR)
      return;
    if (sent > 0)
      text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool client_socket::receive(std::string& text) const {
  std::array<char, std::size_t{64} * 1024> room; // Not filled with zeros.
  const auto count
    = ::recv(descriptor_, room.data(), room.size(), MSG_DONTWAIT);
  if (count < 0)
    return errno == EAGAIN || errno == EINTR;
  text.append(room.data(), static_cast<std::size_t>(count));
  return count > 0;
}

} // namespace bench
