// What events will make of the state, found out before anything is stored.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/scope_state.hpp"

namespace troupe::cli {

/// The state of one session, of its user and of its app. A value.
class state_rehearsal {
public:
  /// With the keys of a user and an app as they are, without prefix.
  state_rehearsal(const json& user, const json& app);

  /// Does what the operations say, in all scopes. Fails like an append.
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
