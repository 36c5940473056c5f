// Checksums of rows. SQLite itself does not notice a changed byte in the text
// of a page.
//
// The SQL function `row_sum(…)` returns the CRC-32 of its arguments with their
// kinds and lengths. A row is sound if the stored sum equals the expression of
// its table below.

#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

namespace troupe {

namespace sums {

inline constexpr std::string_view fold_places = "row_sum(name,value)";
inline constexpr std::string_view scopes
  = "row_sum(app,user,session,revision,updated,keys)";
inline constexpr std::string_view entries = "row_sum(scope,number,log,id_hash)";
inline constexpr std::string_view shared_entries
  = "row_sum(scope,log,number,logs)";
inline constexpr std::string_view state = "row_sum(scope,key,value)";
inline constexpr std::string_view pasts = "row_sum(scope,past,revision)";
inline constexpr std::string_view first_states
  = "row_sum(scope,revision,updated,delta)";
inline constexpr std::string_view snapshots
  = "row_sum(scope,revision,updated,keys)";
inline constexpr std::string_view open_runs
  = "row_sum(scope,invocation,agent,holder,opened)";
inline constexpr std::string_view run_holders = "row_sum(id,renewed)";
/// Covers all columns but the body, which most readers skip.
inline constexpr std::string_view log_head
  = "row_sum(id,kind,session,user,app,session_revision,user_revision,"
    "app_revision,time,event,delta)";
inline constexpr std::string_view log_body = "row_sum(id,body)";

} // namespace sums

/// Returns a SELECT column that is 1 if the row is sound.
std::string is_sound(std::string_view column, std::string_view sum);

/// Adds `row_sum` to a connection. Throws `errc::store_failed`.
void add_row_sum(sqlite3* connection);

} // namespace troupe
