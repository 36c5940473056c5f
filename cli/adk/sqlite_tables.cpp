// Reads a SQLite file of ADK.
//
// ADK's files have a rollback journal unless that was changed. Such a
// file is opened with SQLite's own locks, so a program that writes meanwhile
// waits. A file with a write-ahead log is opened as troupe opens its own stores
// read-only, because a plain connection would make files beside it.

#include "troupe/cli/adk/layout.hpp"
#include "troupe/cli/adk/tables.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

namespace troupe::cli {

namespace {

constexpr int lock_timeout_ms = 30'000;

struct close_connection {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};

using lone_connection = std::unique_ptr<sqlite3, close_connection>;

// Microseconds since 1970 of a column. ADK writes UTC as text, or seconds as a
// number. Null if the column has neither.
std::string time_in(std::string_view column) {
  return fmt::format(
    "CASE WHEN typeof({0}) IN ('integer', 'real') "
    "THEN CAST(round({0} * 1e6) AS INTEGER) "
    "ELSE CAST(strftime('%s', substr({0}, 1, 19)) AS INTEGER) * 1000000 "
    "+ CAST(substr(substr({0}, 21) || '000000', 1, 6) AS INTEGER) END",
    column);
}

std::optional<timestamp> time_at(const sqlite_rows& rows, int column) {
  // The end of the year 9999, which is the last year of Python.
  constexpr std::int64_t seconds_max = 253'402'300'799;
  constexpr std::int64_t microseconds_max = seconds_max * 1'000'000;
  const auto number = rows.maybe_integer(column);
  return number && std::abs(*number) <= microseconds_max
           ? std::optional(timestamp(std::chrono::microseconds(*number)))
           : std::nullopt;
}

std::string text_at(const sqlite_rows& rows, int column) {
  return std::string(rows.text(column));
}

// The bytes 18 and 19 of the header are 2 if the file has a write-ahead log.
bool has_log(const std::string& path) {
  std::array<char, 20> header{};
  std::ifstream file(path, std::ios::binary);
  file.read(header.data(), header.size());
  return file && header[18] == 2;
}

// A killed program has left the file in the middle of a transaction. Its
// journal can only be rolled back by a connection that writes.
error half_written(const std::string& path) {
  return {errc::store_failed,
          fmt::format("open {}: a program was killed while it wrote to the "
                      "file: open it once with a program that may write to it, "
                      "such as ADK",
                      path)};
}

lone_connection open_with_locks(const std::string& path) {
  sqlite3* opened = nullptr;
  const auto name = std::filesystem::absolute(path).string();
  const int code = sqlite3_open_v2(
    name.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  lone_connection made(opened);
  if (opened == nullptr)
    throw std::bad_alloc();
  sqlite3_extended_result_codes(opened, 1);
  if (code != SQLITE_OK)
    throw sqlite_failure(opened, "open");
  sqlite3_busy_timeout(opened, lock_timeout_ms);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return made;
}

class sqlite_tables final : public adk_tables {
public:
  explicit sqlite_tables(const std::string& path) {
    if (has_log(path)) {
      shared_ = std::make_unique<sqlite_database>(
        sqlite_settings{.file = path, .options = {.read_only = true}},
        sqlite_role::reader);
      connection_ = shared_->connection();
    } else {
      lone_ = open_with_locks(path);
      connection_ = lone_.get();
    }
    run("PRAGMA trusted_schema=OFF");
    begin(path);
    auto found = find_layout(read_schema(), path);
    if (!found)
      throw std::move(found).error();
    layout_ = *found;
    events_ = prepare(fmt::format(
      "SELECT id, invocation_id, {}, event_data FROM events WHERE app_name=?1 "
      "AND user_id=?2 AND session_id=?3 ORDER BY timestamp, {}",
      time_in("timestamp"),
      layout_ == adk_layout::sqlite_service ? "rowid" : "id"));
    state_ = prepare("SELECT state FROM sessions WHERE app_name=?1 AND "
                     "user_id=?2 AND id=?3");
    app_state_ = prepare("SELECT state FROM app_states WHERE app_name=?1");
    user_state_ = prepare(
      "SELECT state FROM user_states WHERE app_name=?1 AND user_id=?2");
  }

  adk_layout layout() const noexcept override { return layout_; }

  result<std::vector<adk_session>> sessions() override {
    return guarded<std::vector<adk_session>>([this] {
      auto statement
        = prepare(fmt::format("SELECT app_name, user_id, id, {} FROM sessions",
                              time_in("update_time")));
      std::vector<adk_session> found;
      for (auto rows = statement.rows(); rows.next();) {
        session_key key(text_at(rows, 0), text_at(rows, 1), text_at(rows, 2));
        const auto time = time_at(rows, 3);
        if (!time)
          throw in_row(
            "sessions",
            to_string(key),
            error(errc::invalid_argument, "its update_time is no time"));
        found.push_back({std::move(key), *time});
      }
      return found;
    });
  }

  result<std::vector<owner>> owners() override {
    return guarded<std::vector<owner>>([this] {
      auto statement
        = prepare("SELECT app_name, NULL FROM app_states UNION ALL "
                  "SELECT app_name, user_id FROM user_states");
      std::vector<owner> found;
      for (auto rows = statement.rows(); rows.next();)
        found.push_back(
          {text_at(rows, 0),
           rows.is_null(1) ? std::nullopt : std::optional(text_at(rows, 1))});
      return found;
    });
  }

  result<std::string> state_of(const session_key& key) override {
    return guarded<std::string>([this, &key] {
      return first_text(
        state_.rows(view(key.app), view(key.user), view(key.id)));
    });
  }

  result<std::string> state_of(const owner& wanted) override {
    return guarded<std::string>([this, &wanted] {
      return first_text(
        wanted.user ? user_state_.rows(view(wanted.app), view(*wanted.user))
                    : app_state_.rows(view(wanted.app)));
    });
  }

  result<void> read_events(
    const session_key& key,
    const std::function<result<void>(const adk_event&)>& each) override {
    const auto done = guarded<bool>([this, &key, &each] {
      auto rows = events_.rows(view(key.app), view(key.user), view(key.id));
      while (rows.next()) {
        auto taken = each({text_at(rows, 0),
                           text_at(rows, 1),
                           time_at(rows, 2),
                           text_at(rows, 3)});
        if (!taken)
          throw std::move(taken).error();
      }
      return true;
    });
    return done ? result<void>() : done.error();
  }

  result<void> finish() override {
    if (shared_ && shared_->has_come_into_use())
      return error(errc::store_failed,
                   "another program has opened the database while it was read: "
                   "stop it and try again");
    return {};
  }

private:
  static std::string_view view(const std::string& text) { return text; }

  static std::string first_text(sqlite_rows rows) {
    return rows.next() ? text_at(rows, 0) : std::string();
  }

  // Turns the exceptions of the store's classes into results.
  template <class T, class Act>
  static result<T> guarded(const Act& act) {
    try {
      return act();
    } catch (const error& failure) {
      return failure;
    }
  }

  sqlite_statement prepare(std::string_view sql) const {
    return {connection_, sql};
  }

  void run(std::string_view sql) const { prepare(sql).run(); }

  // The first read takes the lock and begins the snapshot.
  void begin(const std::string& path) const {
    run("BEGIN");
    if (sqlite3_exec(
          connection_, "SELECT 1 FROM sqlite_master", nullptr, nullptr, nullptr)
        == SQLITE_OK)
      return;
    if (sqlite3_extended_errcode(connection_) == SQLITE_READONLY_ROLLBACK)
      throw half_written(path);
    throw sqlite_failure(connection_, "use");
  }

  adk_schema read_schema() const {
    adk_schema found;
    auto statement
      = prepare("SELECT m.name, c.name, c.type FROM sqlite_master m "
                "JOIN pragma_table_info(m.name) c WHERE m.type='table'");
    for (auto rows = statement.rows(); rows.next();)
      found.tables[text_at(rows, 0)][text_at(rows, 1)] = text_at(rows, 2);
    if (!found.tables.contains(adk_metadata_table))
      return found;
    auto version = prepare(
      fmt::format("SELECT value FROM {} WHERE \"key\"='schema_version'",
                  adk_metadata_table));
    if (auto rows = version.rows(); rows.next())
      found.version = text_at(rows, 0);
    return found;
  }

  // Exactly one of these two is set. The statements are finalized before the
  // connection is closed.
  std::unique_ptr<sqlite_database> shared_;
  lone_connection lone_;
  sqlite3* connection_ = nullptr;
  adk_layout layout_ = adk_layout::database_service;
  sqlite_statement events_;
  sqlite_statement state_;
  sqlite_statement app_state_;
  sqlite_statement user_state_;
};

} // namespace

result<std::unique_ptr<adk_tables>> open_adk_sqlite(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed))
    return error(errc::invalid_argument,
                 fmt::format("open {}: no such file", path));
  try {
    return std::make_unique<sqlite_tables>(path);
  } catch (const error& failure) {
    return failure;
  }
}

} // namespace troupe::cli
