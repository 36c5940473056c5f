// Baseline for durable appends: one transaction per append, and a row with the
// whole map as JSON for each scope, like in the database services of other ADK
// implementations.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <filesystem>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace bench {

/// For one connection and one thread. Throws `troupe::error` on failure.
class naive_sqlite {
public:
  explicit naive_sqlite(const std::filesystem::path& file);
  ~naive_sqlite();
  naive_sqlite(const naive_sqlite&) = delete;
  naive_sqlite& operator=(const naive_sqlite&) = delete;

  void append(const troupe::session_key& key, const troupe::event& said);

private:
  void run(const char* sql);
  sqlite3_stmt* prepare(const char* sql);
  void update(const std::string& owner,
              std::span<const troupe::operation> share);

  sqlite3* database_ = nullptr;
  sqlite3_stmt* load_ = nullptr;
  sqlite3_stmt* save_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};

} // namespace bench
