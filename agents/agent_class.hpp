// The classes of agents in agent files, and which fields each has.

#pragma once

#include "troupe/agents/agent_fields.hpp"

#include <cstdint>

namespace troupe {

enum class agent_class : std::uint8_t { llm, sequential, parallel, map, loop };

/// What the field `agent_class` says; an LLM agent without it.
result<agent_class> read_class(const field_reader& fields);

/// Fails on a field that the class does not have, and lists those that it has.
result<void> check_fields(const field_reader& fields, agent_class kind);

} // namespace troupe
