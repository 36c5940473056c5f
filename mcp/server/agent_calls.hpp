// The calls of a client that are under way. Each has a thread of its own, which
// runs the agent and writes the answer.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/key.hpp"
#include "troupe/mcp/mcp_server.hpp"
#include "troupe/mcp/server/line_writer.hpp"
#include "troupe/mcp/server/offered_agent.hpp"
#include "troupe/runtime/run.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace troupe::mcp {

/// A request `tools/call` whose form has been checked.
struct call_request {
  json id;
  /// Null: the client wants no progress.
  json progress_token;
  agent_request asked;
  /// Fields that the version of the protocol adds to a result.
  json version_fields;
};

/// Thread-safe but for destruction.
class agent_calls {
public:
  /// All arguments outlive this.
  agent_calls(runtime& on,
              const offered_agent& offered,
              const mcp_server_options& options,
              line_writer& output);

  /// Cancels all calls and waits for their ends.
  ~agent_calls();
  agent_calls(const agent_calls&) = delete;
  agent_calls& operator=(const agent_calls&) = delete;

  /// Returns true if a call with this id is under way.
  bool knows(const json& id) const;

  /// Starts a call, whose id is not known. Fails with `errc::busy` if too many
  /// calls are under way.
  result<void> start(call_request request);

  /// Cancels a call, which then is not answered. Does nothing if it is not
  /// under way.
  void cancel(const json& id);

  /// Cancels all calls. They are answered with a failure.
  void cancel_all();

  /// Waits until all calls have ended, the time has come, or a stop was
  /// requested.
  void wait(std::chrono::steady_clock::time_point until,
            const std::stop_token& stop);

private:
  enum class ending : std::uint8_t { normal, by_client, by_server };

  struct call {
    call_request request;
    troupe::run* running = nullptr; // Guarded by `mutex_`, as the next two.
    ending how = ending::normal;
    bool has_ended = false;
    std::thread thread;
  };

  class attached_run;

  void work(call& own);
  json result_of(call& own);
  result<session_key> open_session(const agent_request& asked);
  json run_on(call& own, const session_key& session);
  /// Returns true if the server has cancelled the call.
  bool is_stopped(const call& own) const;
  json waiting_result(const session_key& session);
  void tell_progress(const call& own, std::size_t count, const event& said);
  // Requires `mutex_`.
  static void stop(call& which, ending how);
  // Joins the threads of calls that have ended.
  void reap();

  runtime& on_;
  const offered_agent& offered_;
  const mcp_server_options& options_;
  line_writer& output_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<std::unique_ptr<call>> calls_; // Guarded by `mutex_`.
};

} // namespace troupe::mcp
