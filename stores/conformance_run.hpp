// What the checks of conformance.hpp are written with: a place, the stores open
// on it, changes that build on each other, and a list of what failed.

#pragma once

#include "troupe/stores/conformance.hpp"

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

// -- what is written ----

timestamp microseconds(std::int64_t since_epoch);

owner_name owner_of(const session_key& key);
owner_name user_of(const owner_name& owner);
owner_name app_of(const owner_name& owner);

/// An event that says `id`; `state_delta` is an object of full keys.
event_ptr make_event(std::string id,
                     const json& state_delta = json::object(),
                     std::int64_t time = 1'000'000);

/// Makes changes, each on top of those made before.
class change_maker {
public:
  store_change create(const session_key& key,
                      const json& state = json::object(),
                      std::int64_t time = 1'000'000);
  store_change append(const session_key& key, event_ptr said);
  /// Appends an event with an id of its own.
  store_change append(const session_key& key,
                      const json& state_delta = json::object(),
                      std::int64_t time = 1'000'000);
  /// `names` are without prefix.
  store_change write(const owner_name& owner,
                     const json& names,
                     std::int64_t time = 1'000'000);
  store_change remove(const session_key& key);
  store_change remove_user(const std::string& app, const std::string& user);

private:
  void touch_wider(store_change& change);

  std::map<owner_name, std::uint64_t> revisions_;
  std::size_t event_count_ = 0;
};

// -- what is read ----

inline constexpr auto all = std::numeric_limits<std::size_t>::max();

json shown(const state_map& keys);
json shown(const event_ptr& said); ///< Exact, also in its time.
json shown(const std::vector<event_ptr>& events);
json shown(const std::optional<stored_scope>& scope);
json shown(const std::optional<stored_session>& session);
json shown(const session_row& row);
json shown(const std::vector<session_row>& rows);
json shown(const std::vector<owner_name>& owners); ///< Sorted.

row_query query_of(std::string app, std::size_t limit = 100);

/// The ids of `events`.
json ids_of(const std::vector<event_ptr>& events);

/// A scope as `shown`.
json made_scope(const json& keys, std::uint64_t revision);

// -- one run of a check ----

class run {
public:
  /// Opens the first store.
  explicit run(const store_factory& factory);

  store& kept() { return *kept_; }

  /// Opens one more store on the place.
  std::unique_ptr<store> open();

  /// Closes the first store and opens the place again.
  void reopen();

  /// Commits to the first store, and expects that nothing has moved.
  void commit(const std::vector<store_change>& changes);
  void commit(store_change change);

  /// Expects that exactly `owners` have moved.
  void expect_moved(std::string_view what,
                    const std::vector<store_change>& changes,
                    const std::vector<owner_name>& owners);

  /// Safe from any thread.
  void expect(std::string_view what, bool holds);

  /// Expects the same JSON, down to the type of a number. Safe from any thread.
  void
  expect_same(std::string_view what, const json& actual, const json& expected);

  /// Adds a failure that `act` throws.
  void attempt(const std::function<void()>& act);

  /// Whether nothing has failed yet.
  bool is_well();

  std::vector<std::string> failures() &&;

private:
  store_opener opener_;
  std::unique_ptr<store> kept_;
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

/// A scope of the first store, whole.
json scope_of(run& on, const owner_name& owner);

/// A session of it, with all of its events.
json session_of(run& on, const session_key& key);

/// A check that runs `body` on a place of its own.
conformance_check make_check(std::string name,
                             void (*body)(run&),
                             std::vector<store_promise> needs = {});

std::vector<conformance_check> commit_checks();
std::vector<conformance_check> removal_checks();
std::vector<conformance_check> load_checks();
std::vector<conformance_check> list_checks();
std::vector<conformance_check> event_checks();
std::vector<conformance_check> place_checks();

} // namespace troupe::conformance
