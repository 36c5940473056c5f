// Reads the options of an agent from the fields of an agent file.
//
// Name, model, tools and sub-agents are not among them: they depend on the rest
// of the tree.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/files/classes.hpp"

namespace troupe {

/// Reads the options that only agents of this class have. Fails with
/// `errc::invalid_argument`, naming file and line.
result<agent::body> read_options(const field_reader& fields,
                                 agent_class kind,
                                 const callback_registry& callbacks);

/// Fills in the options that agents of every class have. Fails as
/// `read_options` does.
result<void> read_common_options(const field_reader& fields,
                                 const callback_registry& callbacks,
                                 agent::body& body);

} // namespace troupe
