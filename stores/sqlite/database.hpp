// A connection to a SQLite file, its statements and its transactions.
//
// Inside the SQLite store failures are thrown as `troupe::error`; the store
// turns them into results at its boundary.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/stores/sqlite/settings.hpp"

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The rows of a running statement. Resets the statement at the end. A
/// statement has one at a time.
class sqlite_rows {
public:
  explicit sqlite_rows(sqlite3_stmt* statement) : statement_(statement) {}

  sqlite_rows(const sqlite_rows&) = delete;
  sqlite_rows& operator=(const sqlite_rows&) = delete;
  ~sqlite_rows();

  /// Moves to the next row. Returns false at the end.
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

  /// A view that is valid until the next row.
  std::string_view text(int column) const;

  /// Throws `errc::corrupt` unless `column`, selected by `is_sound`, is 1.
  void expect_sound(int column, std::string_view table) const;

private:
  sqlite3_stmt* statement_; // Outlives the rows.
};

class sqlite_statement {
public:
  sqlite_statement() = default;
  sqlite_statement(sqlite3* connection, std::string_view sql);

  /// Binds the values and starts. Text is not copied: it must outlive the rows.
  template <class... Values>
  sqlite_rows rows(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    return sqlite_rows(statement_.get());
  }

  /// Binds the values and runs to the end. Returns the number of rows that the
  /// statement inserted, updated or deleted.
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

enum class sqlite_role : std::uint8_t {
  writer,
  reader,
  checkpointer,
  /// The only connection to the file: it waits for the others to close for the
  /// time of `lock_timeout`, and keeps new ones out. Writes.
  alone,
};

/// Resolves the links of `file`. SQLite makes the other files beside the
/// resolved one.
std::string real_path(const std::filesystem::path& file);

class sqlite_database {
public:
  /// Opens an existing file. Throws `errc::store_failed`; to be alone with a
  /// file that others use, `errc::conflict`.
  sqlite_database(const sqlite_settings& settings, sqlite_role role);

  sqlite_statement prepare(std::string_view sql) const {
    return {connection_.get(), sql};
  }

  void execute(const std::string& sql) const;

  /// Returns the first column of the first row; 0 if there is no row.
  std::int64_t number(std::string_view sql) const;

  /// Extends the file of the write-ahead log to `bytes`, unless it is larger.
  /// Ignores failures. Call it only in a transaction that writes.
  void reserve_log(std::uint64_t bytes) const noexcept;

  /// Calls `act` again while SQLite answers that the file is locked, since it
  /// does not wait for every lock itself. Returns false after `lock_timeout`.
  bool retry_while_locked(const std::function<void()>& act) const;

  /// Describes the failure of the last call; names the file.
  error failure(std::string_view attempt) const;

  sqlite3* connection() const noexcept { return connection_.get(); }

  /// Returns true if no program used the file when it was opened read-only, and
  /// the file, its log or its index has changed since. Rows that were read may
  /// then belong to different states.
  bool has_come_into_use() const;

  /// Returns true if the connection was opened with the shared index (`-shm`)
  /// read-only. While it is open, connections that this process opens later
  /// cannot write.
  bool keeps_writers_out() const noexcept { return reads_shared_index_; }

  /// Sets how long later calls wait for a lock.
  void set_lock_timeout(std::chrono::milliseconds lock_timeout) {
    waiting_->lock_timeout = lock_timeout;
  }

private:
  struct close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };

  // State of the wait for a lock. It is on the heap because SQLite keeps its
  // address.
  struct waiting {
    std::chrono::milliseconds lock_timeout;
    std::chrono::steady_clock::time_point since;
    std::uint32_t seed = 0;
  };

  struct resting_file {
    std::string path;
    // Of the file, of its write-ahead log and of the index: device, inode, size
    // and times. They differ after each change.
    std::vector<std::int64_t> facts;
  };

  // The methods of an open file, which grant each lock above the shared one
  // without taking it.
  struct lone_methods {
    // Must be the first member: SQLite's pointer to it is cast to this struct.
    sqlite3_io_methods own;
    const sqlite3_io_methods* below;
  };

  static int wait_for_lock(void* context, int count);

  void keep_others_out(const sqlite_settings& settings);
  static int lock_at_most_shared(sqlite3_file* file, int level);

  void keep_index_in_memory();

  std::unique_ptr<waiting> waiting_;
  std::optional<resting_file> resting_; // Unset if programs may use the file.
  bool reads_shared_index_ = false;
  std::unique_ptr<lone_methods> lone_; // Used until the connection is closed.
  std::unique_ptr<sqlite3, close> connection_;
};

/// Rolls back unless `commit` was called.
class sqlite_transaction {
public:
  enum class kind : std::uint8_t { read, write };

  sqlite_transaction(const sqlite_database& database, kind access);
  sqlite_transaction(const sqlite_transaction&) = delete;
  sqlite_transaction& operator=(const sqlite_transaction&) = delete;
  ~sqlite_transaction();

  void commit();

private:
  const sqlite_database& database_; // Outlives the transaction.
};

/// Describes the last failure on `connection`; names the file.
error sqlite_failure(sqlite3* connection, std::string_view attempt);

} // namespace troupe
