#include "troupe/models/http_connections.hpp"

// Not <netinet/tcp.h>: its `tcp_info` ends before the bytes.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace troupe {

namespace {

// Servers send headers in pieces of 1,400 bytes and more, and the rest little.
constexpr std::uint64_t bytes_without_answer_max = 1'300;

// 0 if it is none of TCP, or is not connected.
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

// 0 where the kernel does not tell.
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
