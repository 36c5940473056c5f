// Tools for the checks of suite.hpp: a location, the stores open on it, changes
// that build on each other, and a list of failures.

#pragma once

#include "troupe/stores/conformance/suite.hpp"
#include "troupe/stores/shared/owner_names.hpp"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::conformance {

// -- writing ----

/// Returns the time so many microseconds after the epoch.
timestamp microseconds(std::int64_t since_epoch);

/// Makes an event with the text `id`; `state_delta` is an object of full keys.
event_ptr make_event(std::string id,
                     const json& state_delta = json::object(),
                     std::int64_t time = 1'000'000);

/// Makes changes; each builds on the changes made before.
class change_maker {
public:
  /// Makes the creation of a session at revision 0. `state` is an object of
  /// full keys; `time` is in microseconds since the epoch.
  store_change create(const session_key& key,
                      const json& state = json::object(),
                      std::int64_t time = 1'000'000);
  /// Makes the creation of a fork of `parent` at `revision`. `state` is an
  /// object of the parent's keys there, and `time` its newest time up to there.
  store_change fork(const session_key& key,
                    const std::string& parent,
                    std::uint64_t revision,
                    const json& state = json::object(),
                    std::int64_t time = 1'000'000);
  /// Appends this event. Also raises the revisions of the user and the app if
  /// the event changes their keys.
  store_change append(const session_key& key, event_ptr said);
  /// Appends an event with a new id.
  store_change append(const session_key& key,
                      const json& state_delta = json::object(),
                      std::int64_t time = 1'000'000);
  /// Changes keys of one owner without an event. `names` is an object of keys
  /// without prefix; null erases.
  store_change write(const owner_name& owner,
                     const json& names,
                     std::int64_t time = 1'000'000);
  /// Deletes the events of a session up to `revision`. `state` is an object of
  /// its keys there, and `time` its newest time up to there.
  store_change trim(const session_key& key,
                    std::uint64_t revision,
                    const json& state = json::object(),
                    std::int64_t time = 1'000'000);
  /// Deletes the session, and forgets its revision.
  store_change remove(const session_key& key);
  /// Deletes the user with all sessions, and forgets their revisions.
  store_change remove_user(const std::string& app, const std::string& user);

private:
  void touch_wider(store_change& change);

  std::map<owner_name, std::uint64_t> revisions_;
  std::size_t event_count_ = 0;
};

/// Owners that most checks use.
namespace names {

/// The session of most checks.
inline const session_key key{"press", "ann", "s1"};
/// A second session of the same user.
inline const session_key other{"press", "ann", "s2"};
/// The owner of `key`.
inline const owner_name session = owner_of(key);
/// The user of both sessions.
inline const owner_name user{"press", "ann"};
/// The app of the user.
inline const owner_name app{"press"};

} // namespace names

// -- reading ----

/// A limit that no number of events reaches.
inline constexpr auto all = std::numeric_limits<std::size_t>::max();

/// Returns the keys as an object, `{"key": value}`.
json shown(const state_map& keys);
/// Returns ADK's wire form, with the time in microseconds since the epoch; null
/// for no event.
json shown(const event_ptr& said);
/// Returns the events as a list, in their order.
json shown(const std::vector<event_ptr>& events);
/// Returns `{"keys": object, "revision": integer}`; null for no scope.
json shown(const std::optional<stored_scope>& scope);
/// Returns `{"scope": object, "last_update_time": microseconds, "events": list,
/// "id_hashes": [integer]}`, and `"first_revision": integer` of a trimmed one;
/// null for no session.
json shown(const std::optional<stored_session>& session);
/// Returns `{"key": [app, user, id], "session", "user", "app": object,
/// "revision": integer, "last_update_time": microseconds}`.
json shown(const session_row& row);
/// Returns the rows as a list, in their order.
json shown(const std::vector<session_row>& rows);
/// Returns a sorted list of `[app, user, session]`.
json shown(const std::vector<owner_name>& owners);

/// Makes a query for the first page of all sessions of an app.
row_query query_of(std::string app, std::size_t limit = 100);

/// Returns the ids of `events` as a list, in their order.
json ids_of(const std::vector<event_ptr>& events);

/// Returns the JSON that `shown` gives for such a scope.
json made_scope(const json& keys, std::uint64_t revision);

// -- one run of a check ----

/// One run of a check: a new location, the first store on it, and the failures
/// so far. A failure of a store is thrown as its `error`; `attempt` records it.
class run {
public:
  /// Opens the first store.
  explicit run(const store_factory& factory);

  /// The first store. The reference is valid until `reopen`.
  store& kept() { return *kept_; }

  /// Opens another store on the location.
  std::unique_ptr<store> open();

  /// Closes the first store and opens the location again.
  void reopen();

  /// Commits to the first store and expects that nothing has moved. Without
  /// `store_promise::mixed_apps`, each app is a commit of its own.
  void commit(const std::vector<store_change>& changes);
  /// Commits one change and expects that nothing has moved.
  void commit(store_change change);

  /// Commits to the first store and expects that exactly `owners` have moved.
  void expect_moved(std::string_view what,
                    const std::vector<store_change>& changes,
                    const std::vector<owner_name>& owners);

  /// Records a failure with the text `what` unless `holds`. Safe from
  /// any thread.
  void expect(std::string_view what, bool holds);

  /// Expects the same JSON, down to the type of a number. Safe from any thread.
  void
  expect_same(std::string_view what, const json& actual, const json& expected);

  /// Runs `act` and records an exception as a failure.
  void attempt(const std::function<void()>& act);

  /// Returns true if nothing has failed yet.
  bool is_well();

  /// Moves the failures out, in the order of their occurrence. Call it when no
  /// other thread records any more.
  std::vector<std::string> failures() &&;

private:
  void commit_together(const std::vector<store_change>& changes);

  bool has_mixed_apps_;
  store_opener opener_;
  std::unique_ptr<store> kept_;
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

/// Returns a whole scope of the first store.
json scope_of(run& on, const owner_name& owner);

/// Returns a session of the first store with all of its events.
json session_of(run& on, const session_key& key);

/// Makes a check that runs `body` on its own location.
conformance_check make_check(std::string name,
                             void (*body)(run&),
                             std::vector<store_promise> needs = {});

// The parts of the suite, which `conformance_checks` joins.

/// Returns the checks of `store::commit`.
std::vector<conformance_check> commit_checks();
/// Returns the checks of removed sessions and users.
std::vector<conformance_check> removal_checks();
/// Returns the checks of loads.
std::vector<conformance_check> load_checks();
/// Returns the checks of `store::list`.
std::vector<conformance_check> list_checks();
/// Returns the checks of stored events.
std::vector<conformance_check> event_checks();
/// Returns the checks of forks.
std::vector<conformance_check> fork_checks();
/// Returns the checks of trimmed sessions.
std::vector<conformance_check> trim_checks();
/// Returns the checks of open runs and their holders.
std::vector<conformance_check> open_run_checks();
/// Returns the checks of locations that are opened again or shared.
std::vector<conformance_check> place_checks();

} // namespace troupe::conformance
