#include "troupe/cli/session_import.hpp"

#include "troupe/cli/append_window.hpp"
#include "troupe/cli/visible_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::cli {

namespace {

/// The system's time, but for the creation of sessions that are older.
class past_environment : public environment {
public:
  timestamp now() override {
    const timestamp past = past_;
    return past == timestamp() ? present_->now() : past;
  }

  std::string new_id() override { return present_->new_id(); }

  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override {
    present_->call_after(delay, std::move(done));
  }

  /// Calls `create` while it is `time`, for every thread.
  template <class Create>
  auto at(timestamp time, const Create& create) {
    past_ = time;
    auto created = create();
    past_ = timestamp();
    return created;
  }

private:
  const std::shared_ptr<environment> present_ = system_environment();
  std::atomic<timestamp> past_{timestamp()};
};

/// A user, or an app: then without a user.
using wide_owner = std::pair<std::string, std::string>;

wide_owner owner_of(scope where, const session_key& key) {
  return {key.app, where == scope::user ? key.user : std::string()};
}

error with_name(const session_key& key, const error& why) {
  return error(why.code(),
               fmt::format("session {}: {}", to_string(key), why.message()));
}

class session_import {
public:
  session_import(const std::vector<portable_session>& read,
                 session_service& sessions,
                 past_environment& past,
                 const std::stop_token& stop)
    : read_(read),
      sessions_(sessions),
      past_(past),
      stop_(stop) {
    for (std::size_t index = 0; index < read.size(); ++index)
      for (const auto where : {scope::user, scope::app})
        last_of_[owner_of(where, read[index].key)] = index;
  }

  /// The session as it is then, without its events.
  result<session> run(std::size_t index) {
    const auto& from = read_[index];
    const auto created = past_.at(from.last_update_time, [this, &from] {
      return sessions_.create({.app = from.key.app,
                               .user = from.key.user,
                               .id = from.key.id,
                               .state = from.initial_state()});
    });
    if (!created)
      return created.error();
    auto done = append(from);
    if (done)
      done = settle(index);
    auto imported = done ? sessions_.get(from.key, {.num_recent_events = 0})
                         : result<session>(done.error());
    if (imported)
      return imported;
    // Half a session would be in the way of trying again.
    if (const auto removed = sessions_.remove(from.key); !removed)
      return error(imported.error().code(),
                   fmt::format("{}; and what was imported of it is still there "
                               "({})",
                               imported.error().message(),
                               removed.error().message()));
    return with_name(from.key, imported.error());
  }

private:
  result<void> append(const portable_session& from) {
    append_window window(sessions_, from.key, "event", {});
    std::size_t number = 0;
    for (const auto& said : from.events) {
      if (stop_.stop_requested())
        return error(errc::cancelled, "interrupted");
      auto bytes = check_event(said, {});
      if (!bytes)
        return bytes.error();
      if (auto pushed = window.push(said, ++number, *bytes); !pushed)
        return pushed;
    }
    return window.drain();
  }

  /// Makes the state what the file shows, as far as it is settled with this
  /// session.
  result<void> settle(std::size_t index) {
    const auto& from = read_[index];
    for (const auto& key : from.keys_of_events())
      if (const auto where = split_key(key).where; where != scope::session)
        touched_[owner_of(where, from.key)].insert(key);
    const auto reached = sessions_.get(from.key, {.num_recent_events = 0});
    if (!reached)
      return reached.error();
    const auto state = reached->state().all();
    auto changes = json::object();
    for (const auto& [key, wanted] : from.state.items())
      if (is_settled(key, index)
          && (!state.contains(key) || !equal(state[key], wanted)))
        changes[key] = wanted;
    for (const auto& [key, held] : state.items())
      if (is_settled(key, index) && !from.state.contains(key)
          && is_of_file(key, from.key))
        changes[key] = nullptr;
    if (changes.empty())
      return {};
    auto made = delta::from_json(changes);
    if (!made)
      return made.error();
    event correction;
    correction.author = "system";
    correction.timestamp = reached->last_update_time();
    correction.actions.state_delta = std::move(*made);
    auto appended = sessions_.append_event(from.key, std::move(correction), {});
    return appended ? result<void>() : appended.error();
  }

  bool is_settled(std::string_view key, std::size_t index) const {
    const auto where = split_key(key).where;
    return where == scope::session
           || last_of_.at(owner_of(where, read_[index].key)) == index;
  }

  /// Whether only what is imported can have made the key.
  bool is_of_file(std::string_view key, const session_key& session) const {
    const auto where = split_key(key).where;
    if (where == scope::session)
      return true;
    const auto found = touched_.find(owner_of(where, session));
    return found != touched_.end() && found->second.contains(key);
  }

  // All four outlive this, which lives for one call.
  const std::vector<portable_session>& read_;
  session_service& sessions_;
  past_environment& past_;
  const std::stop_token& stop_;
  // The last session of each owner.
  std::map<wide_owner, std::size_t> last_of_;
  // What events have done to the keys of wider owners so far.
  std::map<wide_owner, std::set<std::string, std::less<>>> touched_;
};

// The initial state of a session may be larger than any event.
std::size_t largest_state(const std::vector<portable_session>& read) {
  std::size_t bytes_max = 0;
  for (const auto& from : read)
    bytes_max = std::max(bytes_max, troupe::to_text(from.state).size());
  return bytes_max;
}

result<void> check_absent(const std::vector<portable_session>& read,
                          session_service& sessions) {
  for (const auto& from : read) {
    const auto found = sessions.get(from.key, {.num_recent_events = 0});
    if (found)
      return error(
        errc::already_exists,
        fmt::format("session {} already exists", to_string(from.key)));
    if (found.error().code() != errc::not_found)
      return found.error();
  }
  return {};
}

result<void> check_keys(std::vector<portable_session>& read) {
  std::set<session_key> keys;
  for (std::size_t index = 0; index < read.size(); ++index) {
    auto& from = read[index];
    auto key = check_key(from.key);
    if (!key)
      return error(key.error().code(),
                   fmt::format("session {} of the file: {}",
                               index + 1,
                               key.error().message()));
    from.key = std::move(*key);
    if (!keys.insert(from.key).second)
      return error(errc::invalid_argument,
                   fmt::format("session {} comes twice", to_string(from.key)));
  }
  return {};
}

} // namespace

result<void> import_sessions(std::vector<portable_session> read,
                             runtime_options options,
                             output& target,
                             const std::stop_token& stop) {
  if (auto sound = check_keys(read); !sound)
    return sound;
  const auto past = std::make_shared<past_environment>();
  options.environment = past;
  options.limits.event_bytes_max += largest_state(read) * 2;
  auto owners = runtime::open(std::move(options));
  if (!owners)
    return owners.error();
  auto& sessions = owners->sessions();
  if (auto absent = check_absent(read, sessions); !absent)
    return absent;
  session_import all(read, sessions, *past, stop);
  for (std::size_t index = 0; index < read.size(); ++index) {
    const auto imported = all.run(index);
    if (!imported)
      return imported.error();
    const auto line = visible_json(to_json(*imported)) + '\n';
    if (auto written = target.write(line); !written)
      return written;
  }
  return {};
}

} // namespace troupe::cli
