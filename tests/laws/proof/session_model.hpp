// A sequential model of the session service. Concurrent histories and simulated
// runs are compared with it.
//
// It keeps plain maps of JSON and has a loop per operation. It uses the values
// of core, but shares no code with the owners: it evaluates deltas itself. It
// keeps the state of a session after each of its events.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/core/shared_write.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// A session as `get` and `list` show it.
struct session_view {
  session_key key;
  /// All scopes merged: `{"topic": …, "user:name": …}`.
  json state;
  std::vector<event_ptr> events;
  timestamp last_update_time;
  std::uint64_t revision = 0;
  /// True if the session has events after this revision.
  bool is_earlier = false;
};

struct page_view {
  std::vector<session_view> sessions;
  /// A cursor of this model, not of a runtime; empty on the last page.
  std::string next_cursor;
};

struct model_options {
  size_limits limits = {};
  /// Number of newest events whose ids are remembered. A runtime remembers all;
  /// tests use a smaller number to see that the comparison fails.
  std::size_t remembered_ids = SIZE_MAX / 2;
  /// Earlier revisions have the user's and the app's keys of their time, as
  /// over SQLite; else the present ones.
  bool keeps_shared_state = false;
};

/// Returns the wire form of an event without the records of its operations,
/// which the model does not keep.
json without_records(const event& said);

/// A value: a copy is a snapshot. Fails as `session_service` does, for the same
/// reasons in the same order.
class session_model {
public:
  explicit session_model(model_options options = {})
    : options_(std::move(options)) {}

  /// The time that `create` and `append` use when none is given.
  timestamp now{};

  result<session_view> create(create_request request);
  result<session_view> get(const session_key& key,
                           const get_options& options = {}) const;
  result<page_view> list(const list_request& request) const;

  /// Makes a fork without the event that names its origin; append that next.
  result<session_view>
  fork(const session_key& parent, const fork_options& options, std::string id);

  /// Fills in missing ids by counting: `model-1`, `model-2`, …
  result<event_ptr>
  append(const session_key& key, event said, const append_options& how = {});

  /// Appends `said`, a rewind, with the changes that set the session's keys to
  /// their values of as many events ago as it takes back.
  result<event_ptr> rewind(const session_key& key, event said);

  /// Writes keys of a user, or of the app if `user` is unset, without a
  /// session. An empty id is not remembered.
  result<shared_write>
  write(const std::string& app,
        const std::optional<std::string>& user,
        const delta& changes,
        const std::string& id,
        const std::optional<std::uint64_t>& expected_revision = {});

  result<bool> remove(const session_key& key);
  result<bool> remove_user(const std::string& app, const std::string& user);
  result<json> get_user_state(const std::string& app,
                              const std::string& user) const;
  result<json> get_app_state(const std::string& app) const;

  /// Number of events, creations and writes that touched the owner; 0 if it is
  /// unknown.
  std::uint64_t user_revision(const std::string& app,
                              const std::string& user) const;
  std::uint64_t app_revision(const std::string& app) const;

  /// The keys of all sessions, in order.
  std::vector<session_key> sessions() const;

private:
  using user_key = std::pair<std::string, std::string>;
  using keys = std::map<std::string, json>;

  struct remembered_write {
    std::string id;
    std::string operations;
    shared_write answer;
  };

  struct owner {
    keys state;
    std::uint64_t revision = 0;
    std::vector<remembered_write> writes; // The newest 64, oldest first.
  };

  // The keys after one of a session's events, or after its creation.
  struct moment {
    keys state;
    timestamp last_update_time;
    keys user;
    keys app;
  };

  struct log {
    keys state;
    std::vector<event_ptr> events;
    std::map<std::string, std::size_t> places; // Newest event of each id.
    timestamp last_update_time;
    /// By revision. Shared, because models are copied.
    std::vector<std::shared_ptr<const moment>> moments;

    void note_moment(const owner& user, const owner& app) {
      moments.push_back(std::make_shared<const moment>(
        moment{state, last_update_time, user.state, app.state}));
    }
  };

  std::string new_id() { return "model-" + std::to_string(++ids_); }

  session_view
  view(const session_key& key, const log& held, std::uint64_t revision) const;

  const model_options options_;
  std::map<session_key, log> sessions_;
  std::map<user_key, owner> users_;
  std::map<std::string, owner> apps_;
  std::uint64_t ids_ = 0;
};

} // namespace troupe::testing
