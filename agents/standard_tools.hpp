// Tools of ADK that need no vendor: get_user_choice, load_artifacts, and
// exit_loop.
//
//   auto reader = troupe::llm(
//     {.name = "reader", …, .tools = {troupe::load_artifacts()}});

#pragma once

#include "troupe/agents/tool.hpp"

#include <vector>

namespace troupe {

/// Makes the long-running tool `get_user_choice`, with the parameter `options`,
/// a list of texts. The run pauses; the answer to the call is the choice of the
/// user.
tool get_user_choice();

/// Makes the tool `load_artifacts`, with the parameter `artifact_names`, a list
/// of texts. The model is told the names of the artifacts of the session and
/// its user with each request. After a call it sees the named ones, in the next
/// request only: the session keeps the names alone, so each one that is needed
/// later has to be loaded again. Images, audio, video and PDF are shown as they
/// are, other bytes as text if they are UTF-8, or else by type and size. A
/// runtime without an artifact store fails the agent with
/// `errc::invalid_argument`.
tool load_artifacts();

/// Returns these tools and `exit_loop`, as `troupe run` knows them.
std::vector<tool> standard_tools();

} // namespace troupe
