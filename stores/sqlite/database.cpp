#include "troupe/stores/sqlite/database.hpp"

#include "troupe/stores/sqlite/sums.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <system_error>
#include <thread>
#include <utility>

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
  if (code == SQLITE_READONLY_RECOVERY || code == SQLITE_READONLY_CANTINIT)
    return "a program died while it changed the index of the write-ahead log "
           "(-shm), and another program still has the file open: try again "
           "when a program has written to the file, or when all have ended";
  std::string words = sqlite3_errmsg(connection);
  if ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN) {
    words += fmt::format(" (code {}", code);
    if (const int cause = sqlite3_system_errno(connection); cause != 0)
      words += fmt::format(", {}", std::generic_category().message(cause));
    words += ")";
  }
  if ((code & 0xff) == SQLITE_CANTOPEN)
    words += ": check that this process may open the file and its -wal and "
             "-shm files";
  return words;
}

const char* pragma_of(durability promised) noexcept {
  switch (promised) {
  case durability::durable:
    return "PRAGMA synchronous=FULL";
  case durability::os:
    return "PRAGMA synchronous=NORMAL";
  case durability::none:
    break;
  }
  return "PRAGMA synchronous=OFF";
}

// Makes a name that SQLite takes for a path, even if SQLite was built to read
// names as URIs.
std::string as_path(const std::filesystem::path& file) {
  return file.is_absolute() ? file.string() : "./" + file.string();
}

// Makes a URI with one parameter, which SQLite reads beside the path.
std::string as_uri(const std::filesystem::path& file,
                   std::string_view parameter) {
  std::string uri = "file:";
  for (const char each : std::filesystem::absolute(file).string())
    uri += each == '%'   ? "%25"
           : each == '?' ? "%3f"
           : each == '#' ? "%23"
                         : std::string(1, each);
  return fmt::format("{}?{}", uri, parameter);
}

// Appends numbers that differ after each change of the content of `file`.
// Returns the size of the file, or nothing if it does not exist. The change
// time of the inode is left out, because SQLite changes it when root opens a
// log.
std::optional<std::int64_t> note_facts(std::vector<std::int64_t>& facts,
                                       const std::string& file) {
  struct stat found {};

  if (::stat(file.c_str(), &found) != 0) {
    facts.push_back(-1);
    return std::nullopt;
  }
  facts.insert(facts.end(),
               {static_cast<std::int64_t>(found.st_dev),
                static_cast<std::int64_t>(found.st_ino),
                found.st_size,
                found.st_mtim.tv_sec,
                found.st_mtim.tv_nsec});
  return found.st_size;
}

// A connection that only reads creates no file and changes none. SQLite has an
// option for each case:
//
// - No log: `immutable` opens no other file.
// - A log without index: no program has the file open. With the exclusive lock,
//   SQLite keeps the index in memory (`keep_index_in_memory`).
// - A log with an index: `readonly_shm` reads the index if another program has
//   the file open. If not, SQLite makes an index in memory.
enum class read_access : std::uint8_t { immutable, own_index, shared_index };

struct file_state {
  read_access access = read_access::shared_index;
  std::vector<std::int64_t> facts;
};

file_state state_of(const std::string& file) {
  file_state found;
  note_facts(found.facts, file);
  const auto log = note_facts(found.facts, file + "-wal");
  const auto index = note_facts(found.facts, file + "-shm");
  if (!log || (*log == 0 && !index))
    found.access = read_access::immutable;
  else if (!index)
    found.access = read_access::own_index;
  return found;
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
  if (integer(column) != 1)
    throw error(
      errc::corrupt,
      fmt::format("use {}: a row of the table {} has a wrong checksum",
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
  // A statement fails to prepare if a table or a column is missing: the file is
  // damaged.
  if (code == SQLITE_ERROR)
    throw error(errc::corrupt, sqlite_failure(connection, "use").message());
  if (code != SQLITE_OK)
    throw sqlite_failure(connection, "use");
}

void sqlite_statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), index, number);
}

void sqlite_statement::bind(int index, std::string_view text) {
  // An empty view may hold a null pointer, which SQLite would take for NULL.
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

std::string real_path(const std::filesystem::path& file) {
  std::error_code failed;
  const auto found = std::filesystem::canonical(file, failed);
  return failed ? file.string() : found.string();
}

sqlite_database::sqlite_database(const sqlite_settings& settings,
                                 sqlite_role role)
  : waiting_(std::make_unique<waiting>()) {
  waiting_->lock_timeout = settings.lock_timeout;
  const bool read_only = settings.options.read_only;
  auto name = as_path(settings.file);
  auto access = read_access::shared_index;
  if (read_only) {
    auto path = real_path(settings.file);
    auto state = state_of(path);
    access = state.access;
    if (access == read_access::shared_index) {
      name = as_uri(settings.file, "readonly_shm=1");
      reads_shared_index_ = true;
    } else {
      resting_ = {std::move(path), std::move(state.facts)};
    }
    if (access == read_access::immutable)
      name = as_uri(settings.file, "immutable=1");
  }
  sqlite3* opened = nullptr;
  // Without `SQLITE_OPEN_CREATE`: SQLite would make the file readable by
  // everybody. `open_sqlite_writer` makes it with the right mode.
  const int code = sqlite3_open_v2(
    name.c_str(),
    &opened,
    (read_only ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE)
      | SQLITE_OPEN_NOMUTEX,
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
  // Only the store's `close` runs a last checkpoint. Otherwise an opening or a
  // failure would take the time of a whole checkpoint.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (access == read_access::own_index)
    keep_index_in_memory();
  if (role == sqlite_role::alone)
    keep_others_out(settings);
  add_row_sum(opened);
  execute("PRAGMA trusted_schema=OFF");
  execute("PRAGMA cell_size_check=ON");
  execute("PRAGMA secure_delete=FAST");
  execute("PRAGMA temp_store=MEMORY");
  // The checkpointer has its own thread.
  sqlite3_wal_autocheckpoint(opened, 0);
  execute(pragma_of(settings.options.durability));
  if (role == sqlite_role::writer)
    execute("PRAGMA cache_size=-65536");
  if (role == sqlite_role::reader)
    execute("PRAGMA query_only=ON");
}

bool sqlite_database::retry_while_locked(
  const std::function<void()>& act) const {
  const auto give_up
    = std::chrono::steady_clock::now() + waiting_->lock_timeout;
  for (;;) {
    try {
      act();
      return true;
    } catch (const error&) {
      if ((sqlite3_errcode(connection()) & 0xff) != SQLITE_BUSY)
        throw;
    }
    if (std::chrono::steady_clock::now() >= give_up)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The mode is set before the first access to the file: then SQLite takes the
// exclusive lock for the write-ahead log, too, and keeps its index in memory.
void sqlite_database::keep_others_out(const sqlite_settings& settings) {
  execute("PRAGMA locking_mode=EXCLUSIVE");
  if (!retry_while_locked(
        [this] { number("SELECT count(*) FROM sqlite_schema"); }))
    throw error(errc::conflict,
                fmt::format("another program uses {}; close it, and try again",
                            settings.file.string()));
}

// SQLite keeps the index in memory only for a connection with the exclusive
// lock. A read-only connection cannot take that lock, and other programs would
// wait for it. So the lock is granted here without being taken, and
// `has_come_into_use` detects programs that have opened the file meanwhile.
void sqlite_database::keep_index_in_memory() {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(connection(),
                           "main",
                           SQLITE_FCNTL_FILE_POINTER,
                           static_cast<void*>(&file))
        != SQLITE_OK
      || file == nullptr || file->pMethods == nullptr)
    throw failure("open");
  lone_ = std::make_unique<lone_methods>(
    lone_methods{*file->pMethods, file->pMethods});
  lone_->own.xLock = &lock_at_most_shared;
  file->pMethods = &lone_->own;
  execute("PRAGMA locking_mode=EXCLUSIVE");
}

bool sqlite_database::has_come_into_use() const {
  return resting_ && state_of(resting_->path).facts != resting_->facts;
}

int sqlite_database::lock_at_most_shared(sqlite3_file* file, int level) {
  const auto& methods = *reinterpret_cast<const lone_methods*>(file->pMethods);
  return level <= SQLITE_LOCK_SHARED ? methods.below->xLock(file, level)
                                     : SQLITE_OK;
}

int sqlite_database::wait_for_lock(void* context, int count) {
  using namespace std::chrono;
  auto& state = *static_cast<waiting*>(context);
  const auto now = steady_clock::now();
  if (count == 0)
    state.since = now;
  if (now - state.since >= state.lock_timeout)
    return 0;
  // Random, so that processes that wait at the same time do not retry at the
  // same time.
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

void sqlite_database::reserve_log(std::uint64_t bytes) const noexcept {
  sqlite3_file* log = nullptr;
  if (sqlite3_file_control(connection(),
                           "main",
                           SQLITE_FCNTL_JOURNAL_POINTER,
                           static_cast<void*>(&log))
        != SQLITE_OK
      || log == nullptr || log->pMethods == nullptr)
    return;
  // A file without a chunk size ignores the hint.
  int chunk = 1 << 16;
  auto size = static_cast<sqlite3_int64>(bytes);
  if (log->pMethods->xFileControl(log, SQLITE_FCNTL_CHUNK_SIZE, &chunk)
      == SQLITE_OK)
    log->pMethods->xFileControl(log, SQLITE_FCNTL_SIZE_HINT, &size);
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
