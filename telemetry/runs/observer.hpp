// Makes spans, histograms and log records of runs from the hooks of a plugin.
//
// Stop callbacks of open work are destroyed without `mutex_`, as their
// destructor may wait for a callback that wants it.

#pragma once

#include "troupe/agents/tool.hpp"
#include "troupe/contexts/invocation_context.hpp"
#include "troupe/models/model.hpp"
#include "troupe/telemetry/options.hpp"
#include "troupe/telemetry/otlp/sender.hpp"
#include "troupe/telemetry/runs/agent_facts.hpp"
#include "troupe/telemetry/runs/open_runs.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

namespace troupe::telemetry {

/// Hears of all runs of the runtimes that have the plugin. Thread-safe.
class run_observer : public std::enable_shared_from_this<run_observer> {
public:
  /// `line` and `agents` outlive this object's last call but `stop`.
  run_observer(const options& chosen,
               sender& line,
               const agent_register& agents);

  /// Registers a runtime. Returns its number, the argument `of` of the hooks.
  std::size_t add_runtime();

  // The contexts are those that the runtime gives to plugins: of hooks around
  // runs, agents and models an `invocation_context`.

  // Hooks that begin work set the span of the context (`set_trace`) for the
  // requests of that work, if spans are made.

  void begin_run(std::size_t of, callback_context& context);
  void end_run(const callback_context& context);
  void fail_run(const readonly_context& context, const error& why);

  void begin_agent(std::size_t of, callback_context& context);
  void end_agent(const callback_context& context);
  void fail_agent(const readonly_context& context, const error& why);
  /// Ends the cancelled agents of this name: they have no other hook.
  void leave_agent(std::string_view name);

  /// Sets the span of the request, too.
  void
  begin_model(std::size_t of, callback_context& context, model_request& asked);
  void end_model(const callback_context& context, const model_response& answer);
  void fail_model(const callback_context& context, const error& why);

  void begin_tool(std::size_t of,
                  const tool& which,
                  const json& args,
                  tool_context& context);
  void end_tool(const tool_context& context, const json& answer);
  void fail_tool(const tool_context& context, const error& why);

  /// Hears of an event that is about to be committed.
  void hear(const event& said);
  /// Hears that the event was committed.
  void end_append(const event& said);

  /// Ends all that is open in one runtime.
  void end_all(std::size_t of);

  /// Makes no more records. `line` and `agents` are not used afterwards.
  void stop();

private:
  // These require that `mutex_` is not held.

  /// Follows the stops of a run, once, and of agents that were added to it.
  void follow_stops(const run_ptr& run,
                    const invocation_context& context,
                    const added_agents& added);
  void follow_stop(const run_ptr& run, const std::stop_token& token);
  void follow_stop(const run_ptr& run,
                   const agent_ptr& agent,
                   const std::stop_token& token);

  const bool has_spans_;
  const bool has_logs_;
  const bool spans_have_contents_;
  const bool logs_have_contents_;
  const std::shared_ptr<environment> environment_;
  sender& line_;
  const agent_register& agents_;

  mutable std::mutex mutex_;
  open_runs table_;
  std::size_t runtimes_ = 0;
};

} // namespace troupe::telemetry
