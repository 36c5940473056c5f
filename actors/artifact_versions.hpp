// The versions of a session's artifacts at an earlier revision, found in its
// events.
//
// A name stands for the version that the newest event up to the revision names.
// If none names it, the version before the oldest one that a later event names
// counts as there: a file may be saved outside of runs.

#pragma once

#include "troupe/actors/setup.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/core/event_log.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// The versions of one artifact that events name.
struct named_versions {
  /// The newest one up to the revision; unset if no event there names any.
  std::optional<std::int64_t> earlier;
  /// The oldest one behind the revision.
  std::int64_t oldest = 0;
  /// The newest one behind the revision.
  std::int64_t newest = 0;

  /// The version that the name stood for at the revision.
  std::optional<std::int64_t> at_revision() const noexcept {
    return earlier || oldest == 0 ? earlier : oldest - 1;
  }
};

/// By name, artifacts of a session that events behind a revision have saved.
using artifact_versions = std::map<std::string, named_versions>;

/// Returns the artifacts of the session, not of its user, that these events
/// have saved.
artifact_versions saved_by(const event_slice& behind);

/// Reads events `first` to `last` of a session, from memory or from the store.
pending<std::vector<event_ptr>>
load_events(const std::shared_ptr<setup>& shared,
            const session_key& key,
            std::uint64_t first,
            std::uint64_t last);

/// Sets `named_versions::earlier` from the events up to `revision`, which are
/// read back from there until each artifact is found.
task<result<bool>> find_earlier(std::shared_ptr<setup> shared,
                                session_key key,
                                std::uint64_t revision,
                                artifact_versions& saved);

} // namespace troupe::actors
