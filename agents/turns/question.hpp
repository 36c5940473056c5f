// The questions that nodes of workflows ask the user, and the answers.
// Internal.

#pragma once

#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/json.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Returns the id of a question: `number` counts those of the visit with the id
/// `visit` (`visit_id`) from 1.
std::string question_id(std::string_view visit, std::uint64_t number);

/// Makes the call by which a node asks the user (`request_input_name`).
function_call
make_question(std::string id, std::string message, json schema, json payload);

/// Reads the answer in the response to a question with the arguments `args`.
/// Fails with `errc::invalid_argument` if it does not fit the schema there (the
/// message names the first differences), or if the schema is invalid.
///
/// An object with only a field `result` stands for the value of this field, and
/// one with only a text `response` for this text. If the answer does not fit,
/// but is a text with JSON that does, it is this JSON.
result<json> read_answer(const json& args, const json& response);

/// An agent on its branch.
struct branch_agent {
  std::string_view name;
  std::string_view branch;
};

/// Returns the newest response to the call `id` by the user, or by `also`, if
/// it is set; null if there is none. Responses of the user that started a run
/// which has failed do not count. Looks at the events from index `from` on.
const function_response* find_response(const event_slice& events,
                                       std::string_view id,
                                       std::size_t from = 0,
                                       const std::optional<branch_agent>& also
                                       = {});

/// Returns the answer to `asked`; unset if it is not asked, not answered, or
/// the stored answer does not fit the schema. Fails with `errc::conflict` if
/// `events` have another question of this id.
result<std::optional<json>> find_answer(const event_slice& events,
                                        const function_call& asked);

} // namespace troupe
