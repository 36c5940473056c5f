// Opens an artifact store by its address: `memory:`, `file:PATH`.

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <memory>
#include <string_view>

namespace troupe {

/// Opens the artifact store at an address; creates a missing folder. The rules
/// for a path are those of `read_store_address`. Fails with
/// `errc::invalid_argument` (bad address) or `errc::store_failed` (no access;
/// try again).
///
/// Any number of processes on one machine may share a folder, on a local file
/// system with `flock`. An acknowledged save into it is durable. Its files are
/// accessible only to the user who created them. Symbolic links below the path
/// are not followed; calls that meet one fail with `errc::corrupt`.
result<std::unique_ptr<artifact_store>>
open_artifact_store(std::string_view address,
                    const artifact_options& options = {});

} // namespace troupe
