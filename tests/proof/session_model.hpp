// The session service, one call at a time: what concurrent histories and
// simulated runs are compared with.
//
// Plain maps of JSON and a loop per operation. It takes and gives core's
// values, but shares no code with the owners: it evaluates deltas itself.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session_request.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
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
};

struct page_view {
  std::vector<session_view> sessions;
  /// Of this model's own kind; empty on the last page.
  std::string next_cursor;
};

struct model_options {
  size_limits limits = {};
  /// Of the newest events. A runtime remembers all: another number is a model
  /// that must be told apart.
  std::size_t remembered_ids = SIZE_MAX / 2;
};

/// A value: a copy is a snapshot. Fails as `session_service` does, for the same
/// reasons in the same order.
class session_model {
public:
  explicit session_model(model_options options = {})
    : options_(std::move(options)) {}

  /// What `create` and `append` take for the time where none is given.
  timestamp now{};

  result<session_view> create(create_request request);
  result<session_view> get(const session_key& key,
                           const get_options& options = {}) const;
  result<page_view> list(const list_request& request) const;

  /// Ids that are missing are counted: `model-1`, `model-2`, …
  result<event_ptr>
  append(const session_key& key, event said, const append_options& how = {});

  result<bool> remove(const session_key& key);
  result<bool> remove_user(const std::string& app, const std::string& user);
  result<json> get_user_state(const std::string& app,
                              const std::string& user) const;
  result<json> get_app_state(const std::string& app) const;

  /// How many events (or creations) have touched an owner; 0 if it is unknown.
  std::uint64_t user_revision(const std::string& app,
                              const std::string& user) const;
  std::uint64_t app_revision(const std::string& app) const;

  /// The keys of all sessions, in order.
  std::vector<session_key> sessions() const;

private:
  using user_key = std::pair<std::string, std::string>;
  using keys = std::map<std::string, json>;

  struct owner {
    keys state;
    std::uint64_t revision = 0;
  };

  struct log {
    keys state;
    std::vector<event_ptr> events;
    std::map<std::string, std::size_t> places; // Newest event of each id.
    timestamp last_update_time;
  };

  std::string new_id() { return "model-" + std::to_string(++ids_); }

  session_view view(const session_key& key, const log& held) const;

  const model_options options_;
  std::map<session_key, log> sessions_;
  std::map<user_key, owner> users_;
  std::map<std::string, owner> apps_;
  std::uint64_t ids_ = 0;
};

} // namespace troupe::testing
