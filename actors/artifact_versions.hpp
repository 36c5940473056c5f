// The versions of a session's artifacts at an earlier revision, as its events
// name them.
//
// Lanes that save the same artifact at the same time may commit their events in
// another order, so the highest version near the revision counts.

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

/// The versions of one artifact.
struct named_versions {
  /// The one of the revision; unset if no event up to there names any.
  std::optional<std::int64_t> earlier;
  /// The oldest and the newest one behind the revision.
  std::int64_t oldest = 0;
  std::int64_t newest = 0;
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

/// Sets `named_versions::earlier` from the events up to `revision`. They are
/// read back from there, 1,024 at a time, until each artifact is found; the
/// highest version of that page counts. Of an artifact that only events up to
/// `trimmed_to`, which are gone, have saved, it is the version before `oldest`.
task<result<bool>> find_earlier(std::shared_ptr<setup> shared,
                                session_key key,
                                std::uint64_t trimmed_to,
                                std::uint64_t revision,
                                artifact_versions& saved);

/// Raises `named_versions::newest` to the newest version that is stored: a step
/// that failed has saved versions that no event names. `saved` must stay where
/// it is until the answer.
pending<bool> note_stored(const std::shared_ptr<setup>& shared,
                          const session_key& key,
                          artifact_versions& saved);

} // namespace troupe::actors
