// The names of agents and tools.

#pragma once

#include <string_view>

namespace troupe {

/// `[A-Za-z_][A-Za-z0-9_]*`, bytes from 0x80 up counting as letters if they are
/// UTF-8; at most 256 bytes.
bool is_identifier(std::string_view name) noexcept;

} // namespace troupe
