// Calls that wait for an answer from outside, as text, and the answers of the
// command line.

#pragma once

#include "troupe/agents/open_call.hpp"
#include "troupe/core/key.hpp"
#include "troupe/runtime/runtime.hpp"

#include <string>
#include <vector>

namespace troupe::cli {

/// The word, quoted for a shell.
std::string quoted(const std::string& word);

/// The question of an open call, on one line.
std::string question_of(const open_call& open);

/// An answer to the call `call_id`; `response` is an object.
struct given_answer {
  std::string call_id;
  json response;
};

/// One message with all answers.
result<content> make_answers(runtime& owners,
                             const session_key& session,
                             const std::vector<given_answer>& given);

} // namespace troupe::cli
