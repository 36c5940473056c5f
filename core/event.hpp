// One entry of a session's history: a message or action with its author and its
// effect on state.
//
// An event is a plain value while it is built. Once appended it is an
// `event_ptr` and never changes.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/delta.hpp"
#include "troupe/core/json.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Wall-clock time. The epoch means "not set".
using timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Converts to seconds as a floating number, as on ADK's wire.
double to_seconds(timestamp time) noexcept;

/// A typed operation on a `user:` or `app:` key as the owner applied it, with
/// the data that undoing it needs. The outcome is in the event's delta.
struct applied_operation {
  /// The operation.
  operation_kind kind = operation_kind::add;
  /// Scope of the key: `user` or `app`.
  scope where = scope::app;
  /// Key without prefix.
  std::string name;
  /// Of `add` the number; of `append` and `add_to_set` a list of the elements
  /// that the value got; of `merge` a list of the top-level keys that it got.
  /// Null for others.
  value operand;
  /// Of `min`, `max` and `compare_and_set` the value before, null if there was
  /// none; of `merge` the values before of top-level keys; of `append` and
  /// `add_to_set` a list of the elements that a rewind took out, or null.
  value former;

  friend bool operator==(const applied_operation&, const applied_operation&)
    = default;
};

/// The effects of an event. Field names follow ADK's `EventActions`.
struct event_actions {
  event_actions() = default;

  /// Changes of state.
  delta state_delta;
  /// The typed operations on `user:` and `app:` keys that the owners applied,
  /// so that a rewind can undo them (`actions.appliedOps` on the wire). The
  /// append sets it, and ignores that of the caller.
  std::vector<applied_operation> applied;
  /// Version by file name.
  std::map<std::string, std::int64_t> artifact_delta;
  /// Name of the agent that takes over; empty for none.
  std::string transfer_to_agent;
  /// True ends all enclosing loops.
  bool escalate = false;
  /// True makes the tool's result the agent's answer: the model is not asked
  /// again.
  bool skip_summarization = false;
  /// All other fields of the wire form (`requestedAuthConfigs`,
  /// `requestedToolConfirmations`, `compaction`, `endOfAgent`, `agentState`,
  /// `rewindBeforeInvocationId`, `route`, …) as an object, or null.
  value extra;

  friend bool operator==(const event_actions&, const event_actions&) = default;
};

/// Returns true if any field is set.
bool has_effect(const event_actions& actions) noexcept;

/// One entry of a session's history, as a plain value.
struct event {
  event() = default;

  /// Makes an event with content. The function that emits or appends it fills
  /// in author and ids.
  event(troupe::content said) : content(std::move(said)) {}

  /// Id for the detection of retries. The append replaces an empty id by a new
  /// UUID v4.
  std::string id;
  /// Id of the run that made the event. The append replaces an empty id by a
  /// new one, `"e-UUID"`.
  std::string invocation_id;
  /// `"user"`, `"system"`, or the agent's name.
  std::string author;
  /// Dot-separated path of parallel lanes; may be empty.
  std::string branch;
  /// Time of the event. The append replaces an unset time by the current time.
  troupe::timestamp timestamp{};
  /// The message; empty for an event that only has actions.
  troupe::content content;
  /// Effects of the event on state and on the run.
  event_actions actions;
  /// Ids of those calls in `content` that may be answered later.
  std::vector<std::string> long_running_tool_ids;
  /// True for one piece of a streamed answer, which is delivered and never
  /// stored.
  bool partial = false;
  /// All other fields of the wire form, known (`errorCode`, `errorMessage`,
  /// `finishReason`, `turnComplete`, `usageMetadata`, …) or not, by their
  /// camelCase names, as an object or null.
  value extra;

  /// Joins the text parts, except thoughts.
  std::string text() const { return content.text(); }

  /// Returns the string field `name` of `extra`, for example
  /// `field("errorCode")`; empty if it is absent.
  std::string field(std::string_view name) const;

  friend bool operator==(const event&, const event&) = default;
};

/// An appended event; shared and immutable. Copies cost O(1) and keep the
/// event alive.
using event_ptr = std::shared_ptr<const event>;

/// Returns true if the event ends its agent's turn (ADK's `is_final_response`).
bool is_final(const event& said);

/// Returns ADK's wire form in camelCase. Empty fields are left out, except
/// `actions`. Typed operations go to `actions.stateOps`.
json to_json(const event& said);

/// Parses the wire form, camelCase or snake_case. Unknown fields of the event
/// and of `actions` are kept. A timestamp is in seconds, in milliseconds (above
/// the year 9999 in seconds), or RFC 3339 text. Fails with
/// `errc::invalid_argument`, naming the field.
result<event> event_from_json(json data);

/// Checks the rules for every event: UTF-8, finite numbers, depth, and sizes.
/// Returns the size in bytes. Fails with `errc::invalid_argument` or
/// `errc::too_large`.
result<std::size_t> check_event(const event& said, const size_limits& limits);

} // namespace troupe
