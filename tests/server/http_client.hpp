// A client of HTTP for tests: sends any bytes over a socket, and reads answers
// strictly.

#pragma once

#include "troupe/core/json.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

/// An answer as it was received.
struct http_answer {
  int status = 0;
  /// Names are in lower case.
  std::map<std::string, std::string> headers;
  std::string body;

  json data() const;
  std::string header(const std::string& name) const;
};

/// One connection to 127.0.0.1. A wait above a minute throws.
class http_client {
public:
  explicit http_client(std::uint16_t port);
  http_client(http_client&& other) noexcept;
  http_client& operator=(http_client&&) = delete;
  ~http_client();

  /// Headers of all further requests, each as `name: data`.
  std::vector<std::string> headers;

  /// Sends a request and reads its answer. After an answer that closes the
  /// connection, the next request is sent on a new one.
  http_answer get(const std::string& target);
  http_answer post(const std::string& target, const json& body);
  http_answer patch(const std::string& target, const json& body);
  http_answer erase(const std::string& target);
  http_answer ask(const std::string& method,
                  const std::string& target,
                  const std::string& body = {});

  /// Sends a request without waiting.
  void send_request(const std::string& method,
                    const std::string& target,
                    const std::string& body = {});

  // -- pieces ----

  /// Sends bytes. Returns false if the server has closed the connection.
  bool send(std::string_view bytes);

  /// Reads the head of an answer, and its body unless it is chunked.
  http_answer read_head();
  /// Reads a whole answer.
  http_answer read();

  /// Reads one chunk of a body; empty at the end of the body.
  std::string read_chunk();

  /// Reads chunks up to the next line `data: JSON`, and returns the JSON; null
  /// at the end of the body. Comments are skipped.
  json next_event();
  /// The id line of the last event.
  std::string last_id;

  /// Returns true once bytes of an answer have come, false after `time` without
  /// them.
  bool has_answer_within(std::chrono::milliseconds time);

  /// Ends the sending half.
  void finish_sending();

  /// Returns true once the server has closed the connection, false after
  /// `time` without its end. Bytes on the way are dropped.
  bool is_closed_within(std::chrono::milliseconds time);

  /// Closes the connection.
  void close();

private:
  void connect();
  bool fill(std::chrono::milliseconds time);
  std::string line();
  std::string bytes(std::size_t count);

  std::uint16_t port_;
  int socket_ = -1;
  bool is_last_ = false; // The newest answer closes the connection.
  std::string received_;
  std::string lines_; // Of an event stream.
};

} // namespace troupe::testing
