// Access tokens that a program prints. Internal.
//
// The program runs on a thread of its own, so no model call blocks a thread.
// Calls that need a token while it runs wait for the same one.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/event.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace troupe {

/// Gives the token of a program, and keeps it until it is old or refused.
/// Thread-safe.
class token_command {
public:
  using receiver = std::function<void(result<std::string> token)>;
  /// Prints a token. May block; ends early with `errc::cancelled` when the stop
  /// is requested.
  using printer = std::function<result<std::string>(const std::stop_token&)>;

  /// Google's tokens live for an hour.
  static constexpr std::chrono::minutes lifetime{45};

  explicit token_command(printer prints);
  /// Stops the program and waits for its end. Receivers that wait get
  /// `errc::cancelled`.
  ~token_command();
  token_command(const token_command&) = delete;
  token_command& operator=(const token_command&) = delete;

  /// Passes a token to `receive`: at once the one that is kept, if it is
  /// younger than `lifetime` at `now`; otherwise later a new one, on a thread
  /// of this object. Fails as the program does, and with `errc::model_failed`
  /// if its output is not one word. `receive` must not throw.
  void ask(timestamp now, receiver receive);

  /// Drops the token if it is the one that is kept. The next `ask` runs the
  /// program again.
  void refuse(const std::string& token);

private:
  struct shared;

  void start();
  static void run(const std::shared_ptr<shared>& with);

  const std::shared_ptr<shared> shared_;
};

} // namespace troupe
