// The events that the processes of a durability test append. Each event is a
// function of the seed and its name, so a checker can compute it.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include "ledger.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::testing {

inline constexpr const char* work_app = "press";

struct work_plan {
  std::uint64_t seed = 1;
  std::uint32_t sessions = 6;
  std::uint32_t users = 2;
};

/// The changes of one event in one scope; keys are without prefix.
struct scope_job {
  /// Added to `total`. Every touched scope also has `seen` set to the event's
  /// id.
  int added = 0;
  /// The key of a list that gets the id appended; empty: none.
  std::string list;
};

struct job {
  job_name name;
  std::uint32_t session = 0; ///< The number of its session.
  /// Indexed by `scope`: session (always present), user, app.
  std::array<std::optional<scope_job>, 3> scopes;
  /// Session keys that are set, or erased where null.
  json sets = json::object();
};

job job_of(const work_plan& plan, const job_name& name);

/// The event as it is sent.
event event_of(const job& wanted);

session_key session_of(const work_plan& plan, std::uint32_t number);

/// The initial state of a session: `born` in each scope, under keys of its own.
json birth_of(std::uint32_t number);

} // namespace troupe::testing
