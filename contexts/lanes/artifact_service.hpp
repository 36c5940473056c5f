// The artifact store of a runtime with its threads, as artifact calls use them.

#pragma once

#include "troupe/contexts/lanes/store_call.hpp"
#include "troupe/stores/artifact_store.hpp"

namespace troupe {

/// The artifact store of a runtime, and its threads that may block.
struct artifact_service : store_access<artifact_store> {};

} // namespace troupe
