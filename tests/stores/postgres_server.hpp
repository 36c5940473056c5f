// A real PostgreSQL server for tests, on a socket in a folder of its own.

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

/// The constructor starts the server; the destructor stops it and deletes its
/// files. As root, the server runs as `postgres` or `nobody`, because it
/// refuses to run as root. Calls throw `std::runtime_error` with the message of
/// the server. The server ends with the thread that started it.
class postgres_server {
public:
  /// Selects whether commits wait for the disk. Only tests of power failures
  /// need it.
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

  /// The URL of the database; with a name, of a schema of its own in it.
  std::string url(std::string_view schema = {}) const;

  /// A URL that leads to the server of the two that accepts writes.
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

  /// Stops the background process that writes the log. A commit that does not
  /// wait for the disk is then lost when the server crashes.
  void hold_log();

  /// Waits until this standby has replayed all that its primary has written.
  void catch_up_with(postgres_server& primary);

  /// Stops the replication to this standby.
  void cut_off();

  /// Makes a standby that was cut off a primary.
  void promote();

  /// Takes a backup of the running server.
  void back_up();

  /// Replaces the data by the backup. The server must be stopped.
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
