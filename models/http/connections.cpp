#include "troupe/models/http/connections.hpp"

// The kernel's header, because `tcp_info` of <netinet/tcp.h> ends before the
// number of bytes.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace troupe {

namespace {

// Servers send headers in pieces of at least 1,400 bytes, and everything else
// in less.
constexpr std::uint64_t bytes_without_answer_max = 1'300;

// Returns 0 if the socket is not TCP or not connected.
int local_port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

// Returns 0 if the kernel does not report it.
std::uint64_t bytes_received(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0
           ? info.tcpi_bytes_received
           : 0;
}

} // namespace

void http_connections::note_opened(int socket) {
  unused_.push_back(socket);
}

void http_connections::note_request(int local_port) {
  if (const auto known = used_.find(local_port); known != used_.end()) {
    ++known->second.requests;
    return;
  }
  const auto found = std::ranges::find(unused_, local_port, local_port_of);
  if (found == unused_.end())
    return;
  used_.emplace(local_port, connection{*found, 1, bytes_received(*found)});
  unused_.erase(found);
}

std::optional<int> http_connections::note_closed(int socket) {
  if (std::erase(unused_, socket) > 0)
    return std::nullopt;
  const auto found = std::ranges::find(
    used_, socket, [](const auto& each) { return each.second.socket; });
  if (found == used_.end())
    return std::nullopt;
  const auto [port, closed] = *found;
  used_.erase(found);
  if (closed.requests > 1
      || bytes_received(socket)
           <= closed.bytes_before + bytes_without_answer_max)
    return std::nullopt;
  return port;
}

} // namespace troupe
