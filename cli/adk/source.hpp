// A database of ADK as a source of sessions to import.

#pragma once

#include "troupe/cli/adk/tables.hpp"
#include "troupe/cli/sessions/import.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cli {

/// Selects sessions; an unset name selects all.
struct adk_choice {
  std::optional<std::string> app;
  std::optional<std::string> user;
  std::optional<std::string> session;
};

/// Opens the database at `sqlite:PATH` or `postgres:URL`, which is only read.
/// Fails with `errc::invalid_argument` on another address, and like
/// `open_adk_sqlite`.
result<std::unique_ptr<adk_tables>> open_adk_tables(std::string_view address);

/// Reads and checks all chosen sessions, one after another, and forgets them
/// again; shows its progress. The source reads each of them a second time when
/// it is imported, and keeps `tables` alive.
///
/// The `app:` and `user:` keys that no chosen event touches come with the first
/// session of their owner, the others with the last one.
///
/// Fails with the table and the row that cannot be imported, and with
/// `errc::not_found` if a choice selects nothing.
result<import_source> make_adk_source(std::shared_ptr<adk_tables> tables,
                                      const adk_choice& chosen);

} // namespace troupe::cli
