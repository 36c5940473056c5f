// One memory: a message that a user and the agents can find in later sessions.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"

#include <string>
#include <utility>

namespace troupe {

/// One message that is remembered.
struct memory_entry {
  memory_entry() = default;

  /// Makes a memory of its content, for `memory_service::add`.
  explicit memory_entry(troupe::content said) : content(std::move(said)) {}

  /// Id of the session that the message is from; empty for a memory that was
  /// added by itself.
  std::string session;
  /// Id of the event; together with `session` unique for the user.
  std::string id;
  /// `"user"`, or the name of the agent; may be empty.
  std::string author;
  /// Time of the event.
  troupe::timestamp timestamp{};
  /// Role and texts of the message. Thoughts, calls and media are left out.
  troupe::content content;

  friend bool operator==(const memory_entry&, const memory_entry&) = default;
};

/// Returns the form of ADK's `MemoryEntry`: `{"content": {"role", "parts"},
/// "id": string, "author": string, "timestamp": string}`. An empty author is
/// left out. The time is RFC 3339 in UTC, to the second.
json to_json(const memory_entry& entry);

/// Returns the time of the entry as RFC 3339 in UTC, to the second, for example
/// `"2026-11-27T09:10:03Z"`.
std::string time_text(const memory_entry& entry);

} // namespace troupe
