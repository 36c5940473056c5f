// A connection to a PostgreSQL server, based on libpq. Statements are sent in a
// pipeline, and every wait has a deadline.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/stores/postgres/statement.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

// Declared here so that only the sources that call libpq include its header.
struct pg_conn;
using PGconn = pg_conn;

namespace troupe {

/// Not thread-safe. After any failure the connection is unusable. Closing it
/// rolls back an open transaction.
class postgres_connection {
public:
  /// The servers to accept, unless the URL has `target_session_attrs`.
  enum class server : std::uint8_t { primary, any };

  /// Connects to the first host of the URL that answers in time. Fails with
  /// `errc::invalid_argument` on a URL with a flaw, and with
  /// `errc::store_failed`. No error text contains the password.
  static result<std::unique_ptr<postgres_connection>>
  open(const std::string& url, server wanted = server::primary);

  bool is_usable() const noexcept { return usable_; }

  /// Adds a statement to the pipeline.
  void queue(const postgres_statement& statement,
             const postgres_parameters& parameters = {});

  /// Sends the pipeline and waits for all answers, one per statement. Fails
  /// with `errc::store_failed`, or `errc::corrupt` if the server reports
  /// damage, and describes the first statement that failed. Later statements
  /// were not run.
  result<std::vector<postgres_rows>> run(std::string_view attempted,
                                         std::chrono::milliseconds limit);

  /// Runs statements without preparing them; they are separated by semicolons.
  result<void> execute(std::string_view attempted,
                       const std::string& statements,
                       std::chrono::milliseconds limit);

  /// Starts a COPY from here. Other statements may follow it in the text.
  result<void> start_copy(std::string_view attempted,
                          const std::string& statement,
                          std::chrono::milliseconds limit);

  /// Sends data of the COPY. Returns when libpq has sent it, so that memory
  /// stays bounded.
  result<void> copy(std::string_view attempted, std::string_view data);

  /// Ends the COPY and waits for it and the statements after it. With a
  /// `reason` the server cancels the COPY.
  result<void> end_copy(std::string_view attempted,
                        const char* reason = nullptr);

private:
  struct closer {
    void operator()(PGconn* connection) const noexcept;
  };

  postgres_connection(PGconn* connection, std::vector<std::string> secrets)
    : connection_(connection),
      secrets_(std::move(secrets)) {}

  static result<std::unique_ptr<postgres_connection>>
  connect(const std::vector<std::pair<std::string, std::string>>& settings,
          const std::vector<std::string>& secrets);
  /// Returns libpq's text on one line and without the secrets.
  std::string shown(std::string text) const;
  error failure(std::string_view attempted, const PGresult* answer = nullptr);
  error broken(std::string_view attempted, std::string_view why = {});
  result<void> wait(std::string_view attempted, bool for_writing);
  result<void> send(std::string_view attempted);
  result<void> start(std::string_view attempted,
                     const std::string& statements,
                     std::chrono::milliseconds limit);
  result<PGresult*> next_answer(std::string_view attempted);
  result<void> take_all(std::string_view attempted);

  std::unique_ptr<PGconn, closer> connection_;
  std::vector<std::string> secrets_; // Passwords in the URL.
  std::unordered_set<std::string_view> prepared_;
  // One per queued message; true if its answer is for the caller.
  std::vector<bool> queued_;
  bool usable_ = true;
  bool queue_failed_ = false;
  std::chrono::steady_clock::time_point deadline_;
};

/// Replaces every occurrence of `secret` in `text` by `***`.
std::string without_secret(std::string text, std::string_view secret);

} // namespace troupe
