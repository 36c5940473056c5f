// The way to answer one request, from any thread.
//
// Each request is answered once. A reply that is dropped without an answer
// sends status 500, so no client waits without end.

#pragma once

#include "troupe/server/http/response.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe::serving {

/// How a client leaves before it has its whole answer.
enum class departure : std::uint8_t {
  half,  ///< It sends no more. It may still read, or may have closed.
  whole, ///< Its connection is closed.
};

using departure_watch = std::function<void(departure)>;

/// The client of a request, as its connection sees it. All calls may come from
/// any thread; they take effect in their order.
class client {
public:
  virtual ~client() = default;

  /// Sends a whole answer.
  virtual void send(response answer) = 0;

  /// Sends the head of an answer whose body comes in pieces.
  virtual void begin(response head) = 0;

  /// Sends one piece. `ready` is called once, on a thread of the server, when
  /// another piece should be made: at once if little waits to be accepted, or
  /// when the client has gone.
  virtual void write(std::string piece, std::function<void()> ready) = 0;

  /// Ends the answer that `begin` has begun. With `breaks` the connection is
  /// closed without the end of the body.
  virtual void end(bool breaks) = 0;

  /// Calls `gone`, on a thread of the server, if the client leaves before it
  /// has its whole answer: at most once for each kind. Dropped after the
  /// answer.
  virtual void watch(departure_watch gone) = 0;
};

/// Copies refer to the same request. Thread-safe.
class reply {
public:
  /// `headers` are those of each answer.
  explicit reply(std::shared_ptr<client> to, header_list headers = {});

  /// Sends the answer; later answers are ignored.
  void send(response answer) const;

  /// Starts an answer in pieces, and returns its client; null if there was an
  /// answer already.
  std::shared_ptr<client> stream(response head) const;

  /// Calls `gone` if the client leaves before it has its whole answer.
  void watch(departure_watch gone) const;

private:
  struct parts;

  std::shared_ptr<parts> parts_;
};

} // namespace troupe::serving
