// A real PostgreSQL server for tests, on a socket in a folder of its own.

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

/// Starts when it is made; gone, files and all, when it ends. As root, the
/// server runs as `postgres` or `nobody`, because it refuses to run as root.
/// Calls throw `std::runtime_error` with the server's own words. Ends with the
/// thread that started it.
class postgres_server {
public:
  /// Whether commits wait for the disk; only tests of what a power failure
  /// would leave need it.
  enum class syncing : bool { off, on };

  /// `settings` as in `max_connections=20`.
  explicit postgres_server(syncing disk = syncing::off,
                           std::vector<std::string> settings = {});

  struct standby_of {
    const postgres_server& primary;
  };

  /// A standby that streams from its primary, asynchronously.
  explicit postgres_server(standby_of source);

  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;
  ~postgres_server();

  /// Of the database; with a name, of a schema of its own in it.
  std::string url(std::string_view schema = {}) const;

  /// A URL that leads to whichever of both can be written to.
  static std::string url_of_either(const postgres_server& one,
                                   const postgres_server& other,
                                   std::string_view schema);

  /// Runs a statement; returns the first value of its first row.
  std::string ask(const std::string& statement) const;

  void start();

  enum class stopping { fast, immediate };

  /// `fast` ends the sessions in good order, `immediate` as a crash would.
  void stop(stopping how);

  /// Kills it with SIGKILL.
  void kill();

  /// Stops the process that writes the log in the background. A commit that
  /// does not wait for the disk is then lost when the server ends as in a
  /// crash.
  void hold_log();

  /// A standby receives nothing more.
  void cut_off();

  /// A standby that was cut off becomes a primary.
  void promote();

  /// Takes a backup while it runs.
  void back_up();

  /// Puts the backup in the place of the data. Must not run.
  void restore();

private:
  void make_folder();
  void run_to_end(const std::vector<std::string>& command) const;
  void wait_until_ready();
  void wait_for_end();

  std::filesystem::path folder_;
  std::filesystem::path programs_;
  syncing disk_;
  std::vector<std::string> settings_;
  pid_t running_ = 0;
  pid_t held_ = 0;
};

} // namespace troupe::testing
