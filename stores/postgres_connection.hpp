// One connection to a PostgreSQL server, by libpq: statements go out in a
// pipeline, and no answer is waited for longer than its deadline.

#pragma once

#include "troupe/core/error.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

// libpq's, declared here so that its header stays with those who call it.
struct pg_conn;
struct pg_result;
using PGconn = pg_conn;
using PGresult = pg_result;

namespace troupe {

/// Appends numbers and texts as PostgreSQL's binary formats have them.
namespace postgres_binary {

void append_int16(std::string& target, std::int16_t number);
void append_int32(std::string& target, std::int32_t number);
void append_int64(std::string& target, std::int64_t number);

} // namespace postgres_binary

/// A statement, prepared on each connection that runs it.
struct postgres_statement {
  const char* name;
  const char* text;
};

/// The parameters of one statement, `$1` first, in binary.
class postgres_parameters {
public:
  postgres_parameters& add(std::int64_t number);
  postgres_parameters& add(std::string_view text);
  postgres_parameters& add(std::span<const std::int64_t> numbers);
  postgres_parameters& add(std::span<const std::string_view> texts);

private:
  friend class postgres_connection;

  std::vector<std::string> values_;
};

/// What a statement returned; text and numbers are views of it.
class postgres_rows {
public:
  explicit postgres_rows(PGresult* answer) : answer_(answer) {}

  int size() const noexcept;
  int columns() const noexcept;
  bool is_null(int row, int column) const noexcept;
  std::string_view text(int row, int column) const noexcept;
  std::int64_t number(int row, int column) const noexcept;

private:
  struct closer {
    void operator()(PGresult* answer) const noexcept;
  };

  std::unique_ptr<PGresult, closer> answer_;
};

/// Not thread-safe. After a failure, whatever its kind, the connection is no
/// longer usable; ending it undoes a transaction that is open.
class postgres_connection {
public:
  /// Which servers will do, unless the URL says so itself.
  enum class server : std::uint8_t { primary, any };

  /// Connects, to the first of the URL's hosts that answers in time. Fails with
  /// `errc::invalid_argument` on a URL that does not read as one, and with
  /// `errc::store_failed`; no reason shows the password.
  static result<std::unique_ptr<postgres_connection>>
  open(const std::string& url, server wanted = server::primary);

  bool is_usable() const noexcept { return usable_; }

  /// Adds a statement to the pipeline.
  void queue(const postgres_statement& statement,
             const postgres_parameters& parameters = {});

  /// Sends the pipeline and waits for all answers, one per statement. Fails
  /// with `errc::store_failed`, or `errc::corrupt` if the server says so, with
  /// the first statement that failed; those behind it were not run.
  result<std::vector<postgres_rows>> run(std::string_view attempted,
                                         std::chrono::milliseconds limit);

  /// Runs statements that are not worth preparing, separated by semicolons.
  result<void> execute(std::string_view attempted,
                       const std::string& statements,
                       std::chrono::milliseconds limit);

  /// Starts `statement`, a COPY from here, maybe followed by others.
  result<void> start_copy(std::string_view attempted,
                          const std::string& statement,
                          std::chrono::milliseconds limit);

  /// Returns when the data is on its way, so that none of it piles up here.
  result<void> copy(std::string_view attempted, std::string_view data);

  /// Ends the COPY; with a reason the server undoes it. Waits for the
  /// statements behind it.
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
  /// What libpq says, on one line and without the secrets.
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
  std::vector<std::string> secrets_; // Of the URL.
  std::unordered_set<std::string_view> prepared_;
  // Per queued message, whether its answer is for the caller.
  std::vector<bool> queued_;
  bool usable_ = true;
  bool queue_failed_ = false;
  std::chrono::steady_clock::time_point deadline_;
};

/// Replaces every occurrence of `secret` in `text`.
std::string without_secret(std::string text, std::string_view secret);

} // namespace troupe
