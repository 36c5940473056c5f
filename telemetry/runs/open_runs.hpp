// The table of open runs: their agents, calls of models and calls of tools,
// each with a span that has begun.
//
// Invariants. An agent is known by its place in its run (`invocation_context::
// place`), which no other agent of the run has. Work that ends without a hook
// (an agent that pauses or that a callback answers, a call that was given up)
// ends with the agent or the run above it.

#pragma once

#include "troupe/contexts/invocation_context.hpp"
#include "troupe/telemetry/options.hpp"
#include "troupe/telemetry/otlp/sender.hpp"
#include "troupe/telemetry/runs/agent_facts.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::telemetry {

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
  /// Begins of the appends that are under way, by author, branch and place.
  std::map<std::string, nanoseconds_since_1970> appends;
  bool is_followed = false; // Set before `stop`.
  std::optional<on_stop> stop;
};

using run_ptr = std::shared_ptr<open_run>;
using agent_ptr = std::shared_ptr<open_agent>;

/// Keeps ended work until a lock is released: the destructor of a stop callback
/// may wait for a callback that wants the lock.
struct ended_work {
  std::vector<run_ptr> runs;
  std::vector<agent_ptr> agents;
};

/// Agents, each with the stop token of its lane.
using added_agents = std::vector<std::pair<agent_ptr, std::stop_token>>;

/// The runs that have begun and not ended. Work that ends is measured, and its
/// span goes to the sender. Not thread-safe: its owner has a lock.
class open_runs {
public:
  /// Limit of runs that are open at the same time. Further ones are not opened.
  static constexpr std::size_t runs_max = 100'000;

  /// Cancelled agents, with their runs.
  using agents_in_runs = std::map<agent_ptr, std::weak_ptr<open_run>>;

  /// All that a closed table has had.
  struct left_work {
    std::map<std::string, run_ptr> runs;
    std::map<std::string, agents_in_runs, std::less<>> agents;
  };

  /// `line` and `agents` outlive the last call but `close`.
  open_runs(const options& chosen, sender& line, const agent_register& agents);

  nanoseconds_since_1970 now() const;
  span_id new_span_id() const;

  /// Returns the run with this invocation id; null if it is not open.
  run_ptr find(const std::string& id) const;
  /// Returns true if the run is open.
  bool has(const run_ptr& run) const;
  /// Returns true if the agent is open in the run.
  bool has(const open_run& run, const agent_ptr& agent) const;
  /// Returns the runs of a runtime.
  std::vector<run_ptr> of_runtime(std::size_t of) const;
  /// Returns the open agents of this name that `note_stop` was called with.
  std::vector<std::pair<run_ptr, agent_ptr>>
  stopped_agents(std::string_view name) const;
  /// Returns the agent that has made an event; null if none has.
  open_agent* speaker_of(open_run& run, const event& said) const;

  /// Returns the run of the context, which is added if it is not known, as one
  /// of the runtime `of`. Null: there are too many, or the table is closed.
  run_ptr open(std::size_t of, const callback_context& context);
  /// Returns the agent of the context, which is added if it is not known.
  /// `added` gets those that were added. Null: the context is not of an agent.
  agent_ptr
  open(open_run& run, const invocation_context& context, added_agents& added);

  /// Returns the headers of requests below a span.
  trace_context cause_of(const open_run& run, const span_id& above) const;
  /// Sends a span of the run, if its trace is sampled.
  void give(const open_run& run, span made);

  /// Notes the time at which an agent was cancelled, unless it has ended.
  void note_stop(const run_ptr& run, const agent_ptr& agent);

  // Each of these ends work, and the work below it that is open. `why` is the
  // reason of a failure, or null.

  void end_model_call(const open_run& run,
                      open_agent& from,
                      nanoseconds_since_1970 at,
                      const error& why);
  /// Ends the agent at a place.
  void end(open_run& run,
           const std::string& place,
           nanoseconds_since_1970 at,
           const error* why,
           ended_work& ended);
  /// Ends a call of a tool. The caller removes it.
  void end(open_run& run,
           const std::string& call,
           open_tool& done,
           nanoseconds_since_1970 at,
           const error* why);
  void end(const run_ptr& run,
           nanoseconds_since_1970 at,
           const error* why,
           ended_work& ended);

  /// Opens no more runs, and returns those that are left, which make no more
  /// records.
  left_work close();

private:
  /// Returns the span above an agent.
  span_id parent_of(const open_run& run,
                    const invocation_context& context,
                    const open_agent* above) const;
  void forget_stopped(const agent_ptr& agent);

  const double sampled_;
  const bool follows_parent_;
  const std::shared_ptr<environment> environment_;
  sender& line_;
  const agent_register& agents_;

  std::map<std::string, run_ptr> runs_; // By invocation id.
  /// Cancelled agents that are open, by name.
  std::map<std::string, agents_in_runs, std::less<>> stopped_agents_;
  bool is_closed_ = false;
};

} // namespace troupe::telemetry
