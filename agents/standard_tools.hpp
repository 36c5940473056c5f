// Tools of ADK that need no vendor: get_user_choice, load_artifacts,
// load_memory, preload_memory, and exit_loop.
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

/// Makes the tool `load_memory`, with the parameter `query`, a text: it
/// searches the memory of the user (docs/memory.md). The answer is
/// `{"memories":
/// [{"content", "id", "author", "timestamp"}]}`, the best first, at most 10.
/// Each request tells the model of the tool. In a runtime without a memory
/// service a call fails with `errc::invalid_argument`.
tool load_memory();

/// Makes the tool `preload_memory`, which the model cannot call. Before each
/// request it searches the memory of the user with the text of the message that
/// started the run. It shows at most 10 memories to the model, as a message
/// before the last one, or behind the answers of tools; the session does not
/// keep them. A runtime without a memory service fails the agent with
/// `errc::invalid_argument`, and a failed search with its error.
tool preload_memory();

/// Returns these tools and `exit_loop`, as `troupe run` knows them.
std::vector<tool> standard_tools();

} // namespace troupe
