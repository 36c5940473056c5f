// The classes of agents in agent files, and the fields of each class.

#pragma once

#include "troupe/agents/files/fields.hpp"

#include <cstdint>

namespace troupe {

enum class agent_class : std::uint8_t {
  llm,
  sequential,
  parallel,
  map,
  loop,
  workflow,
};

/// Reads the field `agent_class`; without it, the class is `llm`.
result<agent_class> read_class(const field_reader& fields);

/// Fails on a field that the class does not have; the message lists its fields.
result<void> check_fields(const field_reader& fields, agent_class kind);

} // namespace troupe
