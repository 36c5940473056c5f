// A store in a PostgreSQL database. docs/storage.md describes every column.

#pragma once

#include "troupe/stores/store.hpp"
#include "troupe/stores/store_options.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Connects and creates troupe's tables if they are missing. Any number of
/// processes may share the database. Fails with `errc::invalid_argument` (bad
/// URL), `errc::store_failed` (no connection; try again) or `errc::corrupt`
/// (tables of a newer version).
result<std::unique_ptr<store>>
open_postgres_store(const std::string& url, const store_options& options = {});

/// Name and version of the client library, for reports.
std::string libpq_version();

} // namespace troupe
