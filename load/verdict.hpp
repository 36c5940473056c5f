// Whether a store holds what a load test was told that it holds.
//
// The test knows what it sent: each append has an id of its own, and what it
// changes follows from its number. So every acknowledged append has to be there
// once, whole and in order, every total has to be exact, and the log of a
// session has to lead to its state.

#pragma once

#include "troupe/core/session.hpp"
#include "troupe/load/ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::load {

/// What was found, by kind.
struct verdict {
  std::uint64_t acknowledged = 0;
  /// Acknowledged, and not there.
  std::uint64_t lost = 0;
  /// There more than once.
  std::uint64_t doubled = 0;
  /// There, though they were refused, or of nobody.
  std::uint64_t ghosts = 0;
  /// Behind one that the same caller sent later.
  std::uint64_t reordered = 0;
  /// Not as they were sent: without all of their changes, or with others.
  std::uint64_t torn = 0;
  /// Totals and states that differ from what the logs say.
  std::uint64_t wrong_totals = 0;
  /// The first findings, in words.
  std::vector<std::string> findings;

  bool holds() const noexcept {
    return lost + doubled + ghosts + reordered + torn + wrong_totals == 0;
  }

  friend bool operator==(const verdict&, const verdict&) = default;
};

/// `"verdict: 1000 acknowledged, 0 lost, 0 doubled, order ok, totals ok"`.
std::string to_string(const verdict& found);

/// Looks at one session after the other, then at users and apps. Not
/// thread-safe.
class inspection {
public:
  /// Both outlive it.
  inspection(const workload& plan, const ledger& told);

  /// Takes a session with all of its events.
  void look_at_session(std::size_t index, const session& held);

  /// Takes note of one that is not there.
  void miss_session(std::size_t index);

  /// Take the states of a user and of an app, without prefixes; when all of
  /// their sessions have been looked at.
  void look_at_user(std::size_t user, const json& state);
  void look_at_app(std::size_t app, const json& state);

  /// When everything has been looked at.
  verdict finish();

private:
  // Of a user or an app: the sums that its events have told, and what else its
  // state has to hold.
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
  std::vector<std::uint64_t> newest_;   // By caller, in the session at hand.
  std::uint64_t session_count_ = 0;     // Of the session at hand.
  std::vector<wide_scope> users_;
  std::vector<wide_scope> apps_;
  std::uint64_t sent_ = 0; // By all callers.
  bool is_replayed_ = false;
};

} // namespace troupe::load
