#include "troupe/stores/sqlite_database.hpp"

#include "troupe/core/mechanism.hpp"
#include "troupe/stores/sqlite_sums.hpp"

#include <fmt/format.h>

#include <system_error>
#include <thread>

namespace troupe {

namespace {

bool means_damage(int code) noexcept {
  const int primary = code & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB
         || primary == SQLITE_FORMAT;
}

std::string words_of(sqlite3* connection) {
  const int code = sqlite3_extended_errcode(connection);
  switch (code & 0xff) {
  case SQLITE_BUSY:
    return "locked by another process";
  case SQLITE_NOTADB:
    return "not a SQLite database";
  default:
    break;
  }
  std::string words = sqlite3_errmsg(connection);
  if ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN) {
    words += fmt::format(" (code {}", code);
    if (const int cause = sqlite3_system_errno(connection); cause != 0)
      words += fmt::format(", {}", std::generic_category().message(cause));
    words += ")";
  }
  return words;
}

const char* pragma_of(durability promised) noexcept {
  switch (promised) {
  case durability::durable:
    if (!is_broken(mechanism::synced_commits))
      return "PRAGMA synchronous=FULL";
    [[fallthrough]];
  case durability::os:
    return "PRAGMA synchronous=NORMAL";
  case durability::none:
    break;
  }
  return "PRAGMA synchronous=OFF";
}

// A name that SQLite, built to read names as URIs, takes for a path.
std::string as_path(const std::filesystem::path& file) {
  return file.is_absolute() ? file.string() : "./" + file.string();
}

// A URI of a file that does not change, for which SQLite makes no other files.
std::string as_immutable(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char each : std::filesystem::absolute(file).string())
    uri += each == '%'   ? "%25"
           : each == '?' ? "%3f"
           : each == '#' ? "%23"
                         : std::string(1, each);
  return uri + "?immutable=1";
}

bool is_empty_or_missing(const std::filesystem::path& file) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  return failed || size == 0;
}

// Whether nobody has the file open: its write-ahead log is empty, and there is
// no index of it.
bool is_at_rest(const std::filesystem::path& file) {
  std::error_code failed;
  return is_empty_or_missing(file.string() + "-wal")
         && !std::filesystem::exists(file.string() + "-shm", failed);
}

} // namespace

error sqlite_failure(sqlite3* connection, std::string_view attempt) {
  const int code = sqlite3_extended_errcode(connection);
  const auto* file = sqlite3_db_filename(connection, "main");
  return {
    means_damage(code) ? errc::corrupt : errc::store_failed,
    fmt::format(
      "{} {}: {}", attempt, file != nullptr ? file : "", words_of(connection))};
}

sqlite_rows::~sqlite_rows() {
  sqlite3_reset(statement_);
}

bool sqlite_rows::next() {
  switch (sqlite3_step(statement_)) {
  case SQLITE_ROW:
    return true;
  case SQLITE_DONE:
    return false;
  default:
    throw sqlite_failure(sqlite3_db_handle(statement_), "use");
  }
}

std::string_view sqlite_rows::text(int column) const {
  const auto* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

void sqlite_rows::expect_sound(int column, std::string_view table) const {
  if (integer(column) != 1 && !is_broken(mechanism::row_sums))
    throw error(
      errc::corrupt,
      fmt::format("use {}: a row of the table {} is not what was written",
                  sqlite3_db_filename(sqlite3_db_handle(statement_), "main"),
                  table));
}

sqlite_statement::sqlite_statement(sqlite3* connection, std::string_view sql) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(connection,
                                      sql.data(),
                                      static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT,
                                      &prepared,
                                      nullptr);
  statement_.reset(prepared);
  // What a statement of ours names must be there.
  if (code == SQLITE_ERROR)
    throw error(errc::corrupt, sqlite_failure(connection, "use").message());
  if (code != SQLITE_OK)
    throw sqlite_failure(connection, "use");
}

void sqlite_statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), index, number);
}

void sqlite_statement::bind(int index, std::string_view text) {
  // An empty view may point nowhere, which SQLite would take for NULL.
  if (sqlite3_bind_text64(statement_.get(),
                          index,
                          text.empty() ? "" : text.data(),
                          text.size(),
                          SQLITE_STATIC,
                          SQLITE_UTF8)
      != SQLITE_OK)
    throw sqlite_failure(sqlite3_db_handle(statement_.get()), "write to");
}

void sqlite_statement::bind(int index, std::nullptr_t) {
  sqlite3_bind_null(statement_.get(), index);
}

sqlite_database::sqlite_database(const sqlite_settings& settings,
                                 sqlite_role role)
  : waiting_(std::make_unique<waiting>()) {
  waiting_->patience = settings.patience;
  const bool read_only = settings.options.read_only;
  const bool immutable = read_only && is_at_rest(settings.file);
  sqlite3* opened = nullptr;
  // Not `SQLITE_OPEN_CREATE`: who may read the file is decided when it is made.
  const int code = sqlite3_open_v2(
    (immutable ? as_immutable(settings.file) : as_path(settings.file)).c_str(),
    &opened,
    (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE)
      | (immutable ? SQLITE_OPEN_URI : 0) | SQLITE_OPEN_NOMUTEX,
    settings.vfs.empty() ? nullptr : settings.vfs.c_str());
  connection_.reset(opened);
  if (opened == nullptr)
    throw error(errc::store_failed,
                fmt::format("open {}: no memory", settings.file.string()));
  sqlite3_extended_result_codes(opened, 1);
  if (code != SQLITE_OK)
    throw error(
      errc::store_failed,
      fmt::format("open {}: {}", settings.file.string(), words_of(opened)));
  if (!read_only && sqlite3_db_readonly(opened, "main") == 1)
    throw error(errc::store_failed,
                fmt::format("open {}: it is read-only, or this process may "
                            "not write to it",
                            settings.file.string()));
  sqlite3_busy_handler(opened, &wait_for_lock, waiting_.get());
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // Only the store's `close` tidies up; elsewhere it would cost an opening or a
  // failure the time of a whole checkpoint.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  add_row_sum(opened);
  execute("PRAGMA trusted_schema=OFF");
  execute("PRAGMA cell_size_check=ON");
  execute("PRAGMA secure_delete=FAST");
  execute("PRAGMA temp_store=MEMORY");
  // Checkpoints have a thread of their own.
  sqlite3_wal_autocheckpoint(opened, 0);
  execute(pragma_of(settings.options.durability));
  if (role == sqlite_role::writer)
    execute("PRAGMA cache_size=-65536");
  if (role == sqlite_role::reader)
    execute("PRAGMA query_only=ON");
}

int sqlite_database::wait_for_lock(void* context, int count) {
  using namespace std::chrono;
  auto& state = *static_cast<waiting*>(context);
  const auto now = steady_clock::now();
  if (count == 0)
    state.since = now;
  if (now - state.since >= state.patience)
    return 0;
  // Random, so that processes that wait together do not come back together.
  state.seed = state.seed * 1'664'525U + 1'013'904'223U
               + static_cast<std::uint32_t>(now.time_since_epoch().count());
  std::this_thread::sleep_for(microseconds(200 + (state.seed >> 8) % 2'800));
  return 1;
}

void sqlite_database::execute(const std::string& sql) const {
  if (sqlite3_exec(connection(), sql.c_str(), nullptr, nullptr, nullptr)
      != SQLITE_OK)
    throw failure("use");
}

std::int64_t sqlite_database::number(std::string_view sql) const {
  auto statement = prepare(sql);
  auto found = statement.rows();
  return found.next() ? found.integer(0) : 0;
}

error sqlite_database::failure(std::string_view attempt) const {
  return sqlite_failure(connection(), attempt);
}

sqlite_transaction::sqlite_transaction(const sqlite_database& database,
                                       kind access)
  : database_(database) {
  database_.execute(access == kind::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

sqlite_transaction::~sqlite_transaction() {
  if (sqlite3_get_autocommit(database_.connection()) == 0)
    sqlite3_exec(database_.connection(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void sqlite_transaction::commit() {
  database_.execute("COMMIT");
}

} // namespace troupe
