// Artifacts as files below one folder, for any number of threads and processes
// on one machine.
//
// A version is a folder that appears whole, by a rename, when all in it is on
// the disk; an artifact appears with its first version and vanishes with all of
// them. So whoever looks sees what was acknowledged or is about to be, and a
// crash leaves at most work in `scratch`, which the next writer takes away.
//
//   PATH/kept/…/NUMBER/data           (stores/artifact_path.hpp says where,
//   PATH/kept/…/NUMBER/metadata.json   stores/artifact_form.hpp what)
//   PATH/scratch/…

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <filesystem>
#include <memory>

namespace troupe {

/// The store in the folder at `path`, which is made if it is not there. What is
/// acknowledged is durable. It is for the user alone who made it.
///
/// Needs a local file system with `flock`. Symbolic links below `path` are not
/// followed: `errc::corrupt`. Fails with `errc::store_failed`.
result<std::unique_ptr<artifact_store>>
open_file_artifacts(const std::filesystem::path& path,
                    const artifact_options& options = {});

} // namespace troupe
