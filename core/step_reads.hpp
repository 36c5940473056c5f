// The values of keys that a step has read, and those that its plain writes are
// based on.
//
// A plain set or erase of a key that another event has changed since the step
// read it overwrites a change that the step never saw. The owner of the key
// notices this by a comparison with the basis of the write.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/value.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// The value of a key that a step had read before it set or erased the key.
struct write_basis {
  /// Scope of the key, which is its owner.
  scope where = scope::session;
  std::string name; ///< Without prefix.
  /// Value that the owner had, null if absent. Unset if the step has only seen
  /// a value that another tool of its turn had set.
  std::optional<value> owned;
  /// Value that the step saw: the owner's, with the changes of finished tools
  /// of the turn. Null if absent.
  value seen;
  /// True if another tool of the turn has changed the key, unseen by this one.
  bool is_lost = false;
};

/// The reads of one step, by key. Notes nothing before `start`. Not
/// thread-safe.
class step_reads {
public:
  /// Notes reads from now on.
  void start() noexcept { is_on_ = true; }

  /// Returns true after `start`.
  bool is_on() const noexcept { return is_on_; }

  /// Notes that the step has read a key. A later read replaces an earlier one.
  /// For the values see `write_basis`.
  void note_read(std::string_view key, std::optional<value> owned, value seen);

  /// Notes that the step has set or erased a key. Its basis is the last read. A
  /// key that was not read has no basis, and a second write of a key keeps the
  /// basis of the first.
  void note_write(std::string_view key);

  /// Returns and clears the bases of the writes.
  std::vector<write_basis> take_bases() { return std::exchange(bases_, {}); }

  /// Notes that an event carries `changes`. The step knows the keys that it has
  /// read and that are set plainly; other changed keys count as not read.
  void note_event(const delta& changes);

  /// Forgets all reads and bases.
  void forget();

private:
  struct read {
    std::optional<value> owned;
    value seen;
  };

  bool is_on_ = false;
  std::map<std::string, read, std::less<>> reads_;
  std::vector<write_basis> bases_;
};

} // namespace troupe
