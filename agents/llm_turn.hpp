// The pure halves of an LLM agent's turn: what the model is asked, and what its
// answer means.

#pragma once

#include "troupe/agents/agent.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// The history that an agent on `branch` shows to its model, oldest first.
///
/// Events of the branch itself and of its ancestors are visible, by segments;
/// what other agents said becomes user text that names them; their thoughts are
/// left out. Function responses, the newest of each call, stand right behind
/// their calls; a call without one gets one that says why, so that no history
/// is unfit for a model. Costs as much as what is visible has. Follows ADK's
/// contents rules.
///
/// `first_revision` is the number of the first of `events` in its session. With
/// more before them, they are shown from the first on that is not the agent's
/// own, so that the conversation does not begin with an answer.
std::vector<std::shared_ptr<const content>>
visible_contents(const event_slice& events,
                 std::string_view agent_name,
                 std::string_view branch,
                 include_contents which,
                 std::uint64_t first_revision = 1);

/// The instruction after substitution, or from its provider. Throws
/// `errc::template_error`, `errc::callback_failed`, or what reading an artifact
/// failed with.
task<std::string> resolve_instruction(const instruction& source,
                                      const readonly_context& context);

/// The system instruction, from the root's global instruction, the static one
/// (`fixed`) and the agent's own, as far as they are not empty. Beside a static
/// one the agent's own goes into `contents` instead. `hint` comes last.
std::string
assemble_instruction(const std::string& global,
                     const std::string& fixed,
                     std::string own,
                     std::string_view hint,
                     std::vector<std::shared_ptr<const content>>& contents);

/// The event of a model's answer. Calls get ids from `environment`: those of
/// models need not be unique in a session, in which agents ask side by side,
/// also from several programs. A format that has to give them back remembers
/// them (models/part_marks.hpp). A final answer with text puts that text, or
/// its value, under `output_key`. One without any parts says so by `errorCode`.
/// Fails with `errc::model_failed` if it does not fit the `output_schema`.
result<event> make_response_event(const llm_options& options,
                                  model_response response,
                                  environment& environment);

/// The one event that answers the calls of a turn, in call order, with their
/// deltas and actions merged in that order. Those that are pending have no
/// response in it.
event make_tool_event(std::vector<tool_call> answered);

} // namespace troupe
