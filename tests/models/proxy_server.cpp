#include "proxy_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <tuple>

namespace troupe::testing {

namespace {

/// Returns a socket, or -1 if there is no listener.
int connect_to(std::string_view host_and_port) {
  const auto port_text
    = host_and_port.substr(host_and_port.find_last_of(':') + 1);
  std::uint16_t port = 0;
  std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address)
      == 0)
    return made;
  ::close(made);
  return -1;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto size = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

/// Rewrites `asked` for its server: `http://host/path` becomes the path.
std::string passed_on(const served_request& asked, std::size_t path_begin) {
  auto text = asked.line;
  const auto url_begin = text.find(' ') + 1;
  text.erase(url_begin, path_begin - url_begin);
  text += "\r\n";
  for (const auto& [name, value] : asked.headers)
    if (!name.starts_with("proxy-"))
      text += fmt::format("{}: {}\r\n", name, value);
  return text + "\r\n" + asked.body;
}

} // namespace

proxy_server::proxy_server() {
  std::tie(listener_, port_) = listen_on_loopback(1024, blocking::on);
  thread_ = std::thread([this] { run(); });
}

proxy_server::~proxy_server() {
  quits_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  drop();
  for (auto& each : serving_)
    each.join();
  ::close(listener_);
}

std::string proxy_server::url(std::string_view user) const {
  return fmt::format("http://{}127.0.0.1:{}", user, port_);
}

std::vector<served_request> proxy_server::requests() const {
  const std::lock_guard guard(mutex_);
  return requests_;
}

std::string proxy_server::seen() const {
  const std::lock_guard guard(mutex_);
  return seen_;
}

void proxy_server::drop() {
  const std::lock_guard guard(mutex_);
  for (const int socket : open_)
    ::shutdown(socket, SHUT_RDWR);
}

void proxy_server::wait_for_requests(std::size_t count) {
  std::unique_lock guard(mutex_);
  if (!changed_.wait_for(guard, std::chrono::seconds(30), [&] {
        return requests_.size() >= count;
      }))
    throw std::runtime_error(
      fmt::format("the proxy waits in vain: {} requests", requests_.size()));
}

void proxy_server::run() {
  while (!quits_) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0)
      continue;
    {
      const std::lock_guard guard(mutex_);
      open_.insert(client);
    }
    serving_.emplace_back([this, client] { serve(client); });
  }
}

// -- one connection ----

void proxy_server::serve(int client) {
  int server = -1;
  bool tunnels = false;
  bool goes_on = true;
  std::string received;
  while (goes_on) {
    // Without a server, only the client's socket is polled.
    std::array<pollfd, 2> sides{
      {{.fd = client, .events = POLLIN, .revents = 0},
       {.fd = server, .events = POLLIN, .revents = 0}}};
    ::poll(sides.data(), sides.size(), -1);
    if (sides[0].revents != 0) {
      const auto bytes = receive(client);
      received += bytes;
      goes_on = !bytes.empty()
                && (tunnels ? send_all(server, std::exchange(received, {}))
                            : take_requests(client, server, tunnels, received));
    } else if (sides[1].revents != 0) {
      const auto bytes = receive(server);
      goes_on = !bytes.empty() && send_all(client, bytes);
    }
  }
  close(client);
  if (server >= 0)
    close(server);
}

bool proxy_server::take_requests(int client,
                                 int& server,
                                 bool& tunnels,
                                 std::string& received) {
  while (const auto asked = take_request(received)) {
    {
      const std::lock_guard guard(mutex_);
      requests_.push_back(*asked);
      changed_.notify_all();
    }
    tunnels = asked->line.starts_with("CONNECT ");
    const auto host_begin = tunnels ? std::string_view("CONNECT ").size()
                                    : asked->line.find("://") + 3;
    const auto host_end = asked->line.find_first_of("/ ", host_begin);
    if (server < 0) {
      server
        = connect_to(asked->line.substr(host_begin, host_end - host_begin));
      if (server < 0)
        return send_all(client, whole("nobody is there", 502));
      const std::lock_guard guard(mutex_);
      open_.insert(server);
    }
    if (tunnels)
      return send_all(client, "HTTP/1.1 200 Connected\r\n\r\n")
             && send_all(server, std::exchange(received, {}));
    if (!send_all(server, passed_on(*asked, host_end)))
      return false;
  }
  return true;
}

std::string proxy_server::receive(int socket) {
  std::array<char, 16'384> buffer{};
  const auto size = ::recv(socket, buffer.data(), buffer.size(), 0);
  if (size <= 0)
    return {};
  std::string bytes(buffer.data(), static_cast<std::size_t>(size));
  const std::lock_guard guard(mutex_);
  seen_ += bytes;
  return bytes;
}

void proxy_server::close(int socket) {
  // Removes the number from `open_` before it can be reused.
  const std::lock_guard guard(mutex_);
  open_.erase(socket);
  ::close(socket);
}

} // namespace troupe::testing
