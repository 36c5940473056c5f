// The state of one scope as its owner keeps it: judged on the way up, installed
// on the way down.
//
// Pure: no actor, no time. Used by the app, user and session actors and, for
// `temp:`, by the invocation.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/state_map.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// Sizes that an owner or a boundary refuses to pass, in bytes of compact JSON.
struct size_limits {
  std::size_t value_bytes_max = std::size_t{256} * 1024;
  std::size_t event_bytes_max = std::size_t{1024} * 1024;
};

class scope_state {
public:
  scope_state() = default;

  explicit scope_state(state_map keys, std::uint64_t revision = 0)
    : keys_(std::move(keys)),
      revision_(revision) {}

  /// Evaluates the share of one event against the state and everything judged
  /// before, and keeps it for `install`.
  ///
  /// `share` must live until then. Outcomes are added to `resolved` if any
  /// operation is typed. With `undecided`, `drop_last` can take it back. Fails
  /// with `errc::type_error`, `errc::conflict` or `errc::too_large`, and then
  /// keeps nothing of it.
  result<void> judge(std::span<const operation> share,
                     std::vector<resolution>& resolved,
                     bool undecided,
                     const size_limits& limits);

  /// Takes back the share judged last, which was `undecided`.
  void drop_last();

  /// Makes everything judged visible; each share is one revision.
  void install();

  /// Takes back everything judged.
  void abandon() noexcept;

  /// The installed keys; a copy is a snapshot.
  const state_map& keys() const noexcept { return keys_; }

  /// The keys with everything that is judged.
  const state_map& judged_keys();

  /// Counts the shares installed, from 0.
  std::uint64_t revision() const noexcept { return revision_; }

  /// The revision that the share judged last will be.
  std::uint64_t judged_revision() const noexcept {
    return revision_ + judged_.size();
  }

private:
  state_map keys_;
  std::uint64_t revision_ = 0;
  std::vector<std::span<const operation>> judged_;
  // Only once a typed operation, or somebody else, has to see what was judged
  // before; holds all of `judged_` then.
  std::optional<state_map> working_;
  std::optional<state_map> before_last_;
};

/// What `done` makes of `current` (null pointer: absent); a null value erases.
/// Fails like `scope_state::judge`.
result<value> evaluate(const operation& done,
                       const value* current,
                       const size_limits& limits);

} // namespace troupe
