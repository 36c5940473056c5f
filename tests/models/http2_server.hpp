// A server of HTTP/2 for `https://localhost`, controlled by the test: it
// answers in pieces, late or never, and breaks off streams or connections.
//
// One thread serves all connections.

#pragma once

#include "http_server.hpp"
#include "tls_server.hpp"
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::testing {

enum class farewell : std::uint8_t {
  /// GOAWAY, the end of TLS, and FIN.
  orderly,
  /// FIN alone.
  fin,
  /// RST.
  reset,
  /// Bytes that are no frame, then FIN.
  garbage
};

class http2_server {
public:
  /// Returns the answer to a request; called on the server's thread. `say`,
  /// `hold` and `reset` are steps of one stream: a piece of its body, a wait,
  /// and RST_STREAM. The status 200 is sent before the first piece.
  using answerer = std::function<server_script(const served_request&)>;

  struct options {
    /// Greatest number of streams of one connection at the same time.
    std::uint32_t streams_max = 100;
    /// If false, the server accepts only as much of the bodies as the first
    /// windows allow.
    bool takes_bodies = true;
    /// The error code of RST_STREAM.
    std::uint32_t reset_code = NGHTTP2_INTERNAL_ERROR;
    /// Headers of each answer, sent after its status.
    std::vector<std::pair<std::string, std::string>> headers = {};
  };

  explicit http2_server(answerer answer);
  http2_server(answerer answer, options given);
  /// Gives the same answer to all requests.
  explicit http2_server(server_script script);
  http2_server(const http2_server&) = delete;
  http2_server& operator=(const http2_server&) = delete;
  ~http2_server();

  std::string url(std::string_view path = "/") const;

  /// The certificate file that a client has to trust.
  std::string certificate() const { return certificate_.file(); }

  // -- all connections ----

  /// Continues all streams that hold, and those that will.
  void let_go();

  /// Sends GOAWAY: the first `streams` streams of each connection are answered,
  /// the others are not.
  void go_away(std::size_t streams);

  void hang_up(farewell how);

  // -- received requests ----

  std::size_t connections() const;

  /// Complete requests; the line is `POST /path?query HTTP/2`.
  std::vector<served_request> requests() const;
  /// The paths of streams that the client has reset while they were open.
  std::vector<std::string> broken() const;

  /// Greatest number of streams of one connection at the same time.
  std::size_t streams_at_once() const;

  // Throw after half a minute.
  void wait_for_requests(std::size_t count);
  /// Waits for the heads of so many requests.
  void wait_for_streams(std::size_t count);
  void wait_for_broken(std::size_t count);
  /// Waits until so many connections have ended, closed by either side.
  void wait_for_ends(std::size_t count);

private:
  using tls_ptr = std::unique_ptr<SSL, void (*)(SSL*)>;
  using session_ptr
    = std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)>;

  struct stream {
    served_request request = {};
    std::string path = {};
    std::deque<server_step> steps = {};
    std::string unsent = {};
    std::size_t sent = 0;
    bool holds = false;
    bool says = false;
    bool has_head = false;
  };

  struct connection {
    http2_server* server = nullptr;
    std::size_t number = 0;
    tls_ptr tls{nullptr, &SSL_free};
    session_ptr session{nullptr, &nghttp2_session_del};
    /// Indexed by stream number.
    std::map<std::int32_t, stream> streams = {};
    std::string unsent = {};
    bool watches_out = false;
    /// All streams are answered; the server waits for the client to close.
    bool leaves = false;
  };

  void run();
  void post(std::function<void()> order);
  void take_orders();
  void accept_all();
  void open_session(connection& at);
  void go_on(int socket);
  bool shake_hands(int socket, connection& at);
  static bool receive(connection& at);
  static bool is_open(int socket);
  bool send(int socket, connection& at);
  void take_request(connection& at, std::int32_t id);
  void answer_on(connection& at, std::int32_t id, stream& from);
  void end(int socket);
  void wait_until(const std::function<bool()>& reached);

  static int take_begin(nghttp2_session*, const nghttp2_frame*, void*);
  static int take_header(nghttp2_session*,
                         const nghttp2_frame*,
                         const std::uint8_t*,
                         std::size_t,
                         const std::uint8_t*,
                         std::size_t,
                         std::uint8_t,
                         void*);
  static int take_data(nghttp2_session*,
                       std::uint8_t,
                       std::int32_t,
                       const std::uint8_t*,
                       std::size_t,
                       void*);
  static int take_frame(nghttp2_session*, const nghttp2_frame*, void*);
  static int take_close(nghttp2_session*, std::int32_t, std::uint32_t, void*);
  static ssize_t give_body(nghttp2_session*,
                           std::int32_t,
                           std::uint8_t*,
                           std::size_t,
                           std::uint32_t*,
                           nghttp2_data_source*,
                           void*);

  answerer answer_;
  const options options_;
  const server_certificate certificate_;
  int listener_;
  int epoll_;
  int bell_;
  int port_ = 0;
  std::unordered_map<int, connection> open_;
  bool let_go_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> orders_;
  std::vector<served_request> requests_;
  std::vector<std::string> broken_;
  std::size_t connections_ = 0;
  std::size_t streams_ = 0;
  std::size_t streams_at_once_ = 0;
  std::size_t ends_ = 0;
  bool quits_ = false;

  std::thread thread_;
};

} // namespace troupe::testing
