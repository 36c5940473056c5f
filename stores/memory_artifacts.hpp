// Artifacts in this process' memory: for tests, and for programs whose
// artifacts need not outlive them.

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <memory>

namespace troupe {

/// A store of its own, gone with its last user. Nothing but the input makes
/// its calls fail.
std::unique_ptr<artifact_store>
make_memory_artifacts(const artifact_options& options = {});

} // namespace troupe
