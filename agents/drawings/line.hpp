// Text of agent files and servers as one short line of a drawing.

#pragma once

#include "troupe/agents/drawings/diagram.hpp"
#include "troupe/core/event.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::drawings {

/// Returns the first `characters_max` characters of a text in one line, with
/// "…" behind them if there are more. White space becomes one blank. A
/// character that a terminal obeys or does not show becomes its number, such as
/// `\u202e`, and a byte that is not UTF-8 such as `\xff`.
std::string line_of(std::string_view text, std::size_t characters_max);

/// Returns a time, rounded up, such as "2026-11-28 07:30:05 UTC".
std::string time_words(timestamp at);

/// Returns the words of a relation, such as "hands over to".
std::string_view to_string(relation how) noexcept;

/// Returns the route of an edge in words: "on LABEL", "by default", or its
/// label; empty if it has none.
std::string words_of(const edge& shown, flow order);

} // namespace troupe::drawings
