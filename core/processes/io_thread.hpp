// The thread of one connection: everything about the connection happens on it.

#pragma once

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace troupe::processes {

/// `post` and `call_after` are thread-safe.
class io_thread {
public:
  /// Throws `std::system_error` if the system starts no thread.
  io_thread();
  io_thread(const io_thread&) = delete;
  io_thread& operator=(const io_thread&) = delete;

  ~io_thread();

  /// Ends the thread after the work that is left, and waits for it. Called on
  /// the thread itself, it leaves the waiting to the end of the program. Called
  /// once, or by the destructor.
  void finish();

  /// Calls `work` soon on the thread.
  void post(std::function<void()> work);

  /// Calls `work` after that time on the thread. Destroying the returned object
  /// on the thread cancels the call, even one that is due. Call it on the
  /// thread.
  std::shared_ptr<void> call_after(std::chrono::milliseconds delay,
                                   std::function<void()> work);

  boost::asio::io_context& context() noexcept;

private:
  struct core;
  class left_threads;

  static void run(core& shared);

  std::shared_ptr<core> core_;
  std::thread thread_;
};

} // namespace troupe::processes
