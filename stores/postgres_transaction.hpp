// The statements around what is written together.

#pragma once

#include "troupe/stores/postgres_connection.hpp"

namespace troupe::postgres_transaction {

inline constexpr postgres_statement begin
  = {"begin", "BEGIN ISOLATION LEVEL READ COMMITTED"};
inline constexpr postgres_statement commit = {"commit", "COMMIT"};
inline constexpr postgres_statement roll_back = {"roll_back", "ROLLBACK"};

/// Until the end of the transaction; $1 says which.
inline constexpr postgres_statement take_lock
  = {"take_lock", "SELECT pg_advisory_xact_lock($1::bigint)"};

/// How long a statement may take until the end of the transaction, in ms.
inline constexpr postgres_statement allow_long
  = {"allow_long",
     "SELECT set_config('statement_timeout', $1::bigint::text, true)"};

} // namespace troupe::postgres_transaction
