// A real PostgreSQL server for tests, on a socket in a folder of its own.

#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

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

  explicit postgres_server(syncing disk = syncing::off);
  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;
  ~postgres_server();

  /// Of the database; with a name, of a schema of its own in it.
  std::string url(std::string_view schema = {}) const;

  void start();

  enum class stopping { fast, immediate };

  /// `fast` ends the sessions in good order, `immediate` as a crash would.
  void stop(stopping how);

  /// Kills it with SIGKILL.
  void kill();

private:
  void wait_until_ready();
  void wait_for_end();

  std::filesystem::path folder_;
  std::filesystem::path programs_;
  syncing disk_;
  pid_t running_ = 0;
};

} // namespace troupe::testing
