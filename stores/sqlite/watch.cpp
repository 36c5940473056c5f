#include "troupe/stores/sqlite/watch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace troupe {

// Invariant: a transaction reads and writes the file that the path names, and
// only SQLite has written to it since the last check.
//
// The file changes legitimately only during a checkpoint. A checkpoint raises
// `attempted` before it writes and `backfilled` after it. So the size or the
// time of the file may change only if the two numbers differ, or have changed,
// between two checks. Any other change is foreign.

namespace {

// Offsets in the index of the write-ahead log, from SQLite's "WAL-mode File
// Format". They have not changed since version 3.7.0, that of
// `nBackfillAttempted` since 3.9.0.
constexpr std::size_t salt_place = 32;
constexpr std::size_t backfilled_place = 96;
constexpr std::size_t attempted_place = 128;
constexpr int index_region_size = 32'768;

// Offsets in the header of the write-ahead log itself.
constexpr std::size_t log_header_size = 32;
constexpr std::size_t log_salt_place = 16;

std::uint32_t number_at(const volatile void* region, std::size_t place) {
  const auto* words = static_cast<const volatile std::uint32_t*>(region);
  return words[place / sizeof(std::uint32_t)];
}

sqlite_log_salt salt_in(const std::array<char, log_header_size>& header) {
  sqlite_log_salt salt{};
  std::memcpy(salt.data(), header.data() + log_salt_place, salt.size());
  return salt;
}

// Uses the path and not a descriptor: opening and closing the file would drop
// this process's locks on it.
std::optional<struct stat> find_file(const std::filesystem::path& path) {
  struct stat found {};

  if (::stat(path.c_str(), &found) == 0)
    return found;
  if (errno == ENOENT || errno == ENOTDIR)
    return std::nullopt;
  throw error(errc::store_failed,
              fmt::format("look at {}: {}",
                          path.string(),
                          std::generic_category().message(errno)));
}

sqlite_file_id id_of(const struct stat& found) {
  return {.device = found.st_dev, .inode = found.st_ino};
}

} // namespace

const char* sqlite_history_lost::what() const noexcept {
  switch (why_) {
  case cause::removed:
    return "the file was removed while it was in use";
  case cause::replaced:
    return "the file was replaced while it was in use";
  case cause::overwritten:
    return "another program than SQLite wrote to the file while it was in use";
  case cause::went_back:
    break;
  }
  return "the file has gone back to an earlier state";
}

void sqlite_known_file::expect_at(const std::filesystem::path& path) const {
  const std::lock_guard guard(mutex_);
  if (!file_)
    return;
  const auto found = find_file(path);
  if (!found)
    throw sqlite_history_lost(sqlite_history_lost::cause::removed, logs_);
  if (id_of(*found) != *file_)
    throw sqlite_history_lost(sqlite_history_lost::cause::replaced, logs_);
}

bool sqlite_known_file::see(const sqlite_file_id& file,
                            std::vector<sqlite_log_salt> logs) {
  const std::lock_guard guard(mutex_);
  if (file_ && *file_ != file)
    return false;
  file_ = file;
  logs_ = std::move(logs);
  return true;
}

void sqlite_known_file::forget() {
  const std::lock_guard guard(mutex_);
  file_.reset();
  logs_.clear();
}

sqlite_watch::sqlite_watch(const sqlite_database& database,
                           std::filesystem::path path,
                           sqlite_known_file& shared)
  : database_(database),
    path_(std::move(path)),
    shared_(shared),
    known_(),
    known_index_(read_index()) {
  known_ = read_facts();
  int has_moved = 0;
  sqlite3_file_control(
    database.connection(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  // The path may have got another file between the opening and this check.
  if (has_moved != 0 || !shared_.see(known_.id, logs()))
    lose(sqlite_history_lost::cause::replaced);
}

void sqlite_watch::lose(sqlite_history_lost::cause why) const {
  throw sqlite_history_lost(why, logs());
}

// The log may have restarted since the last check. A restart changes the index
// at once, but the header only with the next frame, so both salts are
// collected.
std::vector<sqlite_log_salt> sqlite_watch::logs() const {
  std::vector<sqlite_log_salt> salts;
  for (const auto& index : {known_index_, read_index()})
    if (index)
      salts.push_back(index->salt);
  if (const auto header = read_log_header())
    salts.push_back(*header);
  return salts;
}

// The index is read before the facts and, if they differ, once more after. If
// it were read only once, a checkpoint that starts or ends between the two
// reads would look like a foreign write.
void sqlite_watch::check_file() {
  const auto before = read_index();
  const auto now = read_facts();
  if (now.id != known_.id)
    lose(sqlite_history_lost::cause::replaced);
  if (now.size != known_.size || now.modified != known_.modified) {
    // A checkpoint has written, or is writing now. Without an index it cannot
    // be distinguished from a foreign write, so the change is accepted.
    const auto behind = read_index();
    const bool is_ours = !behind || !known_index_ || behind->is_checkpointed()
                         || known_index_->is_checkpointed()
                         || *behind != *known_index_;
    if (!is_ours)
      lose(sqlite_history_lost::cause::overwritten);
  }
  const bool is_new_log
    = before && (!known_index_ || before->salt != known_index_->salt);
  known_ = now;
  known_index_ = before;
  if (is_new_log)
    shared_.see(now.id, logs());
}

bool sqlite_watch::has_open_checkpoint() const {
  return known_index_ && known_index_->is_checkpointed();
}

// Returns the database file or its log as SQLite has it open, or null.
sqlite3_file* sqlite_watch::open_file(int which) const {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(
        database_.connection(), "main", which, static_cast<void*>(&file))
        != SQLITE_OK
      || file == nullptr || file->pMethods == nullptr)
    return nullptr;
  return file;
}

// A connection that only reads does not ask: SQLite could create the index.
std::optional<sqlite_watch::log_index> sqlite_watch::read_index() const {
  if (sqlite3_db_readonly(database_.connection(), "main") == 1)
    return std::nullopt;
  auto* const file = open_file(SQLITE_FCNTL_FILE_POINTER);
  if (file == nullptr || file->pMethods->iVersion < 2
      || file->pMethods->xShmMap == nullptr)
    return std::nullopt;
  volatile void* region = nullptr;
  if (file->pMethods->xShmMap(file, 0, index_region_size, 0, &region)
        != SQLITE_OK
      || region == nullptr)
    return std::nullopt;
  log_index found;
  found.backfilled = number_at(region, backfilled_place);
  found.attempted = number_at(region, attempted_place);
  const auto* bytes = static_cast<const volatile unsigned char*>(region);
  for (std::size_t index = 0; index < found.salt.size(); ++index)
    found.salt[index] = bytes[salt_place + index];
  return found;
}

// Reads the log that the connection has open, whatever file the path names now.
std::optional<sqlite_log_salt> sqlite_watch::read_log_header() const {
  auto* const log = open_file(SQLITE_FCNTL_JOURNAL_POINTER);
  std::array<char, log_header_size> header{};
  if (log == nullptr
      || log->pMethods->xRead(
           log, header.data(), static_cast<int>(header.size()), 0)
           != SQLITE_OK)
    return std::nullopt;
  return salt_in(header);
}

sqlite_watch::file_facts sqlite_watch::read_facts() const {
  const auto found = find_file(path_);
  if (!found)
    lose(sqlite_history_lost::cause::removed);
  return {.id = id_of(*found),
          .size = found->st_size,
          .modified = std::int64_t{found->st_mtim.tv_sec} * 1'000'000'000
                      + found->st_mtim.tv_nsec};
}

std::optional<sqlite_log_salt>
salt_of_log_beside(const std::filesystem::path& file) {
  std::ifstream log(real_path(file) + "-wal", std::ios::binary);
  std::array<char, log_header_size> header{};
  if (!log.read(header.data(), header.size()))
    return std::nullopt;
  return salt_in(header);
}

} // namespace troupe
