// Scopes and events in a PostgreSQL database; docs/storage.md describes it
// column by column.

#pragma once

#include "troupe/stores/open_store.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Connects, and makes troupe's tables when they are missing. Any number of
/// processes may share the database. Fails with `errc::store_failed` or
/// `errc::corrupt` (tables of a newer version).
result<std::unique_ptr<store>>
open_postgres_store(const std::string& url, const store_options& options = {});

} // namespace troupe
