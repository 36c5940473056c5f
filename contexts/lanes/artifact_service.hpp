// The artifact store of a runtime with its threads, as artifact calls use them.

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <exception>
#include <functional>
#include <memory>

namespace troupe {

/// The artifact store of a runtime, and a function that runs work on threads
/// that may block.
struct artifact_service {
  /// The store; never null.
  std::shared_ptr<artifact_store> store;
  /// Runs `work` on a thread that may block, and does not wait for it. Returns
  /// false, and drops the work, once the runtime has ended.
  std::function<bool(std::function<void()> work)> post;
};

/// Returns the `result<T>` of `work`, which gets the store. A store of the
/// user's own may throw; its exception becomes `errc::internal`.
template <class T, class Work>
result<T> call_artifacts(artifact_store& kept, const Work& work) {
  try {
    return work(kept);
  } catch (const std::exception& failure) {
    return error(errc::internal, failure.what());
  } catch (...) {
    return error(errc::internal,
                 "the artifact store threw an exception that is not a "
                 "std::exception");
  }
}

} // namespace troupe
