// The reads that an event's plain writes are based on. An owner that judges the
// event compares them with its own values, and notes each difference.
//
// It travels beside the delta and is no part of the event: stores, retries and
// the wire form do not know it.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/state_map.hpp"
#include "troupe/core/step_reads.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Not thread-safe; moves from the lane to the owners and back with the event.
class basis_check {
public:
  /// A change that the event overwrites.
  struct loss {
    scope where = scope::session;
    std::string name; ///< Without prefix.
    /// Id of the event that had made the change; empty if it is not known.
    std::string event_id = {};
    /// True if an owner outside of the run noted it.
    bool by_owner = false;
  };

  /// With `refuses`, a difference is `errc::conflict` and not a loss.
  basis_check(std::vector<write_basis> bases, bool refuses);

  /// Fails with `errc::conflict` if tools of one turn have overwritten changes
  /// of each other, and this refuses that.
  result<void> check_turn() const;

  /// Returns true if the owner of `where` may refuse the event.
  bool may_refuse(scope where) const noexcept;

  /// Compares the bases of one scope with the present values, which include all
  /// earlier events. Each difference is a loss, or `errc::conflict`.
  result<void> compare(scope where, const delta& changes, const state_map& now);

  /// The values that the event is based on.
  const std::vector<write_basis>& bases() const noexcept { return bases_; }

  /// Takes back the losses that owners have noted: the event is judged again.
  void take_back();

  /// The losses of the event if it takes effect.
  const std::vector<loss>& losses() const noexcept { return losses_; }

  /// The same, to add ids.
  std::vector<loss>& losses() noexcept { return losses_; }

private:
  const std::vector<write_basis> bases_;
  const bool refuses_;
  std::vector<loss> losses_;
};

} // namespace troupe
