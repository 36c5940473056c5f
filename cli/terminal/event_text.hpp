// An event as text for people.

#pragma once

#include "troupe/core/event.hpp"

#include <string>

namespace troupe::cli {

/// Lines that end in a newline: `author: text`, and a short line for each tool
/// call, tool result, source of the answer, failure and state change. Long
/// values are cut; the wire form has them in full.
std::string show(const event& said);

/// The first part of `show`: the words.
std::string show_words(const event& said);

/// The second part: a line for a blocked or failed answer, else nothing.
std::string show_failure(const event& said);

/// The last part: calls, results, sources and changes.
std::string show_work(const event& said);

} // namespace troupe::cli
