// Lists the sessions of an app, and the names of users and apps, in a
// PostgreSQL store. A page is one statement and so sees one moment.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/postgres/history.hpp"
#include "troupe/stores/store.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Implements `store::list` on the folded state; fold first.
result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection,
                       postgres_history& history,
                       const row_query& query);

/// Implements `store::list_by_name` on the folded state; fold first.
result<std::vector<session_row>>
list_postgres_sessions(postgres_connection& connection,
                       postgres_history& history,
                       const name_query& query);

/// Implements `store::list_users`.
result<std::vector<std::string>>
list_postgres_users(postgres_connection& connection,
                    postgres_history& history,
                    const user_query& query);

/// Implements `store::list_apps` on the folded state; fold first.
result<std::vector<std::string>>
list_postgres_apps(postgres_connection& connection,
                   postgres_history& history,
                   const app_query& query);

} // namespace troupe
