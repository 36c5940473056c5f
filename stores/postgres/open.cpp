#include "troupe/stores/postgres/open.hpp"

#include "troupe/stores/postgres/check.hpp"
#include "troupe/stores/postgres/folder.hpp"
#include "troupe/stores/postgres/reader.hpp"
#include "troupe/stores/postgres/runs.hpp"
#include "troupe/stores/postgres/session_list.hpp"
#include "troupe/stores/postgres/turn_lock.hpp"
#include "troupe/stores/postgres/writer.hpp"
#include "troupe/stores/shared/owner_names.hpp"
#include "troupe/stores/turns/write_turns.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

namespace {

// Each turn begins with a load of the owners, which takes longer than from a
// file. A shorter span keeps the waits of the others short. A look is a
// question to the server.
constexpr turn_limits postgres_turns{.span = std::chrono::milliseconds(6),
                                     .look = std::chrono::milliseconds(10)};

class postgres_store : public store {
public:
  postgres_store(const std::string& url, postgres_setup setup)
    : pool_(url, std::move(setup)),
      writer_(pool_, history_, hot_),
      turns_(std::make_unique<postgres_turn_lock>(pool_), postgres_turns) {
    if (!pool_.setup().read_only)
      folder_.emplace(pool_);
  }

  result<void> open() { return writer_.open(); }

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    turns_.begin_commit(changes);
    auto outcome = writer_.commit(changes);
    if (outcome)
      turns_.end_commit(changes, *outcome);
    else
      turns_.end_failed();
    if (outcome && outcome->moved.empty() && outcome->kept_out.empty())
      folder_->added(changes.size());
    return outcome;
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    turns_.begin_look();
    auto moved = writer_.changed_elsewhere();
    if (moved)
      turns_.end_look(*moved);
    else
      turns_.end_failed();
    return moved;
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    return pool_.with([&](postgres_connection& connection) {
      return load_postgres_scope(connection, history_, hot_, owner);
    });
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    return pool_.with([&](postgres_connection& connection) {
      return load_postgres_session(
        connection, history_, owner_of(key), options);
    });
  }

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override {
    return pool_.with([&](postgres_connection& connection) {
      return load_postgres_at(connection, history_, key, revision, events_max);
    });
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    return pool_.with([&](postgres_connection& connection) {
      return load_postgres_events(
        connection, history_, owner_of(key), first, last);
    });
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    return pool_.with([&](postgres_connection& connection) {
      return find_postgres_events(connection, history_, owner_of(key), ids);
    });
  }

  bool can_fork() const noexcept override { return true; }

  bool can_trim() const noexcept override { return true; }

  std::optional<lost_history> take_lost_history() override {
    return writer_.take_lost_history();
  }

  result<std::vector<session_row>> list(const row_query& query) override {
    return list_folded("sessions", [&](postgres_connection& connection) {
      return list_postgres_sessions(connection, history_, query);
    });
  }

  result<std::vector<session_row>>
  list_by_name(const name_query& query) override {
    return list_folded("sessions", [&](postgres_connection& connection) {
      return list_postgres_sessions(connection, history_, query);
    });
  }

  result<std::vector<std::string>>
  list_users(const user_query& query) override {
    return pool_.with([&](postgres_connection& connection) {
      return list_postgres_users(connection, history_, query);
    });
  }

  result<std::vector<std::string>> list_apps(const app_query& query) override {
    return list_folded("apps", [&](postgres_connection& connection) {
      return list_postgres_apps(connection, history_, query);
    });
  }

  bool can_list_runs() const noexcept override { return true; }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    return pool_.with([&](postgres_connection& connection) {
      return list_postgres_runs(connection, history_, query);
    });
  }

  result<void> renew_holder(const std::string& id) override {
    return pool_.with([&](postgres_connection& connection) {
      return renew_postgres_holder(connection, id);
    });
  }

  result<void> remove_holder(const std::string& id) override {
    return pool_.with([&](postgres_connection& connection) {
      return remove_postgres_holder(connection, id);
    });
  }

  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override {
    return pool_.with([&](postgres_connection& connection) {
      return check_postgres(connection, on_progress);
    });
  }

  result<void> close() override {
    if (!folder_)
      return {};
    folder_->stop();
    return folder_->fold();
  }

private:
  // Calls `read` with a connection after the folding of all commits.
  template <class Read>
  std::invoke_result_t<Read, postgres_connection&>
  list_folded(std::string_view what, const Read& read) {
    if (!folder_)
      return error(
        errc::store_failed,
        fmt::format("list {}: a store that was opened read-only does not fold "
                    "its log",
                    what));
    if (auto folded = folder_->fold(); !folded)
      return folded.error();
    return pool_.with(read);
  }

  postgres_pool pool_;
  postgres_history history_;
  hot_states hot_;
  postgres_writer writer_;
  write_turns turns_;
  std::optional<postgres_folder> folder_; ///< Unset for a read-only store.
};

} // namespace

result<std::unique_ptr<store>>
open_postgres_store(const std::string& url, const store_options& options) {
  auto connection = postgres_connection::open(
    url,
    options.read_only ? postgres_connection::server::any
                      : postgres_connection::server::primary);
  if (!connection)
    return connection.error();
  auto setup = prepare_schema(**connection, options);
  if (!setup)
    return setup.error();
  auto opened = std::make_unique<postgres_store>(url, *std::move(setup));
  if (auto watching = opened->open(); !watching)
    return watching.error();
  return opened;
}

std::string libpq_version() {
  return fmt::format(
    "libpq {}.{}", PQlibVersion() / 10'000, PQlibVersion() % 10'000);
}

} // namespace troupe
