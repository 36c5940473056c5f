// One libcurl multi handle with its transfers and connections. Used by one I/O
// thread.
//
// A lane has at most `transfers_max` transfers, for two reasons. Libcurl visits
// all connections of a handle whenever a transfer ends. And an HTTP/2
// connection carries about a hundred streams; further transfers would each open
// their own connection, because libcurl does not wait for one that is being
// opened.

#pragma once

#include "troupe/models/http/transfer.hpp"

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace troupe {

/// Settings of all transfers.
struct http_lane_setup {
  /// Certificate file; empty for the system's.
  std::string certificates;
  /// Proxy; empty for the environment's.
  std::string proxy;
  /// Shares names and TLS sessions. Belongs to the shard's thread and outlives
  /// the lanes.
  CURLSH* share;
};

class http_lane {
public:
  using time_point = http_transfer::time_point;

  static constexpr std::size_t transfers_max = 100;

  /// `watch` is called with a socket and the epoll events to wait for; 0 to
  /// stop.
  http_lane(const http_lane_setup& setup,
            std::function<void(int, unsigned)> watch);
  http_lane(const http_lane&) = delete;
  http_lane& operator=(const http_lane&) = delete;
  ~http_lane();

  /// Starts a transfer. The caller keeps it until `remove`.
  void begin(http_transfer& transfer);

  enum class ending : std::uint8_t { whole, broken_off };

  /// Removes a transfer. `broken_off` tells the server to stop, because it may
  /// still be sending.
  void remove(http_transfer& transfer, ending how);

  /// Handles epoll `events` at `socket`.
  void act(int socket, unsigned events);

  /// Handles all timers that are due.
  void pass_time();

  /// Time of the next call of `pass_time`.
  std::optional<time_point> due() const;

  /// Returns a transfer that has ended, if any. The caller removes it.
  std::optional<std::pair<http_transfer*, CURLcode>> next_ended();

private:
  using easy_ptr = std::unique_ptr<CURL, void (*)(CURL*)>;
  using multi_ptr = std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)>;

  /// State of one host. While the first transfer connects, the others wait for
  /// its result: for the address, because libcurl would start one resolver
  /// thread per transfer, and for HTTP/2, which lets them share the connection.
  struct host {
    std::size_t connecting = 0;
    std::size_t connected = 0;
    std::deque<http_transfer*> held;
    std::unordered_set<http_transfer*> added;
  };

  static int
  note_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int note_due(CURLM*, long milliseconds, void* self);
  static curl_socket_t
  open_socket(void* self, curlsocktype, curl_sockaddr* address);
  static int close_socket(void* self, curl_socket_t socket);

  void open();
  easy_ptr make_easy();
  void add(http_transfer& transfer, host& at);
  void release(host& at);
  static void send_what_is_kept_back(const host& at, int local_port);
  void after_curl();

  const http_lane_setup& setup_;
  std::function<void(int, unsigned)> watch_;
  std::vector<easy_ptr> free_;
  std::unordered_map<std::string, host> hosts_;
  std::vector<http_transfer*> just_connected_;
  http_connections connections_;
  std::size_t transfers_ = 0;
  std::optional<time_point> curl_due_;
  std::optional<time_point> close_due_;
  multi_ptr multi_;
};

} // namespace troupe
