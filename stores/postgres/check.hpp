// Searches the tables of a PostgreSQL store for damage.

#pragma once

#include "troupe/stores/postgres/connection.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// Implements `store::check`. Each scope is compared at one moment, so other
/// processes may keep writing.
result<std::vector<std::string>>
check_postgres(postgres_connection& connection,
               const std::function<void(double done)>& on_progress);

} // namespace troupe
