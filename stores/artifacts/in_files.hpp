// Artifacts as files below one folder, for any number of threads and processes
// on one machine.
//
// Invariant: a version is a folder that appears whole, by one rename, after its
// files are on the disk. An artifact appears with its first version and
// disappears with all of its versions in one rename. So a reader sees only
// whole versions, and a crash leaves at most unfinished work in `scratch`,
// which the next writer removes.
//
//   PATH/kept/…/NUMBER/data
//   PATH/kept/…/NUMBER/metadata.json
//   PATH/scratch/…
//
// docs/storage.md describes the paths and the content.

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <filesystem>
#include <memory>

namespace troupe {

/// Opens the store in the folder at `path`, and creates the folder if it is
/// missing. An acknowledged save is durable. Files are accessible only to the
/// user who created them.
///
/// Needs a local file system with `flock`. Fails with `errc::store_failed`.
/// Symbolic links below `path` are not followed; calls that meet one fail with
/// `errc::corrupt`.
result<std::unique_ptr<artifact_store>>
open_file_artifacts(const std::filesystem::path& path,
                    const artifact_options& options = {});

} // namespace troupe
