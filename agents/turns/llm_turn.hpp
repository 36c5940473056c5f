// The pure parts of an LLM agent's turn: the instruction of the model request,
// and the events of its answers.

#pragma once

#include "troupe/agents/agent.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The text of the instruction: the template with its placeholders replaced, or
/// the result of the provider. Throws `errc::template_error`,
/// `errc::callback_failed`, or the failure of reading an artifact.
task<std::string> resolve_instruction(const instruction& source,
                                      const readonly_context& context);

/// The sentences that tell an agent its name and its description. Empty in mode
/// `single_turn`.
std::string identity_of(const llm_options& options);

/// The system instruction, in the order of ADK: the root's global instruction,
/// the static one of `options` or the agent's own, its name and description
/// (unless its mode is `single_turn`), and `hints`, as far as they are not
/// empty. An empty line stands between them. With a static instruction, the
/// agent's own goes into `contents` instead, with a label (fence.hpp). The
/// static contents go to the front of `contents`.
std::string
assemble_instruction(const llm_options& options,
                     const std::string& global,
                     std::string own,
                     const std::vector<std::string>& hints,
                     std::vector<std::shared_ptr<const content>>& contents);

/// The event of a model's answer.
///
/// Calls get new ids from `environment`: the models' own ids may repeat within
/// a session, in which several agents and processes ask at the same time. A
/// format that must return the original ids remembers them
/// (models/wire/part_marks.hpp). The text of a final answer, or its JSON
/// value, is stored under `output_key`, unless the mode is `task`. An answer
/// without parts gets an `errorCode`. Fails with `errc::model_failed` if the
/// answer does not fit the `output_schema`.
result<event> make_response_event(const llm_options& options,
                                  model_response response,
                                  environment& environment);

/// The one event that answers the calls of a turn, in call order. Their deltas
/// and actions are merged in that order. Attached media are the `parts` of
/// their response. Pending calls get no response.
event make_tool_event(std::vector<tool_call> answered);

} // namespace troupe
