// A proxy on loopback that forwards requests, and records the bytes that it has
// seen.
//
// It takes loopback for every host. Each connection has a thread. Proxies that
// refuse are made of `http_server`.

#pragma once

#include "http_server.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::testing {

class proxy_server {
public:
  proxy_server();
  proxy_server(const proxy_server&) = delete;
  proxy_server& operator=(const proxy_server&) = delete;
  ~proxy_server();

  /// `user` is `name:password@` or empty.
  std::string url(std::string_view user = {}) const;

  /// The requests to the proxy itself: `CONNECT host:port HTTP/1.1`, or `POST
  /// http://host/ HTTP/1.1`.
  std::vector<served_request> requests() const;

  /// All bytes received from clients and servers.
  std::string seen() const;

  /// Closes all connections on both sides.
  void drop();

  // Throws after half a minute.
  void wait_for_requests(std::size_t count);

private:
  void run();
  void serve(int client);
  bool
  take_requests(int client, int& server, bool& tunnels, std::string& received);
  std::string receive(int socket);
  void close(int socket);

  int listener_;
  int port_ = 0;
  std::atomic<bool> quits_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<served_request> requests_;
  std::string seen_;
  std::set<int> open_;

  std::vector<std::thread> serving_;
  std::thread thread_;
};

} // namespace troupe::testing
