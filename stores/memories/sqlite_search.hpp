// Searches of memories in a SQLite file. Each search has a connection of its
// own, so it waits neither for another search nor for a caller that waits to
// write.
//
// In a file with a rollback journal a search sees one committed state. A commit
// waits for the searches that have begun before it, and searches that begin
// meanwhile wait for the commit.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/key.hpp"
#include "troupe/stores/memory_entry.hpp"
#include "troupe/stores/store.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

class sqlite_memory_search {
public:
  /// `file` has the tables of memories. Connections are opened when they are
  /// needed first.
  explicit sqlite_memory_search(const std::filesystem::path& file);
  ~sqlite_memory_search();
  sqlite_memory_search(const sqlite_memory_search&) = delete;
  sqlite_memory_search& operator=(const sqlite_memory_search&) = delete;

  /// Returns the memories of the user with one of `words`, the best first, at
  /// most `limit`, which is above 0. Safe from any thread; searches run at the
  /// same time. Fails with `errc::store_failed` and `errc::corrupt`.
  result<std::vector<memory_entry>> find(const owner_name& user,
                                         const std::vector<std::string>& words,
                                         std::size_t limit);

private:
  class connection;

  std::unique_ptr<connection> take();
  void give_back(std::unique_ptr<connection> used);

  const std::filesystem::path file_;
  std::mutex mutex_; // Guards `idle_`, never held during a search.
  std::vector<std::unique_ptr<connection>> idle_;
};

} // namespace troupe
