// The artifact store of a runtime with its threads, as artifact calls use them.

#pragma once

#include "troupe/stores/artifact_store.hpp"

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

} // namespace troupe
