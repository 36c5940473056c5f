// One entry of a session's history: who said or did what, and what it does to
// state.
//
// A plain value while it is built; once appended it is an `event_ptr` that
// never changes.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/delta.hpp"
#include "troupe/core/scope_state.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Wall-clock time. The epoch itself stands for "not set".
using timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Float seconds, as on ADK's wire.
double to_seconds(timestamp time) noexcept;

/// What an event does besides being said. Field names follow ADK's
/// `EventActions`.
struct event_actions {
  event_actions() = default;

  delta state_delta;
  /// File name to version.
  std::map<std::string, std::int64_t> artifact_delta;
  std::string transfer_to_agent;
  bool escalate = false;
  bool skip_summarization = false;
  /// The other fields of the wire form (`requestedAuthConfigs`,
  /// `requestedToolConfirmations`, `compaction`, `endOfAgent`, `agentState`,
  /// `rewindBeforeInvocationId`, `route`, …) as an object, or null.
  value extra;

  friend bool operator==(const event_actions&, const event_actions&) = default;
};

/// Whether they do anything at all.
bool has_effect(const event_actions& actions) noexcept;

struct event {
  event() = default;

  /// An event that says `said`; author and ids are filled in by whoever emits
  /// or appends it.
  event(troupe::content said) : content(std::move(said)) {}

  std::string id;
  std::string invocation_id;
  /// `"user"`, `"system"`, or the agent's name.
  std::string author;
  /// Dot-separated path of parallel lanes, or empty.
  std::string branch;
  troupe::timestamp timestamp{};
  troupe::content content;
  event_actions actions;
  std::vector<std::string> long_running_tool_ids;
  /// One piece of a streamed answer: delivered, never stored.
  bool partial = false;
  /// All other fields of the wire form, known (`errorCode`, `errorMessage`,
  /// `finishReason`, `turnComplete`, `usageMetadata`, …) or not, by their
  /// camelCase names, as an object, or null.
  value extra;

  /// The text parts that are no thoughts, joined.
  std::string text() const { return content.text(); }

  /// The string field `name` among `extra`, or empty: `field("errorCode")`.
  std::string field(std::string_view name) const;

  friend bool operator==(const event&, const event&) = default;
};

/// An event that has been appended; shared and immutable.
using event_ptr = std::shared_ptr<const event>;

/// Whether the event ends its agent's turn (ADK's `is_final_response`).
bool is_final(const event& said);

/// Wire form of ADK, camelCase, empty fields left out but `actions`. Typed
/// operations go to `actions.stateOps`.
json to_json(const event& said);

/// Reads the wire form, camelCase or snake_case; unknown fields of the event
/// are kept, unknown fields of `actions` too. Timestamps: seconds, milliseconds
/// (above the year 9999 in seconds), or RFC 3339 text. Fails with
/// `errc::invalid_argument`, naming the field.
result<event> event_from_json(const json& data);

/// Checks what every event must satisfy whichever way it comes in: UTF-8,
/// finite numbers, depth, and sizes. Returns its size in bytes. Fails with
/// `errc::invalid_argument` or `errc::too_large`.
result<std::size_t> check_event(const event& said, const size_limits& limits);

} // namespace troupe
