// The state of one scope, held by its owner. Events are judged on the way up
// and installed on the way down.
//
// It is pure: no actor, no time. The app, user and session actors use it, and
// the invocation for `temp:`.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/state_map.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// The keys of one scope, and the shares that are judged and not yet installed.
/// Not thread-safe.
class scope_state {
public:
  scope_state() = default;

  /// Starts with stored keys, as of `revision`.
  explicit scope_state(state_map keys, std::uint64_t revision = 0)
    : keys_(std::move(keys)),
      revision_(revision) {}

  /// Evaluates the share of one event against the state and all shares judged
  /// before, and keeps it for `install`.
  ///
  /// `share` must live until `install` or `abandon`. If any operation is typed,
  /// the outcomes of all are appended to `resolved`. An `undecided` share can
  /// be taken back by `drop_last`. Fails with `errc::type_error`,
  /// `errc::conflict` or `errc::too_large`; nothing of the share is kept then.
  result<void> judge(std::span<const operation> share,
                     std::vector<resolution>& resolved,
                     bool undecided,
                     const size_limits& limits);

  /// Takes back the last judged share, which must be `undecided`.
  void drop_last();

  /// Makes all judged shares visible. Each share adds one to the revision.
  void install();

  /// Takes back all judged shares.
  void abandon() noexcept;

  /// The installed keys. A copy is a snapshot.
  const state_map& keys() const noexcept { return keys_; }

  /// The keys including all judged shares.
  const state_map& judged_keys();

  /// Number of installed shares, counted from 0.
  std::uint64_t revision() const noexcept { return revision_; }

  /// The revision that the last judged share will have.
  std::uint64_t judged_revision() const noexcept {
    return revision_ + judged_.size();
  }

private:
  state_map keys_;
  std::uint64_t revision_ = 0;
  std::vector<std::span<const operation>> judged_;
  // State including all of `judged_`. Computed only when a typed operation or a
  // caller of `judged_keys` needs it.
  std::optional<state_map> working_;
  std::optional<state_map> before_last_;
};

/// Returns the value after `done`; `current` is the value before it, null if
/// absent. A null result erases. Fails as `scope_state::judge` does.
result<value> evaluate(const operation& done,
                       const value* current,
                       const size_limits& limits);

} // namespace troupe
