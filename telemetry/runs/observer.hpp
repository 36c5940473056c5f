// Makes spans, histograms and log records of runs from the hooks of a plugin.
//
// Invariants. An agent is known by its place in its run (`invocation_context::
// place`), which no other agent of the run has. Work that ends without a hook
// (an agent that pauses or that a callback answers, a call that was given up)
// ends with the agent or the run above it. Stop callbacks of open work are
// destroyed without `mutex_`, as their destructor may wait for a callback that
// wants it.

#pragma once

#include "troupe/agents/tool.hpp"
#include "troupe/contexts/invocation_context.hpp"
#include "troupe/models/model.hpp"
#include "troupe/telemetry/options.hpp"
#include "troupe/telemetry/otlp/sender.hpp"
#include "troupe/telemetry/runs/agent_facts.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::telemetry {

/// Hears of all runs of the runtimes that have the plugin. Thread-safe.
class run_observer : public std::enable_shared_from_this<run_observer> {
public:
  /// Limit of runs that are open at the same time. Further ones are not
  /// observed.
  static constexpr std::size_t runs_max = 100'000;

  /// `line` and `agents` outlive this object's last call but `stop`.
  run_observer(const options& chosen,
               sender& line,
               const agent_register& agents);

  /// Returns a number for one more runtime, which its runs name as `of`.
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

  /// Ends all that is open in one runtime.
  void end_all(std::size_t of);

  /// Makes no more records. `line` and `agents` are not used afterwards.
  void stop();

private:
  using on_stop = std::stop_callback<std::function<void()>>;

  /// A call of a model.
  struct open_model {
    span made;
    std::string name;
    std::string provider;
    /// JSON text; empty without capture.
    std::string instructions;
    std::string inputs;
  };

  struct open_agent {
    std::string place;
    std::string above; // Place of the caller; empty for the run.
    std::string name;
    std::string branch;
    bool is_workflow = false;
    span made;
    nanoseconds_since_1970 last_heard = 0;
    nanoseconds_since_1970 stopped = 0; // Time of the cancellation, or 0.
    std::size_t model_calls = 0;
    std::size_t tool_calls = 0;
    std::optional<open_model> asked;
    bool has_answer = false; // Its model has answered; no event tells it yet.
    std::optional<on_stop> stop;
  };

  struct open_tool {
    span made;
    std::string owner; // Place of the agent.
    std::string tool;
    std::string agent;
  };

  struct open_run {
    std::size_t of = 0; // The runtime.
    std::string id;
    std::string app;
    std::string session;
    std::string root;
    span made;
    bool is_sampled = true;
    std::string trace_state; // `tracestate`, passed on as it came.
    nanoseconds_since_1970 last_heard = 0;
    nanoseconds_since_1970 stopped = 0; // Time of the cancellation, or 0.
    std::map<std::string, std::shared_ptr<open_agent>> agents; // By place.
    std::map<std::string, open_tool> tools;                    // By call.
    std::map<std::string, std::string> owners; // Place of the agent, by call.
    bool is_followed = false;                  // Set before `stop`.
    std::optional<on_stop> stop;
  };

  using run_ptr = std::shared_ptr<open_run>;
  using agent_ptr = std::shared_ptr<open_agent>;

  /// Keeps ended work until the lock is released.
  struct ended_work {
    std::vector<run_ptr> runs;
    std::vector<agent_ptr> agents;
  };

  /// Agents, each with the stop token of its lane.
  using added_agents = std::vector<std::pair<agent_ptr, std::stop_token>>;

  // All of the following require `mutex_`, but for those that follow stops.

  /// Follows the stops of a run, once, and of agents that were added to it.
  void follow_stops(const run_ptr& run,
                    const invocation_context& context,
                    const added_agents& added);
  void follow_stop(const run_ptr& run, const std::stop_token& token);
  void follow_stop(const run_ptr& run,
                   const agent_ptr& agent,
                   const std::stop_token& token);

  nanoseconds_since_1970 now() const;
  span_id new_span_id() const;
  run_ptr find_run(const readonly_context& context) const;
  /// Returns null if there are too many.
  run_ptr open(std::size_t of, const callback_context& context);
  /// Returns the agent of the context, which is added if it is not known.
  /// `added` gets those that were added. Null: the context is not of an agent.
  agent_ptr
  open(open_run& run, const invocation_context& context, added_agents& added);
  /// Returns the span above an agent.
  span_id parent_of(const open_run& run,
                    const invocation_context& context,
                    const open_agent* above) const;
  /// Returns the headers of requests below a span.
  trace_context cause_of(const open_run& run, const span_id& above) const;
  void give(const open_run& run, span made);
  void end_model_call(const open_run& run,
                      open_agent& from,
                      nanoseconds_since_1970 at,
                      const error& why);
  void end(open_run& run,
           const std::string& place,
           nanoseconds_since_1970 at,
           const error* why,
           ended_work& ended);
  void end(open_run& run,
           const std::string& call,
           open_tool& done,
           nanoseconds_since_1970 at,
           const error* why);
  void end(const run_ptr& run,
           nanoseconds_since_1970 at,
           const error* why,
           ended_work& ended);
  void forget_stopped(const agent_ptr& agent);
  open_agent* speaker_of(open_run& run, const event& said) const;

  const bool has_spans_;
  const bool has_logs_;
  const bool spans_have_contents_;
  const bool logs_have_contents_;
  const double sampled_;
  const bool follows_parent_;
  const std::shared_ptr<environment> environment_;
  sender& line_;
  const agent_register& agents_;

  mutable std::mutex mutex_;
  std::map<std::string, run_ptr> runs_; // By invocation id.
  std::size_t runtimes_ = 0;
  /// Cancelled agents that are open, by name, with their runs.
  std::
    map<std::string, std::map<agent_ptr, std::weak_ptr<open_run>>, std::less<>>
      stopped_agents_;
  bool is_over_ = false;
};

} // namespace troupe::telemetry
