// HTTP requests that hold no thread while they wait: many transfers on a few
// I/O threads.

#pragma once

#include "troupe/core/error.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Name and value; names as they are written, compared without case.
using http_headers = std::vector<std::pair<std::string, std::string>>;

/// At least a millisecond each. Those of the connection and of the first byte
/// count from when the request has its place; `total` has the wait for it.
struct http_timeouts {
  /// Until the connection stands, with TLS.
  std::chrono::milliseconds connect{10'000};
  /// Until the first line of the answer.
  std::chrono::milliseconds first_byte{120'000};
  /// Between two pieces of an answer.
  std::chrono::milliseconds between{60'000};
  /// For all of it, from the start.
  std::chrono::milliseconds total{600'000};

  friend bool operator==(const http_timeouts&, const http_timeouts&) = default;
};

struct http_request {
  http_request() = default;

  std::string url;
  http_headers headers;
  /// Sent by POST; once more if the server closes a connection that others use
  /// or used without a word, or refuses the stream of HTTP/2.
  std::string body;
  http_timeouts timeouts;
  /// Past every proxy. A proxy reads all of a plain request.
  bool direct = false;
};

/// How a request ended.
struct http_end {
  result<void> outcome = {};
  /// Of a failure: whether the same request may end well later. Time-outs of
  /// the connection and broken connections may; certificates that do not fit,
  /// an answer over a limit, and all other time-outs may not.
  bool may_pass = false;
};

/// What became of a request. Its functions are called on an I/O thread, one
/// after another, and must be short: other transfers wait for that thread. One
/// that throws ends the request with `errc::internal`.
struct http_handler {
  /// Once, before the first piece; not if no whole head came. Redirects are not
  /// followed: they are answers.
  std::function<void(int status, const http_headers& headers)> on_head = {};
  /// A piece of the body, decoded (gzip), valid during the call.
  std::function<void(std::string_view piece)> on_data = {};
  /// Once, at the end. An answer of any status ends well. The outcome fails
  /// with `errc::invalid_argument` (the URL or a header is none),
  /// `errc::deadline_exceeded` (and which time-out), `errc::cancelled`,
  /// `errc::busy` (the queue of the host is full), or `errc::model_failed` (the
  /// connection: resolving, connecting, TLS, no HTTP, broken off). Says which
  /// host, but nothing else of the request. An answer without length that the
  /// server breaks off in good order is not told from a whole one; nor is, by
  /// curl before version 8, one on HTTP/2 when the server breaks its rules.
  std::function<void(http_end ended)> on_end = {};
};

struct http_client_options {
  /// I/O threads.
  std::size_t threads = 2;
  /// Requests under way to one host at the same time; further ones wait, first
  /// come, first served. Each has a connection, except where HTTP/2 shares it.
  /// The process needs as many file descriptors.
  std::size_t requests_per_host = 10'000;
  /// Requests that wait for one host before further ones are `errc::busy`.
  std::size_t waiting_per_host = 100'000;
  /// File of certificates in place of the system's; empty: `SSL_CERT_FILE`,
  /// else the system's. TLS is always verified.
  std::string certificates = {};
  /// For all hosts. Empty: by the usual environment variables (`HTTPS_PROXY`,
  /// `NO_PROXY`, …); as usual, `http_proxy` counts in lower case alone.
  std::string proxy = {};
};

class http_transfer;

/// One request under way; copies are the same one. May outlive its client.
class http_call {
public:
  http_call() = default;

  /// Ends it with `errc::cancelled` and closes its connection (of HTTP/2: its
  /// stream, if there are others), soon and on an I/O thread. From within its
  /// handler, that is told only the end from now on. Nothing if it has ended.
  void cancel() const;

private:
  friend class http_client;
  struct client_state;
  class client_registry;

  std::shared_ptr<http_transfer> transfer_;
  std::weak_ptr<client_state> client_;
};

/// Thread-safe. When it ends, what is under way ends with `errc::cancelled`
/// before the destructor returns; after that if a handler is what ends it, as
/// its last owner. What is left when the program ends, ends with it. A child
/// after `fork` cannot use its parent's.
class http_client {
public:
  /// Throws `std::system_error` if there are no threads or descriptors left.
  explicit http_client(http_client_options options = {});
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  /// Returns at once; `handler.on_end` is called exactly once, never from
  /// within this call.
  http_call start(http_request request, http_handler handler);

  /// Requests whose `on_end` has not been called.
  std::size_t under_way() const;

private:
  std::shared_ptr<http_call::client_state> state_;
};

/// The client that models share unless they are given one; made when it is
/// first asked for, ended when the program does.
std::shared_ptr<http_client> shared_http_client();

} // namespace troupe
