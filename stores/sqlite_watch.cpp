#include "troupe/stores/sqlite_watch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace troupe {

namespace {

// Places in the index of the write-ahead log, from SQLite's "WAL-mode File
// Format". They have not changed since version 3.7.0, and `nBackfillAttempted`
// not since 3.9.0.
constexpr std::size_t salt_place = 32;
constexpr std::size_t backfilled_place = 96;
constexpr std::size_t attempted_place = 128;
constexpr int index_region_size = 32'768;

// In the header of the write-ahead log itself.
constexpr std::size_t log_header_size = 32;
constexpr std::size_t log_salt_place = 16;

std::uint32_t number_at(const volatile void* region, std::size_t place) {
  const auto* words = static_cast<const volatile std::uint32_t*>(region);
  return words[place / sizeof(std::uint32_t)];
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

sqlite_watch::sqlite_watch(const sqlite_database& database)
  : database_(database),
    path_(sqlite3_db_filename(database.connection(), "main")),
    known_(),
    known_index_(read_index()) {
  known_ = read_facts();
  int has_moved = 0;
  sqlite3_file_control(
    database.connection(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  // The path was given to another file before the first look.
  if (has_moved != 0)
    lose(sqlite_history_lost::cause::replaced);
}

void sqlite_watch::lose(sqlite_history_lost::cause why) const {
  throw sqlite_history_lost(why, log());
}

std::optional<sqlite_log_salt> sqlite_watch::log() const {
  const auto index = known_index_ ? known_index_ : read_index();
  return index ? std::optional(index->salt) : std::nullopt;
}

void sqlite_watch::look() {
  const auto before = read_index();
  const auto now = read_facts();
  if (now.device != known_.device || now.inode != known_.inode)
    lose(sqlite_history_lost::cause::replaced);
  if (now.size != known_.size || now.modified != known_.modified) {
    // A checkpoint has written, or writes now. Without an index nothing can be
    // told.
    const auto behind = read_index();
    const bool is_ours = !behind || !known_index_ || behind->is_checkpointed()
                         || known_index_->is_checkpointed()
                         || *behind != *known_index_;
    if (!is_ours)
      lose(sqlite_history_lost::cause::overwritten);
  }
  known_ = now;
  known_index_ = before;
}

// Not of a connection that only reads: to ask for the index could make it.
std::optional<sqlite_watch::log_index> sqlite_watch::read_index() const {
  if (sqlite3_db_readonly(database_.connection(), "main") == 1)
    return std::nullopt;
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(database_.connection(),
                           "main",
                           SQLITE_FCNTL_FILE_POINTER,
                           static_cast<void*>(&file))
        != SQLITE_OK
      || file == nullptr || file->pMethods == nullptr
      || file->pMethods->iVersion < 2 || file->pMethods->xShmMap == nullptr)
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

// By its path: to open and close the file would drop the locks of this
// process.
sqlite_watch::file_facts sqlite_watch::read_facts() const {
  struct stat found {};

  if (::stat(path_.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      lose(sqlite_history_lost::cause::removed);
    throw error(errc::store_failed,
                fmt::format("look at {}: {}",
                            path_,
                            std::generic_category().message(errno)));
  }
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .size = found.st_size,
          .modified = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000
                      + found.st_mtim.tv_nsec};
}

std::optional<sqlite_log_salt>
salt_of_log_beside(const std::filesystem::path& file) {
  std::ifstream log(file.string() + "-wal", std::ios::binary);
  std::array<char, log_header_size> header{};
  if (!log.read(header.data(), header.size()))
    return std::nullopt;
  sqlite_log_salt salt{};
  std::memcpy(salt.data(), header.data() + log_salt_place, salt.size());
  return salt;
}

} // namespace troupe
