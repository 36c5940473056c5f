// The artifacts of a session and its user, for running code: files with
// versions, kept beside the state.
//
// Each call returns a `pending` answer (contexts/pending.hpp). A tool that is a
// plain function calls `get` or `value`, which block. On the thread of a run
// these two fail with `errc::would_deadlock`; agents, callbacks and coroutines
// use `co_await`. Names and failures are those of `artifact_store`. Without an
// artifact store in the runtime all calls fail with `errc::invalid_argument`.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/state.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct run_facts;

/// Cheap to copy. Must not be used after the context that gave it.
class readonly_artifacts {
public:
  /// `facts` and `state`, the session's state, must outlive this.
  readonly_artifacts(const run_facts& facts,
                     const readonly_state& state) noexcept
    : facts_(&facts),
      state_(&state) {}

  /// Loads a version; if `version` is unset, the one that the name stands for:
  /// the newest, or after a rewind an older one (stores/artifact_view.hpp).
  /// Returns nothing if it does not exist.
  pending<std::optional<part>>
  load(std::string name, std::optional<std::int64_t> version = {}) const;

  /// Lists the names of the artifacts of the session and of its user, in
  /// byte order.
  pending<std::vector<std::string>> list() const;

  /// Lists the versions of an artifact in ascending order.
  pending<std::vector<std::int64_t>> versions(std::string name) const;

protected:
  /// Facts of the run, with its session and artifact store.
  const run_facts* facts_; // Belongs to the run.
  /// The session's state, which knows the versions after a rewind.
  const readonly_state* state_; // Belongs to the context.
};

/// Artifacts that the running code may change. Saving and removing take effect
/// at once, before the event of the step is committed.
class artifacts : public readonly_artifacts {
public:
  /// `is_closed` may be null. Once it is true, `save` and `remove` fail
  /// with `errc::cancelled`.
  artifacts(const run_facts& facts,
            event_actions& actions,
            troupe::state& state,
            const std::atomic<bool>* is_closed = nullptr) noexcept
    : readonly_artifacts(facts, state),
      actions_(&actions),
      written_(&state),
      is_closed_(is_closed) {}

  /// Saves a new version and returns its number, counted from 0. The event of
  /// the step names the version in `artifactDelta`, unless the answer was asked
  /// for by `then`. If the step fails, the version stays but no event names it.
  /// The call must start, and a coroutine must get the answer, while the
  /// context lives.
  pending<std::int64_t> save(std::string name, part content);

  /// Removes all versions; returns false if there were none. The call must
  /// start while the context lives.
  pending<bool> remove(std::string name);

private:
  event_actions* actions_; // Belongs to the context.
  state* written_;         // The state of the same context.
  const std::atomic<bool>* is_closed_;
};

} // namespace troupe
