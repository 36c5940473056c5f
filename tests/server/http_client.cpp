#include "http_client.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace troupe::testing {

namespace {

constexpr std::chrono::seconds answer_patience{60};

} // namespace

json http_answer::data() const {
  return parse_json(body).value();
}

std::string http_answer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

http_client::http_client(std::uint16_t port) : port_(port) {
  connect();
}

void http_client::connect() {
  close();
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  is_last_ = false;
  received_.clear();
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port_);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(
        socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place)
      != 0)
    throw std::runtime_error("no connection to the server");
}

http_client::http_client(http_client&& other) noexcept
  : headers(std::move(other.headers)),
    port_(other.port_),
    socket_(std::exchange(other.socket_, -1)),
    is_last_(other.is_last_),
    received_(std::move(other.received_)),
    lines_(std::move(other.lines_)) {}

http_client::~http_client() {
  close();
}

void http_client::close() {
  if (socket_ >= 0)
    ::close(std::exchange(socket_, -1));
}

void http_client::finish_sending() {
  ::shutdown(socket_, SHUT_WR);
}

bool http_client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Returns false at the end of the connection. Throws if nothing comes.
bool http_client::fill(std::chrono::milliseconds time) {
  pollfd waits{socket_, POLLIN, 0};
  if (::poll(&waits, 1, static_cast<int>(time.count())) != 1)
    throw std::runtime_error("the server sends nothing");
  char part[65'536];
  const auto count = ::recv(socket_, part, sizeof part, 0);
  if (count <= 0)
    return false;
  received_.append(part, static_cast<std::size_t>(count));
  return true;
}

std::string http_client::line() {
  for (;;) {
    const auto end = received_.find("\r\n");
    if (end != std::string::npos) {
      auto found = received_.substr(0, end);
      received_.erase(0, end + 2);
      return found;
    }
    if (!fill(answer_patience))
      throw std::runtime_error("the connection ended in the middle of a line");
  }
}

std::string http_client::bytes(std::size_t count) {
  while (received_.size() < count)
    if (!fill(answer_patience))
      throw std::runtime_error("the connection ended in the middle of a body");
  auto found = received_.substr(0, count);
  received_.erase(0, count);
  return found;
}

http_answer http_client::read_head() {
  http_answer answer;
  const auto status = line();
  if (!status.starts_with("HTTP/1.1 "))
    throw std::runtime_error("no answer of HTTP: " + status);
  answer.status = std::atoi(status.c_str() + 9);
  for (auto field = line(); !field.empty(); field = line()) {
    const auto mark = field.find(": ");
    answer.headers[field.substr(0, mark)] = field.substr(mark + 2);
  }
  is_last_ = answer.header("connection") == "close";
  if (const auto length = answer.header("content-length"); !length.empty())
    answer.body = bytes(std::stoul(length));
  return answer;
}

http_answer http_client::read() {
  auto answer = read_head();
  if (answer.header("transfer-encoding") == "chunked")
    for (auto piece = read_chunk(); !piece.empty(); piece = read_chunk())
      answer.body += piece;
  return answer;
}

std::string http_client::read_chunk() {
  const auto size = std::stoul(line(), nullptr, 16);
  auto piece = bytes(size);
  if (!line().empty())
    throw std::runtime_error("a chunk is longer than its size");
  return piece;
}

json http_client::next_event() {
  for (;;) {
    for (auto end = lines_.find('\n'); end != std::string::npos;
         end = lines_.find('\n')) {
      const auto found = lines_.substr(0, end);
      lines_.erase(0, end + 1);
      if (found.starts_with("id: "))
        last_id = found.substr(4);
      if (found.starts_with("data: "))
        return parse_json(found.substr(6)).value();
    }
    const auto piece = read_chunk();
    if (piece.empty())
      return nullptr;
    lines_ += piece;
  }
}

bool http_client::has_answer_within(std::chrono::milliseconds time) {
  pollfd waits{socket_, POLLIN, 0};
  return !received_.empty()
         || ::poll(&waits, 1, static_cast<int>(time.count())) == 1;
}

bool http_client::is_closed_within(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      end - std::chrono::steady_clock::now());
    pollfd waits{socket_, POLLIN, 0};
    if (left.count() < 0
        || ::poll(&waits, 1, static_cast<int>(left.count())) != 1)
      return false;
    char part[4'096];
    if (::recv(socket_, part, sizeof part, 0) <= 0)
      return true;
  }
}

void http_client::send_request(const std::string& method,
                               const std::string& target,
                               const std::string& body) {
  if (is_last_)
    connect();
  auto text = fmt::format("{} {} HTTP/1.1\r\n", method, target);
  const bool names_host = std::ranges::any_of(
    headers, [](const auto& each) { return each.starts_with("host: "); });
  if (!names_host)
    text += "host: localhost\r\n";
  for (const auto& each : headers)
    text += each + "\r\n";
  if (!body.empty())
    text += fmt::format("content-type: application/json\r\n"
                        "content-length: {}\r\n",
                        body.size());
  send(text + "\r\n" + body);
}

http_answer http_client::ask(const std::string& method,
                             const std::string& target,
                             const std::string& body) {
  send_request(method, target, body);
  return read();
}

http_answer http_client::get(const std::string& target) {
  return ask("GET", target);
}

http_answer http_client::post(const std::string& target, const json& body) {
  return ask("POST", target, to_text(body));
}

http_answer http_client::patch(const std::string& target, const json& body) {
  return ask("PATCH", target, to_text(body));
}

http_answer http_client::erase(const std::string& target) {
  return ask("DELETE", target);
}

} // namespace troupe::testing
