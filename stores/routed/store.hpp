// Several databases as one store. Each app, with all its users and sessions, is
// in one of them.
//
// A commit is atomic in one database, so it changes apps of one alone. The
// queue of the runtime commits to each database by itself (`part`), and a
// database that fails does not fail the others.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One database of a `routed_store`.
struct routed_part {
  /// Name of the database in errors, warnings and findings, without passwords.
  std::string name;
  /// The store in the database; not null.
  std::unique_ptr<store> kept;
};

/// Passes each call on to the database of its app. Lists of all apps and of all
/// open runs are merged. Such a list, and the changes of other processes, leave
/// out apps in a database that is not theirs: their loads would not find them.
/// `check` reports these apps.
///
/// A call for several databases reaches all of them, and then fails with the
/// error of the first that failed. The threading rules are those of `store`.
class routed_store final : public store {
public:
  /// Returns the index of an app's database, below the number of parts. It
  /// always returns the same one, and is called on any thread.
  using router = std::function<std::size_t(std::string_view app)>;

  /// `parts` has at least one database.
  routed_store(std::vector<routed_part> parts, router part_of);

  /// Number of databases.
  std::size_t part_count() const noexcept { return parts_.size(); }

  /// The index of an app's database.
  std::size_t part_of(std::string_view app) const { return part_of_(app); }

  /// One database. Callers of its members keep the threading rules of `store`,
  /// together with the calls of this object.
  store& part(std::size_t index) noexcept { return *parts_[index].kept; }

  /// Returns the failure with the name of its database.
  error named(const error& failure, std::size_t index) const;

  /// Fails with `errc::invalid_argument`, without effect, if the changes are of
  /// apps in several databases.
  result<commit_outcome> commit(std::span<const store_change> changes) override;

  /// After a failure, the changes that other databases reported come with the
  /// next call that succeeds. A commit before that names removed owners as
  /// moved.
  result<std::vector<moved_owner>> changed_elsewhere() override;

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override;

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override;

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override;

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override;

  result<std::optional<earlier_shared_state>>
  load_shared_state_at(const session_key& key, std::uint64_t revision) override;

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override;

  /// These three return true if all databases do.
  bool can_fork() const noexcept override;
  bool can_trim() const noexcept override;
  bool can_list_runs() const noexcept override;

  result<std::vector<open_run>> list_runs(const run_query& query) override;

  /// Renews the holder in all databases.
  result<void> renew_holder(const std::string& id) override;

  /// Removes the holder from all databases.
  result<void> remove_holder(const std::string& id) override;

  /// Adds up the commits and joins the warnings.
  std::optional<lost_history> take_lost_history() override;

  result<std::vector<session_row>> list(const row_query& query) override;

  result<std::vector<session_row>>
  list_by_name(const name_query& query) override;

  result<std::vector<std::string>> list_users(const user_query& query) override;

  result<std::vector<std::string>> list_apps(const app_query& query) override;

  /// Checks one database after the other. Also finds apps in a database that is
  /// not theirs.
  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override;

  result<void> close() override;

private:
  std::vector<owner_name> take_removed(std::span<const store_change> changes);

  result<std::vector<std::string>> apps_of(std::size_t index,
                                           const app_query& query);
  result<std::vector<open_run>> runs_of(std::size_t index, run_query query);
  result<void> find_misplaced(std::size_t index,
                              std::vector<std::string>& findings);

  std::vector<routed_part> parts_;
  router part_of_;
  // Changes of other processes that no call has returned yet.
  std::vector<moved_owner> unreported_;
};

} // namespace troupe
