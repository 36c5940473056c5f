// Carries messages between a client and its server.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::mcp {

/// A message to the server.
struct outgoing {
  json message;
  /// Set for a request.
  std::optional<std::int64_t> id;
  /// Further headers over HTTP.
  std::vector<std::pair<std::string, std::string>> headers;
  /// For a message without an id: called once the server has it.
  std::function<void()> on_sent;
};

/// The message as text. Bytes that are not UTF-8 are replaced.
inline std::string wire_text(const outgoing& sent) {
  return sent.message.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A request whose session the server does not know.
struct lost_session {
  std::int64_t id;
  error why;
  /// False if a new session has begun since the request was sent.
  bool is_current;
  /// True if the server has not begun to work on the request.
  bool may_repeat;
};

/// Called on the connection's thread.
struct transport_events {
  /// A message of the server. It is any JSON value.
  std::function<void(json message)> on_message;
  /// The request cannot be answered any more; others are not affected.
  std::function<void(std::int64_t id, error why)> on_failed;
  std::function<void(lost_session lost)> on_session_lost;
  /// The connection has ended; nothing is called after this.
  std::function<void(error why)> on_closed;
};

/// Used on the connection's thread only. Handlers may be called inside `send`.
class transport {
public:
  virtual ~transport() = default;

  /// Sends a message. Over stdio messages arrive in the order of the calls;
  /// over HTTP each is a request of its own, and no order is kept.
  virtual void send(outgoing sent) = 0;

  /// The request was answered.
  virtual void settle(std::int64_t id) = 0;

  /// The answer to the request is not wanted any more.
  virtual void forget(std::int64_t id) = 0;

  /// True if the server has to be told of a cancelled request by a message;
  /// otherwise `forget` tells it.
  virtual bool tells_cancellation(bool is_stateless) const noexcept = 0;

  /// The handshake has ended with this version.
  virtual void note_handshake(const std::string& version) = 0;

  /// Begins to receive messages that answer nothing.
  virtual void listen() = 0;

  /// Ends the connection. No event is called after this. `done` is called when
  /// the process or the requests have ended.
  virtual void close(std::function<void()> done) = 0;
};

} // namespace troupe::mcp
