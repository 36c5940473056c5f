// Statements for a PostgreSQL server, their parameters and their rows.

#pragma once

#include "troupe/core/event.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Declared here so that only the sources that call libpq include its header.
struct pg_result;
using PGresult = pg_result;

namespace troupe {

/// Appends values in PostgreSQL's binary format.
namespace postgres_binary {

void append_int16(std::string& target, std::int16_t number);
void append_int32(std::string& target, std::int32_t number);
void append_int64(std::string& target, std::int64_t number);

} // namespace postgres_binary

/// A statement. Each connection prepares it at its first use.
struct postgres_statement {
  const char* name;
  const char* text;
};

/// Statements that begin, end and configure a transaction.
namespace postgres_transaction {

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

} // namespace postgres_transaction

/// The parameters of one statement in binary format, `$1` first.
class postgres_parameters {
public:
  postgres_parameters& add(std::int64_t number);
  postgres_parameters& add(std::string_view text);
  postgres_parameters& add(std::span<const std::int64_t> numbers);
  postgres_parameters& add(std::span<const std::string_view> texts);
  /// Adds the number of a LIMIT.
  postgres_parameters& add_limit(std::size_t count);

private:
  friend class postgres_connection;

  std::vector<std::string> values_;
};

/// The result of one statement. Texts are views of it.
class postgres_rows {
public:
  explicit postgres_rows(PGresult* answer) : answer_(answer) {}

  int size() const noexcept;
  int columns() const noexcept;
  bool is_null(int row, int column) const noexcept;
  std::string_view text(int row, int column) const noexcept;
  std::int64_t number(int row, int column) const noexcept;
  /// Reads a number of microseconds since 1970.
  timestamp time(int row, int column) const noexcept;

private:
  struct closer {
    void operator()(PGresult* answer) const noexcept;
  };

  std::unique_ptr<PGresult, closer> answer_;
};

} // namespace troupe
