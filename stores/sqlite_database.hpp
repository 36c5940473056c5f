// One connection to a SQLite file, its statements and its transactions.
//
// Inside the SQLite store failures travel as thrown `troupe::error`; the store
// turns them into results at its boundary.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/stores/sqlite_settings.hpp"

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The rows of one statement; resets it at the end. One at a time per
/// statement.
class sqlite_rows {
public:
  explicit sqlite_rows(sqlite3_stmt* statement) : statement_(statement) {}

  sqlite_rows(const sqlite_rows&) = delete;
  sqlite_rows& operator=(const sqlite_rows&) = delete;
  ~sqlite_rows();

  /// Moves to the next row, if there is one.
  bool next();

  std::int64_t integer(int column) const {
    return sqlite3_column_int64(statement_, column);
  }

  bool is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }

  std::optional<std::int64_t> maybe_integer(int column) const {
    return is_null(column) ? std::nullopt : std::optional(integer(column));
  }

  /// Valid until the next row.
  std::string_view text(int column) const;

  /// Throws unless `column`, of `is_sound`, says that the row is.
  void expect_sound(int column, std::string_view table) const;

private:
  sqlite3_stmt* statement_; // The statement that made this outlives it.
};

class sqlite_statement {
public:
  sqlite_statement() = default;
  sqlite_statement(sqlite3* connection, std::string_view sql);

  /// Binds and starts. Text is not copied: it must live as long as the rows.
  template <class... Values>
  sqlite_rows rows(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    return sqlite_rows(statement_.get());
  }

  /// Binds and runs to the end. Returns how many rows that inserted, updated
  /// or deleted.
  template <class... Values>
  std::int64_t run(const Values&... values) {
    auto all = rows(values...);
    while (all.next()) {
    }
    return sqlite3_changes64(sqlite3_db_handle(statement_.get()));
  }

private:
  struct finalize {
    void operator()(sqlite3_stmt* statement) const {
      sqlite3_finalize(statement);
    }
  };

  void bind(int index, std::int64_t number);
  void bind(int index, std::string_view text);
  void bind(int index, std::nullptr_t);

  template <class Value>
  void bind(int index, const std::optional<Value>& maybe) {
    if (maybe)
      bind(index, *maybe);
    else
      bind(index, nullptr);
  }

  std::unique_ptr<sqlite3_stmt, finalize> statement_;
};

enum class sqlite_role : std::uint8_t { writer, reader, checkpointer };

class sqlite_database {
public:
  /// Opens a file that exists. Throws.
  sqlite_database(const sqlite_settings& settings, sqlite_role role);

  sqlite_statement prepare(std::string_view sql) const {
    return {connection_.get(), sql};
  }

  void execute(const std::string& sql) const;

  /// The first column of the first row, 0 if there is none.
  std::int64_t number(std::string_view sql) const;

  /// The failure of the last call, as an error that names the file.
  error failure(std::string_view attempt) const;

  sqlite3* connection() const noexcept { return connection_.get(); }

  /// How long later calls wait for a lock.
  void set_patience(std::chrono::milliseconds patience) {
    waiting_->patience = patience;
  }

private:
  struct close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };

  // How long the present call has waited for a lock. At a fixed address, since
  // SQLite holds on to it.
  struct waiting {
    std::chrono::milliseconds patience;
    std::chrono::steady_clock::time_point since;
    std::uint32_t seed = 0;
  };

  static int wait_for_lock(void* context, int count);

  std::unique_ptr<waiting> waiting_;
  std::unique_ptr<sqlite3, close> connection_;
};

/// Rolls back unless committed.
class sqlite_transaction {
public:
  enum class kind : std::uint8_t { read, write };

  sqlite_transaction(const sqlite_database& database, kind access);
  sqlite_transaction(const sqlite_transaction&) = delete;
  sqlite_transaction& operator=(const sqlite_transaction&) = delete;
  ~sqlite_transaction();

  void commit();

private:
  const sqlite_database& database_; // Its maker's, which outlives it.
};

/// What went wrong on `connection`, as an error that names its file.
error sqlite_failure(sqlite3* connection, std::string_view attempt);

} // namespace troupe
