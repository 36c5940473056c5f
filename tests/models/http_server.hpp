// A server on loopback that answers as a test says, byte for byte: late, in
// pieces, broken off, or with something that is no HTTP.
//
// One thread for any number of connections.

#pragma once

#include "troupe/models/due_list.hpp"

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
  /// Of which connection, in the order of their beginnings, from 1.
  std::size_t connection = 0;
  /// `POST /path?query HTTP/1.1`.
  std::string line;
  /// Names in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// Empty if there is none.
  std::string header(std::string_view name) const;
};

/// Removes the first request from `received`, if it is there as a whole.
std::optional<served_request> take_request(std::string& received);

/// One step of an answer.
struct server_step {
  enum class kind : std::uint8_t {
    send,
    pause,
    /// Until `http_server::let_go`.
    hold,
    /// FIN.
    close,
    /// RST.
    reset
  };

  kind what = kind::send;
  std::string bytes = {};
  std::chrono::milliseconds time{};
  /// Makes the bytes when they are sent; null: they are `bytes`.
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

/// Each byte by itself, `every` after the last.
server_script drip(std::string_view bytes, std::chrono::milliseconds every);

/// A whole answer with a length.
std::string whole(std::string_view body,
                  int status = 200,
                  std::string_view more_headers = {});

/// The head of an answer in chunks, and one chunk.
std::string chunked_head();
std::string chunk(std::string_view body);

class http_server {
public:
  /// What to answer; called on the server's thread.
  using answerer = std::function<server_script(const served_request&)>;

  explicit http_server(answerer answer);
  /// Always the same.
  explicit http_server(server_script script);
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  ~http_server();

  std::string url(std::string_view path = "/") const;

  int port() const noexcept { return port_; }

  /// All that hold, and those to come, go on.
  void let_go();

  /// Connections made so far.
  std::size_t connections() const;
  std::vector<served_request> requests() const;

  // Throw when it takes half a minute.
  void wait_for_requests(std::size_t count);
  /// Connections that the client has closed or reset.
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

enum class blocking : bool { no, yes };

/// A socket that listens on loopback, and its port.
std::pair<int, int> listen_on_loopback(int backlog, blocking waits);

/// Accepts no connection: its queue is full.
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

/// Of a port of loopback at which nobody listens.
std::string refusing_url();

} // namespace troupe::testing
