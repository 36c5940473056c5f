// Writes rows of the log into a PostgreSQL database with COPY, which costs less
// than one INSERT for each.

#pragma once

#include "troupe/stores/postgres/connection.hpp"
#include "troupe/stores/postgres/plan.hpp"
#include "troupe/stores/shared/stored_event.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// Used by one thread at a time.
class postgres_row_copy {
public:
  /// `writer` distinguishes this store's rows from those of others.
  explicit postgres_row_copy(std::int64_t writer) : writer_(writer) {}

  /// Returns the time limit for `rows` rows. An import is one commit of many
  /// rows; a row has at most one megabyte.
  static std::chrono::milliseconds limit(std::size_t rows);

  /// Writes `rows` and, if `commits` is set, commits. The pipeline must be
  /// empty. A row that cannot be encoded ends the transaction, too.
  result<void> write(postgres_connection& connection,
                     std::span<const planned_row> rows,
                     bool commits,
                     std::chrono::milliseconds limit,
                     std::string_view attempted);

private:
  result<void> append(const planned_row& row);

  const std::int64_t writer_;
  // Reused to save allocations.
  std::string buffer_;
  stored_event event_;
  std::string id_;
};

} // namespace troupe
