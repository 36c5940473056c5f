// Applies events to a copy of the state, before they are stored.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/support/scope_state.hpp"

namespace troupe::cli {

/// The state of one session, its user and its app. A value.
class state_rehearsal {
public:
  /// Starts with the keys of a user and an app, without prefixes.
  state_rehearsal(const json& user, const json& app);

  /// Applies the operations in all scopes. Fails like an append.
  result<void> apply(const delta& changes);

  /// All scopes merged, with prefixes.
  json state() const;

private:
  scope_state& at(scope where);

  scope_state session_;
  scope_state user_;
  scope_state app_;
};

} // namespace troupe::cli
