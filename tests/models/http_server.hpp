// A server on loopback that sends the bytes that a test chooses: late, in
// pieces, broken off, or not HTTP at all.
//
// One thread serves all connections.

#pragma once

#include "troupe/models/http/due_list.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::testing {

struct served_request {
  /// Number of its connection, counted from 1 in the order of accepting.
  std::size_t connection = 0;
  /// `POST /path?query HTTP/1.1`.
  std::string line;
  /// Names are in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// Returns the value of a header; empty if there is none.
  std::string header(std::string_view name) const;
};

/// Removes the first request from `received`, if it is complete.
std::optional<served_request> take_request(std::string& received);

/// One step of an answer.
struct server_step {
  enum class kind : std::uint8_t {
    send,
    pause,
    /// Waits until `http_server::let_go`.
    hold,
    /// FIN.
    close,
    /// RST.
    reset
  };

  kind what = kind::send;
  std::string bytes = {};
  std::chrono::milliseconds time{};
  /// Makes the bytes when they are sent; if null, `bytes` is sent.
  std::string (*make)() = nullptr;
};

using server_script = std::vector<server_step>;

// -- steps ----

server_step say(std::string bytes);
server_step say_now(std::string (*make)());
server_step wait_for(std::chrono::milliseconds time);
server_step hold();
server_step close();
server_step reset();

/// Sends each byte by itself, `every` after the one before.
server_script drip(std::string_view bytes, std::chrono::milliseconds every);

/// A complete answer with a length.
std::string whole(std::string_view body,
                  int status = 200,
                  std::string_view more_headers = {});

/// The head of a chunked answer, and one chunk.
std::string chunked_head();
std::string chunk(std::string_view body);

class http_server {
public:
  /// Returns the answer to a request; called on the server's thread.
  using answerer = std::function<server_script(const served_request&)>;

  explicit http_server(answerer answer);
  /// Gives the same answer to all requests.
  explicit http_server(server_script script);
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  ~http_server();

  std::string url(std::string_view path = "/") const;

  int port() const noexcept { return port_; }

  /// Continues all answers that hold, and those that will.
  void let_go();

  /// Number of connections made so far.
  std::size_t connections() const;
  std::vector<served_request> requests() const;

  // Throw after half a minute.
  void wait_for_requests(std::size_t count);
  /// Waits until the client has closed or reset so many connections.
  void wait_for_hang_ups(std::size_t count);

private:
  struct connection {
    std::size_t number = 0;
    std::string received = {};
    std::string unsent = {};
    std::deque<server_step> steps = {};
    bool holds = false;
    bool waits = false;
    bool watches_out = false;
  };

  void run();
  void accept_all();
  void receive(int socket);
  void read_requests(int socket);
  void go_on(int socket);
  void end(int socket);
  bool flush(int socket, connection& at);
  void wait_until(const std::function<bool()>& reached);

  answerer answer_;
  int listener_;
  int epoll_;
  int bell_;
  int port_ = 0;
  std::unordered_map<int, connection> open_;
  due_list<int> due_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<served_request> requests_;
  std::size_t connections_ = 0;
  std::size_t hang_ups_ = 0;
  bool let_go_ = false;
  bool quits_ = false;

  std::thread thread_;
};

enum class blocking : bool { off, on };

/// Returns a listening socket on loopback, and its port.
std::pair<int, int> listen_on_loopback(int backlog, blocking waits);

/// A port that accepts no connection: its queue is full.
class deaf_listener {
public:
  deaf_listener();
  deaf_listener(const deaf_listener&) = delete;
  deaf_listener& operator=(const deaf_listener&) = delete;
  ~deaf_listener();

  std::string url() const;

private:
  int listener_;
  int port_ = 0;
  std::vector<int> queued_;
};

/// The URL of a port of loopback without a listener.
std::string refusing_url();

} // namespace troupe::testing
