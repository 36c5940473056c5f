// Databases of ADK Python for tests, from the SQL text in tests/cli/adk.

#pragma once

#include "stored_sessions.hpp"
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::testing {

/// Returns the content of a file.
inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns a file of tests/cli/adk.
inline std::string adk_sample(const std::string& name) {
  auto text = content_of("cli/adk/" + name);
  if (text.empty())
    throw std::runtime_error("there is no sample " + name);
  return text;
}

/// Runs statements on a SQLite file, which is created if it is missing. Returns
/// the first column of each row.
inline std::vector<std::string> run_sql(const std::string& file,
                                        const std::string& statements) {
  sqlite3* opened = nullptr;
  sqlite3_open(file.c_str(), &opened);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> connection(
    opened, sqlite3_close);
  std::vector<std::string> found;
  const auto take = [](void* rows, int, char** texts, char**) {
    static_cast<std::vector<std::string>*>(rows)->emplace_back(
      texts[0] != nullptr ? texts[0] : "");
    return 0;
  };
  char* failure = nullptr;
  if (sqlite3_exec(opened, statements.c_str(), take, &found, &failure)
      != SQLITE_OK)
    throw std::runtime_error(failure);
  return found;
}

/// A database of ADK, and stores beside it.
struct adk_database : stored_sessions {
  /// Makes the file from a sample.
  std::string make(const std::string& sample,
                   const std::string& name = "adk.db") const {
    const auto file = path() + '/' + name;
    run_sql(file, adk_sample(sample));
    return file;
  }

  ended import_from(const std::string& address,
                    const words& options = {},
                    const std::string& store_name = "troupe.db") const {
    return run(
      "import", joined({"--from", "adk", address}, options), {}, store_name);
  }

  /// Imports the file, which must succeed.
  std::vector<json> imported(const std::string& file,
                             const words& options = {}) const {
    const auto done = import_from("sqlite:" + file, options);
    if (done.code != 0)
      throw std::runtime_error(done.errors);
    return objects(done.output);
  }

  /// The session as `export` writes it.
  json exported(const words& key, const std::string& file = "troupe.db") const {
    return parse_json(run("export", key, {}, file).output).value();
  }
};

} // namespace troupe::testing
