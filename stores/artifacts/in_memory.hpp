// Artifacts in the memory of this process: for tests, and for programs whose
// artifacts need not outlive the process.

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <memory>

namespace troupe {

/// Makes an empty store. Its calls fail only on bad input.
std::unique_ptr<artifact_store>
make_memory_artifacts(const artifact_options& options = {});

} // namespace troupe
