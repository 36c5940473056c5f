#include "http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace troupe::testing {

namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

int checked(int done, const char* what) {
  if (done < 0)
    throw std::system_error(errno, std::generic_category(), what);
  return done;
}

std::string url_of(int port, std::string_view path) {
  return fmt::format("http://127.0.0.1:{}{}", port, path);
}

} // namespace

std::string served_request::header(std::string_view name) const {
  for (const auto& [known, text] : headers)
    if (known == name)
      return text;
  return {};
}

std::optional<served_request> take_request(std::string& received) {
  const auto head_end = received.find("\r\n\r\n");
  if (head_end == std::string::npos)
    return std::nullopt;
  served_request found;
  std::size_t body_size = 0;
  for (std::size_t at = 0; at < head_end;) {
    const auto line_end = std::min(received.find("\r\n", at), head_end);
    const auto line = received.substr(at, line_end - at);
    at = line_end + 2;
    if (found.line.empty()) {
      found.line = line;
      continue;
    }
    const auto colon = line.find(':');
    auto name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    auto text = line.substr(
      std::min(line.find_first_not_of(' ', colon + 1), line.size()));
    if (name == "content-length")
      std::from_chars(text.data(), text.data() + text.size(), body_size);
    found.headers.emplace_back(std::move(name), std::move(text));
  }
  const auto body_begin = head_end + 4;
  if (received.size() < body_begin + body_size)
    return std::nullopt;
  found.body = received.substr(body_begin, body_size);
  received.erase(0, body_begin + body_size);
  return found;
}

// -- steps ----

server_step say(std::string bytes) {
  return {server_step::kind::send, std::move(bytes)};
}

server_step say_now(std::string (*make)()) {
  server_step step;
  step.make = make;
  return step;
}

server_step wait_for(std::chrono::milliseconds time) {
  return {server_step::kind::pause, {}, time};
}

server_step hold() {
  return {server_step::kind::hold};
}

server_step close() {
  return {server_step::kind::close};
}

server_step reset() {
  return {server_step::kind::reset};
}

server_script drip(std::string_view bytes, std::chrono::milliseconds every) {
  server_script steps;
  for (const char byte : bytes) {
    steps.push_back(wait_for(every));
    steps.push_back(say(std::string(1, byte)));
  }
  return steps;
}

std::string
whole(std::string_view body, int status, std::string_view more_headers) {
  return fmt::format("HTTP/1.1 {} Said\r\nContent-Length: {}\r\n{}\r\n{}",
                     status,
                     body.size(),
                     more_headers,
                     body);
}

std::string chunked_head() {
  return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
}

std::string chunk(std::string_view body) {
  return fmt::format("{:x}\r\n{}\r\n", body.size(), body);
}

// -- the server ----

std::pair<int, int> listen_on_loopback(int backlog, blocking waits) {
  const int listener
    = checked(::socket(AF_INET,
                       SOCK_STREAM | SOCK_CLOEXEC
                         | (waits == blocking::on ? 0 : SOCK_NONBLOCK),
                       0),
              "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  checked(::bind(listener, generic, size), "bind");
  checked(::listen(listener, backlog), "listen");
  checked(::getsockname(listener, generic, &size), "getsockname");
  return {listener, ntohs(address.sin_port)};
}

http_server::http_server(server_script script)
  : http_server(
    [script = std::move(script)](const served_request&) { return script; }) {}

http_server::http_server(answerer answer)
  : answer_(std::move(answer)),
    epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
    bell_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  std::tie(listener_, port_) = listen_on_loopback(16'384, blocking::off);
  for (const int watched : {listener_, bell_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = watched;
    checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, watched, &event), "epoll_ctl");
  }
  thread_ = std::thread([this] { run(); });
}

http_server::~http_server() {
  {
    const std::lock_guard guard(mutex_);
    quits_ = true;
  }
  ::eventfd_write(bell_, 1);
  thread_.join();
  for (const auto& [socket, at] : open_)
    ::close(socket);
  for (const int ended : {listener_, bell_, epoll_})
    ::close(ended);
}

std::string http_server::url(std::string_view path) const {
  return url_of(port_, path);
}

void http_server::let_go() {
  {
    const std::lock_guard guard(mutex_);
    let_go_ = true;
  }
  ::eventfd_write(bell_, 1);
}

std::size_t http_server::connections() const {
  const std::lock_guard guard(mutex_);
  return connections_;
}

std::vector<served_request> http_server::requests() const {
  const std::lock_guard guard(mutex_);
  return requests_;
}

void http_server::wait_for_requests(std::size_t count) {
  wait_until([&] { return requests_.size() >= count; });
}

void http_server::wait_for_hang_ups(std::size_t count) {
  wait_until([&] { return hang_ups_ >= count; });
}

void http_server::wait_until(const std::function<bool()>& reached) {
  std::unique_lock guard(mutex_);
  if (!changed_.wait_for(guard, 30s, reached))
    throw std::runtime_error(
      fmt::format("the server waits in vain: {} requests, {} hang-ups",
                  requests_.size(),
                  hang_ups_));
}

void http_server::run() {
  std::array<epoll_event, 256> events{};
  while (true) {
    int timeout = -1;
    if (const auto next = due_.next())
      timeout = static_cast<int>(std::max<std::int64_t>(
        std::chrono::ceil<std::chrono::milliseconds>(*next - clock::now())
          .count(),
        0));
    const int count = ::epoll_wait(
      epoll_, events.data(), static_cast<int>(events.size()), timeout);
    bool let_go = false;
    {
      const std::lock_guard guard(mutex_);
      if (quits_)
        return;
      let_go = let_go_;
    }
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      const int socket = event.data.fd;
      if (socket == listener_) {
        accept_all();
      } else if (socket == bell_) {
        eventfd_t rung = 0;
        ::eventfd_read(bell_, &rung);
      } else if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
        receive(socket);
      } else {
        go_on(socket);
      }
    }
    const auto now = clock::now();
    while (const auto socket = due_.take(now)) {
      open_.at(*socket).waits = false;
      go_on(*socket);
    }
    if (let_go) {
      std::vector<int> held;
      for (auto& [socket, at] : open_)
        if (std::exchange(at.holds, false))
          held.push_back(socket);
      for (const int socket : held)
        go_on(socket);
    }
  }
}

void http_server::accept_all() {
  while (true) {
    const int socket
      = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0)
      return;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    const std::lock_guard guard(mutex_);
    open_[socket].number = ++connections_;
    changed_.notify_all();
  }
}

void http_server::receive(int socket) {
  const auto found = open_.find(socket);
  if (found == open_.end())
    return;
  std::array<char, 16'384> buffer{};
  while (true) {
    const auto size = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (size > 0) {
      found->second.received.append(buffer.data(),
                                    static_cast<std::size_t>(size));
      continue;
    }
    if (size < 0 && errno == EAGAIN)
      break;
    // A client that hung up at once has asked nevertheless.
    std::vector<served_request> unanswered;
    while (auto request = take_request(found->second.received)) {
      request->connection = found->second.number;
      unanswered.push_back(*std::move(request));
    }
    end(socket);
    const std::lock_guard guard(mutex_);
    std::ranges::move(unanswered, std::back_inserter(requests_));
    ++hang_ups_;
    changed_.notify_all();
    return;
  }
  read_requests(socket);
}

void http_server::read_requests(int socket) {
  auto& at = open_.at(socket);
  while (auto request = take_request(at.received)) {
    request->connection = at.number;
    auto script = answer_(*request);
    at.steps.insert(at.steps.end(), script.begin(), script.end());
    const std::lock_guard guard(mutex_);
    requests_.push_back(*std::move(request));
    changed_.notify_all();
  }
  go_on(socket);
}

void http_server::go_on(int socket) {
  const auto found = open_.find(socket);
  if (found == open_.end())
    return;
  auto& at = found->second;
  while (flush(socket, at) && !at.holds && !at.waits && !at.steps.empty()) {
    const auto step = std::move(at.steps.front());
    at.steps.pop_front();
    switch (step.what) {
    case server_step::kind::send:
      at.unsent += step.make != nullptr ? step.make() : step.bytes;
      break;
    case server_step::kind::pause:
      at.waits = true;
      due_.set(socket, clock::now() + step.time);
      break;
    case server_step::kind::hold: {
      const std::lock_guard guard(mutex_);
      at.holds = !let_go_;
      break;
    }
    case server_step::kind::close:
      end(socket);
      return;
    case server_step::kind::reset: {
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      end(socket);
      return;
    }
    }
  }
}

bool http_server::flush(int socket, connection& at) {
  while (!at.unsent.empty()) {
    const auto size
      = ::send(socket, at.unsent.data(), at.unsent.size(), MSG_NOSIGNAL);
    if (size < 0)
      break;
    at.unsent.erase(0, static_cast<std::size_t>(size));
  }
  if (at.watches_out == at.unsent.empty()) {
    at.watches_out = !at.unsent.empty();
    epoll_event event{};
    event.events = at.watches_out ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.fd = socket;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event);
  }
  return at.unsent.empty();
}

void http_server::end(int socket) {
  due_.remove(socket);
  open_.erase(socket);
  ::close(socket);
}

// -- servers that do not answer ----

deaf_listener::deaf_listener() {
  std::tie(listener_, port_) = listen_on_loopback(0, blocking::off);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  for (int i = 0; i < 4; ++i) {
    queued_.push_back(
      checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
              "socket"));
    ::connect(
      queued_.back(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
}

deaf_listener::~deaf_listener() {
  for (const int socket : queued_)
    ::close(socket);
  ::close(listener_);
}

std::string deaf_listener::url() const {
  return url_of(port_, "/");
}

std::string refusing_url() {
  const auto [listener, port] = listen_on_loopback(1, blocking::off);
  ::close(listener);
  return url_of(port, "/");
}

} // namespace troupe::testing
