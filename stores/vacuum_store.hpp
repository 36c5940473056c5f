// Removes from a store's file all that remains of removed sessions, users and
// apps, and gives unused space back.

#pragma once

#include "troupe/stores/store_options.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// Sizes of a store's file in bytes.
struct vacuumed_store {
  std::uint64_t bytes_before = 0; ///< With its write-ahead log.
  std::uint64_t bytes_after = 0;  ///< After the vacuum.
};

/// Rewrites a SQLite file (`sqlite:PATH`) without anything that belonged to
/// removed sessions, users and apps: their rows, their names, and the unused
/// space where they were. Blocks until it is done. Needs free space for a copy
/// of the remaining data, both beside the file and in SQLite's folder for
/// temporary files. No other program may use the file meanwhile, and this one
/// may not have it open; programs that only read it are not noticed. Not for
/// several threads at a time.
///
/// A failure or a crash leaves a whole store with the same sessions; call it
/// again. It fails with `errc::invalid_argument` for a store that is not a
/// SQLite file, `errc::not_found` if there is no such file, `errc::conflict` if
/// another program uses it, and otherwise like `open_store`. PostgreSQL has its
/// own `VACUUM` (docs/operations.md).
result<vacuumed_store> vacuum_store(std::string_view address,
                                    const store_options& options = {});

} // namespace troupe
