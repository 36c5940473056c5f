// Checks that a store holds every append that it acknowledged in a load test.
//
// The test knows its appends: each has an id of its own, and its changes follow
// from its number. So every acknowledged append must be stored once, complete
// and in order, every total must be exact, and the replay of a session's log
// must give its state.

#pragma once

#include "troupe/core/session.hpp"
#include "troupe/load/measuring/ledger.hpp"
#include "troupe/load/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::load {

/// Inspects sessions one after the other, then users and apps. Not thread-safe.
class inspection {
public:
  /// `plan` and `told` must outlive this.
  inspection(const workload& plan, const ledger& told);

  /// Inspects a session with all of its events.
  void look_at_session(std::size_t index, const session& held);

  /// Notes a missing session.
  void miss_session(std::size_t index);

  /// Inspects the state of a user, an object of keys without prefix. Call it
  /// after all sessions of the user.
  void look_at_user(std::size_t user, const json& state);
  /// Inspects the state of an app in the same way, after all of its sessions.
  void look_at_app(std::size_t app, const json& state);

  /// Returns the verdict. Call it once, when everything has been inspected.
  verdict finish();

private:
  // A user or an app: the sums in its events, and other expected keys.
  struct wide_scope {
    std::uint64_t count = 0;
    std::vector<bool> sums;
    json expected = json::object();
  };

  void note(std::uint64_t& count, std::string finding);
  void look_at_event(std::size_t index, const event& said);
  void look_at_change(std::size_t index,
                      const event& said,
                      const planned_append& planned,
                      scope where,
                      const json& changed);
  void look_at_wide(std::string what, wide_scope& told, const json& state);
  wide_scope& wide(scope where, std::size_t session);
  void replay_wide();

  const workload& plan_;
  const ledger& told_;
  verdict found_;
  std::vector<std::vector<bool>> seen_; // By caller and number.
  std::vector<std::uint64_t> newest_;   // By caller, in the current session.
  std::uint64_t session_count_ = 0;     // Of the current session.
  std::vector<wide_scope> users_;
  std::vector<wide_scope> apps_;
  std::uint64_t sent_ = 0; // Appends of all callers.
  bool is_replayed_ = false;
};

} // namespace troupe::load
