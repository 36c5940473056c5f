// From an address to an artifact store: `memory:`, `file:PATH`.

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <memory>
#include <string_view>

namespace troupe {

/// Opens the artifact store at an address. A folder that does not exist is
/// made. The rules of a path are those of `path_flaw`. Fails with
/// `errc::invalid_argument` or `errc::store_failed`.
result<std::unique_ptr<artifact_store>>
open_artifact_store(std::string_view address,
                    const artifact_options& options = {});

} // namespace troupe
