// Looks for damage in the tables of a PostgreSQL store.

#pragma once

#include "troupe/stores/postgres_connection.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// As `store::check`. Scopes are compared one by one, each as of one moment, so
/// others may go on writing.
result<std::vector<std::string>>
check_postgres(postgres_connection& connection,
               const std::function<void(double done)>& on_progress);

} // namespace troupe
