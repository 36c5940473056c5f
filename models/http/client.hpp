// HTTP requests that hold no thread while they wait: many transfers on a few
// I/O threads.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/models/http_options.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

enum class http_method : std::uint8_t { post, get, remove, put, patch };

struct http_request {
  http_request() = default;

  std::string url;
  /// `remove` is DELETE.
  http_method method = http_method::post;
  http_headers headers;
  /// Sent by POST, PUT and PATCH, and by other methods if it is not empty. Sent
  /// a second time if the server closes a reused
  /// connection without an answer, or refuses the HTTP/2 stream.
  std::string body;
  http_timeouts timeouts;
  /// False: sent at most once, so it fails where it would be sent a second
  /// time.
  bool repeats = true;
  /// Bypasses every proxy. A proxy can read a plain HTTP request.
  bool direct = false;
};

/// The end of a request.
struct http_end {
  result<void> outcome = {};
  /// For failures: true if the same request may succeed later. True for
  /// connection time-outs and broken connections. False for bad certificates,
  /// answers over a limit and all other time-outs.
  bool may_pass = false;
};

/// Callbacks of a request. They are called one after another on an I/O thread
/// and must be short, because other transfers wait for that thread. A callback
/// that throws ends the request with `errc::internal`.
struct http_handler {
  /// Called once, before the first piece of the body. Not called if no complete
  /// head arrives. Redirects are not followed; they count as answers.
  std::function<void(int status, const http_headers& headers)> on_head = {};
  /// Called with each piece of the body, decoded (gzip). The piece is valid
  /// during the call.
  std::function<void(std::string_view piece)> on_data = {};
  /// Called once, at the end. An answer with any status is a success. Failures:
  /// - `errc::invalid_argument`: the URL or a header is not valid.
  /// - `errc::deadline_exceeded`: a time-out; the message says which.
  /// - `errc::cancelled`.
  /// - `errc::busy`: the queue of the host is full.
  /// - `errc::model_failed`: the connection failed (resolving, connecting, TLS,
  ///   not HTTP, broken off).
  ///
  /// The message names the host and nothing else of the request. An answer
  /// without a length that the server closes normally, but too early, looks
  /// complete. So does, before curl 8, an HTTP/2 answer of a server that
  /// violates the protocol.
  std::function<void(http_end ended)> on_end = {};
};

struct http_client_options {
  /// Number of I/O threads.
  std::size_t threads = 2;
  /// Maximum number of requests to one host at the same time; further ones
  /// wait, first come, first served. Each request has a connection, unless
  /// HTTP/2 shares one. The process needs that many file descriptors.
  std::size_t requests_per_host = 10'000;
  /// Maximum number of requests that wait for one host; further ones fail with
  /// `errc::busy`.
  std::size_t waiting_per_host = 100'000;
  /// Certificate file. If it is empty, `SSL_CERT_FILE` or the system's
  /// certificates are used. TLS is always verified.
  std::string certificates = {};
  /// Proxy for all hosts. If it is empty, the usual environment variables apply
  /// (`HTTPS_PROXY`, `NO_PROXY`, …); `http_proxy` counts only in lower case.
  std::string proxy = {};
};

class http_transfer;

/// A handle of one request; copies refer to the same request. May outlive its
/// client.
class http_call {
public:
  http_call() = default;

  /// Cancels the request. It ends with `errc::cancelled` soon, on an I/O
  /// thread, and its connection is closed (with HTTP/2 only its stream, if the
  /// connection has others). After a call from inside the handler only `on_end`
  /// is called. Does nothing if the request has ended.
  void cancel() const;

private:
  friend class http_client;
  struct client_state;
  class client_registry;

  std::shared_ptr<http_transfer> transfer_;
  std::weak_ptr<client_state> client_;
};

/// A client. Thread-safe.
///
/// The destructor cancels all requests and waits for their ends. If a handler
/// destroys the client as its last owner, the destructor returns at once and
/// the requests end later. At the end of the program all remaining clients are
/// closed. A child process after `fork` cannot use its parent's client.
class http_client {
public:
  /// Throws `std::system_error` if threads or descriptors are exhausted.
  explicit http_client(http_client_options options = {});
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  /// Starts a request and returns at once. `handler.on_end` is called exactly
  /// once, never inside this call.
  http_call start(http_request request, http_handler handler);

  /// Number of requests whose `on_end` was not called yet.
  std::size_t under_way() const;

private:
  std::shared_ptr<http_call::client_state> state_;
};

/// The client of all models that are not given another one. Created at the
/// first call, closed at the end of the program.
std::shared_ptr<http_client> shared_http_client();

} // namespace troupe
