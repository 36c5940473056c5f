// Statements that begin, end and configure a transaction.

#pragma once

#include "troupe/stores/postgres/connection.hpp"

namespace troupe::postgres_transaction {

inline constexpr postgres_statement begin
  = {"begin", "BEGIN ISOLATION LEVEL READ COMMITTED"};
inline constexpr postgres_statement commit = {"commit", "COMMIT"};
inline constexpr postgres_statement roll_back = {"roll_back", "ROLLBACK"};

/// Takes the advisory lock $1 until the end of the transaction.
inline constexpr postgres_statement take_lock
  = {"take_lock", "SELECT pg_advisory_xact_lock($1::bigint)"};

/// Sets the statement timeout in milliseconds until the end of the transaction.
inline constexpr postgres_statement allow_long
  = {"allow_long",
     "SELECT set_config('statement_timeout', $1::bigint::text, true)"};

} // namespace troupe::postgres_transaction
