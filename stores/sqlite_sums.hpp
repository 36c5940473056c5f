// Checksums of rows: to SQLite a page is sound whose text has a changed byte.
//
// The SQL function `row_sum(…)` gives the CRC-32 of the values given, their
// kinds and lengths. A row is sound while the number that is stored beside it
// is what the expression of its table below gives.

#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

namespace troupe {

namespace sums {

inline constexpr std::string_view folding = "row_sum(name,value)";
inline constexpr std::string_view scopes
  = "row_sum(app,user,session,revision,updated,keys)";
inline constexpr std::string_view entries = "row_sum(scope,number,log,id_hash)";
inline constexpr std::string_view state = "row_sum(scope,key,value)";
/// Of all but the body, which most do not read.
inline constexpr std::string_view log_head
  = "row_sum(id,kind,session,user,app,session_revision,user_revision,"
    "app_revision,time,event,delta)";
inline constexpr std::string_view log_body = "row_sum(id,body)";

} // namespace sums

/// For a column of a SELECT: 1 if the row is sound.
std::string is_sound(std::string_view column, std::string_view sum);

/// Teaches a connection `row_sum`. Throws.
void add_row_sum(sqlite3* connection);

} // namespace troupe
