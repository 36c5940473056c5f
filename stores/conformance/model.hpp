// A model of a store: the same promises, kept in the simplest possible way.

#pragma once

#include "troupe/stores/conformance/run.hpp"
#include "troupe/stores/store.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::conformance {

/// Gives the expected answers, as JSON in the form of `shown`.
class store_model {
public:
  /// State of one owner: an app, a user or a session.
  struct kept_owner {
    json keys = json::object(); ///< Keys of this scope, without prefix.
    std::uint64_t revision = 0; ///< Number of changes since the creation.
    /// Time of a session's last update, in microseconds since the epoch; 0 for
    /// a user or an app.
    std::int64_t time = 0;
    /// Events by number.
    std::map<std::uint64_t, event_ptr> events;

    /// A session at one revision.
    struct earlier_state {
      json keys;             ///< Keys of the session.
      std::int64_t time = 0; ///< Newest time of the changes up to it.
      json user;             ///< Keys of the user at that moment.
      json app;              ///< Keys of the app at that moment.
    };

    /// Oldest revision that a trimmed session keeps, else 0. Older ones are not
    /// in `events` and `revisions`.
    std::uint64_t first = 0;

    /// Of a session: agent and holder of its open runs, by id.
    std::map<std::string, std::pair<std::string, std::string>> runs;

    /// Of a session: by revision. Copies of an owner share them.
    std::map<std::uint64_t, std::shared_ptr<const earlier_state>> revisions;
  };

  /// All owners that exist.
  using kept_owners = std::map<owner_name, kept_owner>;

  /// Applies all changes or none; returns the owners that have moved. `by` is
  /// the committing store, from 0 to `store_count - 1`.
  std::vector<owner_name> commit(const std::vector<store_change>& changes,
                                 std::size_t by);

  /// Returns the changes to report to store `by`, `{owner: revision or null}`.
  json changed_elsewhere(std::size_t by);

  /// Expected answer of `store::load_scope`; null if the owner does not exist.
  json load_scope(const owner_name& owner) const;
  /// Expected answer of `store::load_session`; null if the session does
  /// not exist.
  json load_session(const session_key& key, const load_options& options) const;
  /// Expected answer of `store::load_session_at`; null if the session does not
  /// exist, "not_found" if it has no such revision, "gone" if it has it no
  /// more.
  json load_session_at(const session_key& key,
                       std::uint64_t revision,
                       std::size_t events_max) const;
  /// Expected answer of `store::load_shared_state_at`, of a store that keeps
  /// the history of apps and users; null if the session has no such revision.
  json load_shared_state_at(const session_key& key,
                            std::uint64_t revision) const;
  /// Expected answer of `store::load_events`; empty if the session does
  /// not exist, "gone" if it does not have the first of them any more.
  json load_events(const session_key& key,
                   std::uint64_t first,
                   std::uint64_t last) const;
  /// Expected answer of `store::list`.
  json list(const row_query& query) const;
  /// Expected answer of `store::list_by_name`.
  json list_by_name(const name_query& query) const;

  /// Expected open runs of an app, "" for all: a list of `[app, user, session,
  /// id, agent, holder]`, by session and id.
  json list_runs(const std::string& app) const;

  /// The owners after all commits so far.
  const kept_owners& owners() const { return owners_; }

  /// Number of stores that may be open on the location.
  static constexpr std::size_t store_count = 2;

private:
  json row(const owner_name& owner, const kept_owner& kept) const;

  kept_owners owners_;
  std::set<owner_name> unreported_[store_count];
  std::set<owner_name>
    removed_[store_count]; // Subset of `unreported_`: owners that were removed.
};

/// A copy of the state to which changes are applied one after the other.
class trial {
public:
  /// Starts with this state.
  explicit trial(store_model::kept_owners owners)
    : owners_(std::move(owners)) {}

  /// Applies a change, even if it does not fit the state. The owners that do
  /// not fit are then in `moved`.
  void apply(const store_change& change);

  /// The state after all changes. It is of use only if `moved` is empty.
  store_model::kept_owners& owners() { return owners_; }

  /// Owners with a new revision, and removed ones.
  const std::set<owner_name>& changed() const { return changed_; }

  /// Owners that were removed, with the sessions of removed users.
  const std::set<owner_name>& removed() const { return removed_; }

  /// Owners whose state does not fit a change, so that the commit is refused.
  const std::set<owner_name>& moved() const { return moved_; }

private:
  store_model::kept_owner past_of(const store_change& fork);
  void trim(const store_change& change);
  void mark_runs(const store_change& change);
  void note_revision(const store_change& change);
  void advance(const owner_name& owner,
               const store_change& change,
               const std::optional<std::uint64_t>& revision);

  store_model::kept_owners owners_;
  std::set<owner_name> changed_;
  std::set<owner_name> removed_;
  std::set<owner_name> moved_;
};

} // namespace troupe::conformance
