// Agents in mode `task` or `single_turn`: the tools that stand for them in
// their parent, the branches on which they run, and the tasks that are open.
//
// Open tasks are found in the session's events alone, so another process can
// continue them. A task is open from the event of its call until its parent has
// answered this call. Only the events of the current user turn count
// (`user_turn_start`): while a task is open, each message of the user belongs
// to it. Callers give live events (`event_slice::live`), so a rewind can open a
// task again.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/contexts/lanes/isolation.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/event_log.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Name of the tool by which an agent in mode `task` ends its task.
inline constexpr std::string_view finish_task_name = "finish_task";

// -- descriptions -------------------------------------------------------------

/// The mode of an agent; `chat` if it is no LLM agent.
agent_mode mode_of(const agent& which) noexcept;

/// Returns true for the modes `task` and `single_turn`.
bool is_delegated(const agent& which) noexcept;

/// Names of the agents in mode `task` in the list and below it.
std::vector<std::string> task_names_in(const std::vector<agent>& agents);

/// Schema of the arguments of an agent that is called: its `input_schema` (of a
/// workflow, that of its first sub-agent), or else `{"request": string}`.
json agent_parameters(const agent& which);

/// The tool of the parent that stands for a delegated agent. A call of a task
/// has no result yet (`is_pending`). Throws `errc::invalid_argument` for an
/// `input_schema` that describes no object.
tool delegation_tool(const agent& which);

/// The tool by which the agent of `options` ends its task. Its parameters are
/// those of the `output_schema`; of a schema that describes no object they are
/// `{"result": …}`, and without a schema `{"result": string}`.
tool finish_task_tool(const llm_options& options);

/// The part of the system instruction about that tool.
std::string finish_task_hint();

// -- events of delegated agents -----------------------------------------------

/// The branch of an agent that was called: `above.NAME@CALL`.
std::string delegation_branch(const std::string& above,
                              const std::string& name,
                              const std::string& call_id);

/// Id of the call that an agent on this branch works for; empty if it is no
/// delegated agent.
std::string_view call_of_branch(std::string_view branch) noexcept;

/// Returns true if an agent on branch `viewer` does not see the event: it
/// belongs to a delegated agent, or to the conversation around one.
bool is_isolated(const event& said, std::string_view viewer);

/// The first content of a delegated agent: the arguments of its call as JSON,
/// with a note if the user will not answer. Unset if `events` do not have the
/// call.
std::optional<content> request_of_call(const event_slice& events,
                                       std::string_view call_id,
                                       agent_mode mode);

/// Returns true if the event ends the task that it belongs to.
bool ends_task(const event& said);

/// The arguments with which the task of call `call_id` has ended; unset if it
/// has not.
std::optional<json> end_of_task(const event_slice& events,
                                std::string_view call_id);

/// The response to the call of a task that has ended with `args`. An output
/// that is no object becomes `{"output": …}`.
json response_of_task(const llm_options& options, json args);

// -- open tasks ---------------------------------------------------------------

/// Returns true for a message of the user that belongs to no task, and does not
/// only answer calls.
bool starts_user_turn(const event& said);

/// Index of the newest event before event number `message` that starts a user
/// turn; 0 if there is none. A `message` of 0 stands for the next event.
std::size_t user_turn_start(const event_slice& events, std::uint64_t message);

/// The calls by agent `name` on `branch` to `tasks`, in their order, that have
/// no response. `message` is the number of the run's message.
std::vector<function_call> open_tasks(const event_slice& events,
                                      std::string_view name,
                                      std::string_view branch,
                                      const std::vector<std::string>& tasks,
                                      std::uint64_t message);

/// Id of the call of the task that the next message of the user belongs to: the
/// innermost task that is open and has not ended. Empty if there is none.
std::string open_task(const event_slice& events,
                      const std::vector<std::string>& tasks);

/// The scope of a message of the user: that of the call which it answers, or
/// else the open task. Empty if there is none.
std::string scope_of_message(const content& message,
                             const event_slice& events,
                             const std::vector<std::string>& tasks);

/// Fails with `errc::conflict` if the message answers a call of a delegated
/// agent that cannot take the answer: its task has ended, or it has no task.
result<void> check_delegated(const content& message,
                             const event_slice& events,
                             const std::vector<std::string>& tasks);

/// The task that event number `number` belongs to; empty for none, or if
/// `events` do not have the event.
std::string scope_of_number(const event_slice& events, std::uint64_t number);

/// Returns true if `scope` is the task of call `call_id`, or a task below it.
bool is_in_task(const event_slice& events,
                std::string scope,
                std::string_view call_id);

/// Author of the outermost call around `scope`: the agent that continues. Empty
/// if `events` do not have the calls.
std::string outermost_caller(const event_slice& events, std::string scope);

} // namespace troupe
