// One handle of libcurl for many transfers, and the connections it keeps.
//
// A lane has at most `transfers_max` of them, for two reasons. Curl looks at
// all connections of a handle each time that a transfer ends. And a connection
// of HTTP/2 carries a hundred: of more, each would open one for itself, because
// curl does not wait for one that is on its way. For one I/O thread.

#pragma once

#include "troupe/models/http_transfer.hpp"

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

/// What all transfers have in common.
struct http_lane_setup {
  /// Empty: the system's.
  std::string certificates;
  /// Empty: by the environment.
  std::string proxy;
  /// Names and TLS sessions; outlives the lanes, on the same thread.
  CURLSH* share;
};

class http_lane {
public:
  using time_point = http_transfer::time_point;

  static constexpr std::size_t transfers_max = 100;

  /// `watch` is called with a socket and the events of epoll to wait for there,
  /// 0 for none.
  http_lane(const http_lane_setup& setup,
            std::function<void(int, unsigned)> watch);
  http_lane(const http_lane&) = delete;
  http_lane& operator=(const http_lane&) = delete;
  ~http_lane();

  /// The caller keeps `transfer` until `remove`.
  void begin(http_transfer& transfer);

  enum class ending : std::uint8_t { whole, broken_off };

  /// `broken_off`: its server may still be at it, and is told to stop.
  void remove(http_transfer& transfer, ending how);

  /// Something happened at `socket`: `events` are those of epoll.
  void act(int socket, unsigned events);

  /// What was due by `due` is done.
  void pass_time();

  /// When to call `pass_time`.
  std::optional<time_point> due() const;

  /// One that has ended; the caller removes it.
  std::optional<std::pair<http_transfer*, CURLcode>> next_ended();

private:
  using easy_ptr = std::unique_ptr<CURL, void (*)(CURL*)>;
  using multi_ptr = std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)>;

  /// What is known of the way to a host. While the first transfer is on its way
  /// there, the others wait for what it finds: the address (or each of them
  /// would have a thread to resolve it) and whether one connection serves many.
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
