// The threads of a server and its open connections: threads that read and
// write, and threads for work that may block.
//
// Connections refer to this object, so it is destroyed after the last of them.
// Once it has stopped, calls from other threads have no effect.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
} // namespace boost::asio

namespace troupe::serving {

/// A connection, as the list of all connections sees it.
class live_connection {
public:
  virtual ~live_connection() = default;

  /// Closes the connection if no request is under way, and otherwise after the
  /// answer.
  virtual void drain() = 0;

  /// Closes the connection at once.
  virtual void close() = 0;

  /// Time at which the connection is closed, of the steady clock; 0 for none.
  virtual std::int64_t deadline() const noexcept = 0;

  /// Tells the connection that its deadline may have passed.
  virtual void expire() = 0;
};

/// Thread-safe.
class io_threads : public std::enable_shared_from_this<io_threads> {
public:
  /// `connections_max` limits the open connections; `tick` is the precision of
  /// their deadlines.
  io_threads(std::size_t connections_max, std::chrono::milliseconds tick);
  ~io_threads();

  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;

  /// Starts the threads. Called once.
  void start(std::size_t threads, std::size_t blocking_threads);

  boost::asio::io_context& context() noexcept;

  /// Runs `job` on a thread that may block. Dropped after `stop`.
  void work(std::function<void()> job);

  /// Calls `done` on a thread of the server after `delay`. Dropped after
  /// `stop`.
  void call_after(std::chrono::milliseconds delay, std::function<void()> done);

  /// Calls `give` while the threads cannot stop. Returns false after `stop`,
  /// when nothing may be handed to them any more.
  bool while_open(const std::function<void()>& give);

  /// Adds a connection. Returns false if there are too many, or after `stop`.
  bool enter(const std::shared_ptr<live_connection>& added);
  void leave(const live_connection& removed);

  std::size_t connections() const;

  /// Number of requests since the start.
  std::uint64_t requests() const;

  /// Counts the requests under way.
  void begin_request() noexcept;
  void end_request() noexcept;

  /// Waits until no request is under way, at most for `limit`. Returns whether
  /// that is so.
  bool await_requests(std::chrono::milliseconds limit);

  /// True after `drain`: connections are closed after their answers.
  bool is_draining() const noexcept;
  void drain();

  /// Closes all connections and ends the threads. Not called on one of them.
  void stop();

private:
  struct parts;

  std::unique_ptr<parts> parts_;
};

} // namespace troupe::serving
