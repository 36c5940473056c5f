// The artifacts of a session and its user, as running code sees them: files
// with versions, kept beside the state.
//
// Each call has two forms. The plain one blocks, for tools that are plain
// functions; on the thread of a run it is `errc::would_deadlock`. The `_async`
// one is awaited, and throws what the other returns. Names and failures are
// those of `artifact_store`; without a store in the runtime all of them are
// `errc::invalid_argument`.

#pragma once

#include "troupe/contexts/task.hpp"
#include "troupe/core/event.hpp"
#include "troupe/stores/artifact_store.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct run_facts;

/// Where a runtime keeps artifacts, and the threads that may wait for it.
struct artifact_service {
  std::shared_ptr<artifact_store> store;
  std::function<void(std::function<void()> work)> post;
};

/// Cheap to copy; not to be kept beyond the context that gave it.
class readonly_artifacts {
public:
  explicit readonly_artifacts(const run_facts& facts) noexcept
    : facts_(&facts) {}

  /// The newest version, or that one; nothing if it is missing.
  result<std::optional<part>>
  load(const std::string& name, std::optional<std::int64_t> version = {}) const;
  task<std::optional<part>>
  load_async(std::string name, std::optional<std::int64_t> version = {}) const;

  /// The names of the session's artifacts and of the user's, in order.
  result<std::vector<std::string>> list() const;
  task<std::vector<std::string>> list_async() const;

  /// The versions of one, in ascending order.
  result<std::vector<std::int64_t>> versions(const std::string& name) const;
  task<std::vector<std::int64_t>> versions_async(std::string name) const;

protected:
  const run_facts* facts_; // The run's.
};

class artifacts : public readonly_artifacts {
public:
  /// `is_closed`, unless it is null, says when nothing is to be changed any
  /// more.
  artifacts(const run_facts& facts,
            event_actions& actions,
            const std::atomic<bool>* is_closed = nullptr) noexcept
    : readonly_artifacts(facts),
      actions_(&actions),
      is_closed_(is_closed) {}

  /// Keeps a new version and returns its number, from 0. The event of the step
  /// names it in its `artifactDelta`. A step that fails leaves the version
  /// behind, but no event names it.
  result<std::int64_t> save(const std::string& name, const part& content);
  task<std::int64_t> save_async(std::string name, part content);

  /// Removes all versions; says whether there were any.
  result<bool> remove(const std::string& name);
  task<bool> remove_async(std::string name);

private:
  event_actions* actions_; // The context's.
  const std::atomic<bool>* is_closed_;
};

} // namespace troupe
