#include "troupe/cli/sessions/import.hpp"

#include "troupe/cli/sessions/state_rehearsal.hpp"
#include "troupe/cli/terminal/count_progress.hpp"
#include "troupe/cli/terminal/visible_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe::cli {

namespace {

// An imported session is not used again.
constexpr std::size_t live_sessions_max = 64;

/// A user, or an app with an empty user name.
using wide_owner = std::pair<std::string, std::string>;

wide_owner owner_of(scope where, const session_key& key) {
  return {key.app, where == scope::user ? key.user : std::string()};
}

error with_name(const session_key& key, const error& why) {
  return error(why.code(),
               fmt::format("session {}: {}", to_string(key), why.message()));
}

timestamp newest_time(const portable_session& from) {
  auto newest = from.last_update_time;
  for (const auto& said : from.events)
    newest = std::max(newest, said.timestamp);
  return newest;
}

class session_import {
public:
  session_import(const import_source& from,
                 const std::vector<bool>& existing,
                 session_service& sessions)
    : from_(from),
      sessions_(sessions) {
    for (std::size_t index = 0; index < from.keys.size(); ++index)
      for (const auto where : {scope::user, scope::app}) {
        const auto owner = owner_of(where, from.keys[index]);
        if (!existing[index])
          imported_.insert(owner);
        // Each session of a file has the keys of its owners. A session of
        // another source may lack them.
        if (!existing[index] || from.read_state)
          last_of_[owner] = index;
        if (from.read_state && existing[index])
          unsettled_.insert(owner);
        else
          unsettled_.erase(owner);
      }
  }

  /// Creates the session with its events; returns it without them.
  result<session> run(std::size_t index) {
    auto read = from_.read(index);
    if (!read)
      return read.error();
    auto imported = create(index, std::move(*read));
    return imported
             ? imported
             : result<session>(with_name(from_.keys[index], imported.error()));
  }

  /// Notes the keys that the events of an existing session have changed.
  result<void> skip(std::size_t index) {
    const auto read = from_.read(index);
    if (!read)
      return read.error();
    note_wider_keys(*read);
    return {};
  }

  /// Owners of imported sessions whose newest session is skipped: the events of
  /// older ones may have set their keys back.
  std::vector<import_source::owner> unsettled() const {
    std::vector<import_source::owner> found;
    for (const auto& [app, user] : unsettled_)
      if (imported_.contains({app, user}))
        found.push_back(
          {app, user.empty() ? std::nullopt : std::optional(user)});
    return found;
  }

  /// Sets the keys of an owner that differ from those of the source.
  result<void> set_keys(const import_source::owner& owner) {
    const auto wanted = from_.read_state(owner);
    if (!wanted)
      return wanted.error();
    const auto state = owner.user
                         ? sessions_.state_of_user(owner.app, *owner.user)
                         : sessions_.state_of_app(owner.app);
    const auto held = state.snapshot().get();
    if (!held)
      return held.error();
    for (const auto& [key, value] : wanted->items())
      if (const auto present = held->state.find(key);
          !present || !equal(present->data(), value))
        if (const auto set = state.set(key, value).get(); !set)
          return set.error();
    return {};
  }

private:
  result<session> create(std::size_t index, portable_session from) {
    std::erase_if(from.events, [](const event& said) { return said.partial; });
    note_wider_keys(from);
    auto initial = from.initial_state();
    const auto correction = find_correction(index, from, initial);
    if (!correction)
      return correction.error();
    create_request wanted{from.key.app, from.key.user, from.key.id};
    wanted.state = std::move(initial);
    wanted.last_update_time = from.last_update_time;
    wanted.events = std::move(from.events);
    if (!correction->actions.state_delta.empty())
      wanted.events.push_back(*correction);
    return sessions_.create(std::move(wanted)).get();
  }

  void note_wider_keys(const portable_session& from) {
    for (const auto& key : from.keys_of_events())
      if (const auto where = split_key(key).where; where != scope::session)
        touched_[owner_of(where, from.key)].insert(key);
  }

  /// The state after the session's events, provided that no other writer
  /// changes user and app meanwhile.
  result<json> reached_state(const portable_session& from,
                             const json& initial) {
    const auto user = sessions_.user_state(from.key.app, from.key.user).get();
    if (!user)
      return user.error();
    const auto app = sessions_.app_state(from.key.app).get();
    if (!app)
      return app.error();
    state_rehearsal rehearsed(*user, *app);
    auto first = delta::from_json(initial);
    if (!first)
      return first.error();
    if (auto applied = rehearsed.apply(*first); !applied)
      return applied.error();
    std::size_t number = 0;
    for (const auto& said : from.events) {
      ++number;
      if (auto applied = rehearsed.apply(said.actions.state_delta); !applied)
        return error(
          applied.error().code(),
          fmt::format("event {}: {}", number, applied.error().message()));
    }
    return rehearsed.state();
  }

  /// Makes an event that changes the reached state into that of the file, for
  /// the keys that this session is the last to change.
  result<event> find_correction(std::size_t index,
                                const portable_session& from,
                                const json& initial) {
    const auto reached = reached_state(from, initial);
    if (!reached)
      return reached.error();
    auto changes = json::object();
    for (const auto& [key, wanted] : from.state.items())
      if (is_settled(key, index)
          && (!reached->contains(key) || !equal((*reached)[key], wanted)))
        changes[key] = wanted;
    for (const auto& [key, held] : reached->items())
      if (is_settled(key, index) && !from.state.contains(key)
          && is_of_file(key, from.key))
        changes[key] = nullptr;
    auto made = delta::from_json(changes);
    if (!made)
      return made.error();
    event correction;
    correction.author = "system";
    correction.timestamp = newest_time(from);
    correction.actions.state_delta = std::move(*made);
    return correction;
  }

  bool is_settled(std::string_view key, std::size_t index) const {
    const auto where = split_key(key).where;
    return where == scope::session
           || last_of_.at(owner_of(where, from_.keys[index])) == index;
  }

  /// Returns true if only imported sessions can have set the key.
  bool is_of_file(std::string_view key, const session_key& session) const {
    const auto where = split_key(key).where;
    if (where == scope::session)
      return true;
    const auto found = touched_.find(owner_of(where, session));
    return found != touched_.end() && found->second.contains(key);
  }

  // Both outlive this, which exists during one call.
  const import_source& from_;
  session_service& sessions_;
  std::set<wide_owner> imported_; // Owners of sessions that are not skipped.
  std::set<wide_owner> unsettled_;
  // Index of the last session of each owner.
  std::map<wide_owner, std::size_t> last_of_;
  // Keys of wider owners that events have changed so far.
  std::map<wide_owner, std::set<std::string, std::less<>>> touched_;
};

// The initial state of a session may be larger than the limit of events.
std::size_t largest_state(const std::vector<portable_session>& read) {
  std::size_t bytes_max = 0;
  for (const auto& from : read)
    bytes_max = std::max(bytes_max, troupe::to_text(from.state).size());
  return bytes_max;
}

// Finds the sessions that exist already. Fails with `errc::already_exists`
// unless they are to be skipped.
result<std::vector<bool>> find_existing(const std::vector<session_key>& keys,
                                        bool skip_existing,
                                        session_service& sessions) {
  std::vector<bool> existing;
  for (const auto& key : keys) {
    const auto found = sessions.get(key, {.num_recent_events = 0}).get();
    if (found && !skip_existing)
      return error(errc::already_exists,
                   fmt::format("session {} already exists", to_string(key)));
    if (!found && found.error().code() != errc::not_found)
      return found.error();
    existing.push_back(found.has_value());
  }
  return existing;
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

result<import_counts> import_sessions(const import_source& from,
                                      runtime_options options,
                                      bool skip_existing,
                                      output& target,
                                      const std::stop_token& stop) {
  options.limits.event_bytes_max += from.state_bytes_max * 2;
  options.live_sessions_max = live_sessions_max;
  auto owners = runtime::open(std::move(options));
  if (!owners)
    return owners.error();
  auto& sessions = owners->sessions();
  const auto existing = find_existing(from.keys, skip_existing, sessions);
  if (!existing)
    return existing.error();
  session_import all(from, *existing, sessions);
  count_progress shown("imported", from.keys.size(), "sessions");
  import_counts counts;
  for (std::size_t index = 0; index < from.keys.size(); ++index) {
    if (stop.stop_requested())
      return error(errc::cancelled, "interrupted");
    shown.show(index);
    if ((*existing)[index]) {
      ++counts.skipped;
      if (auto skipped = all.skip(index); !skipped)
        return skipped.error();
      continue;
    }
    const auto imported = all.run(index);
    if (!imported)
      return imported.error();
    ++counts.sessions;
    counts.events += imported->revision();
    const auto line = visible_json(to_json(*imported)) + '\n';
    shown.clear();
    if (auto written = target.write(line); !written)
      return written.error();
  }
  auto owners_to_set = all.unsettled();
  owners_to_set.insert(
    owners_to_set.end(), from.owners.begin(), from.owners.end());
  for (const auto& owner : owners_to_set) {
    if (stop.stop_requested())
      return error(errc::cancelled, "interrupted");
    if (auto set = all.set_keys(owner); !set)
      return set.error();
  }
  return counts;
}

result<import_counts> import_sessions(std::vector<portable_session> read,
                                      runtime_options options,
                                      bool skip_existing,
                                      output& target,
                                      const std::stop_token& stop) {
  if (auto sound = check_keys(read); !sound)
    return sound.error();
  std::ranges::stable_sort(read, {}, [](const portable_session& from) {
    const auto time = newest_time(from);
    return time == timestamp() ? timestamp::max() : time;
  });
  import_source from;
  for (const auto& each : read)
    from.keys.push_back(each.key);
  from.state_bytes_max = largest_state(read);
  from.read = [&read](std::size_t index) -> result<portable_session> {
    return std::move(read[index]);
  };
  return import_sessions(from, std::move(options), skip_existing, target, stop);
}

} // namespace troupe::cli
