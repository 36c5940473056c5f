#include "troupe/stores/conformance/model.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::conformance {

void trial::apply(const store_change& change) {
  const auto& owner = change.owner;
  switch (change.kind) {
  case change_kind::create:
    if (owners_.contains(owner))
      moved_.insert(owner);
    owners_[owner] = change.past ? past_of(change) : store_model::kept_owner();
    owners_[owner].time = change.event->timestamp.time_since_epoch().count();
    owners_[user_of(owner)];
    owners_[app_of(owner)];
    break;
  case change_kind::remove:
    if (owners_.erase(owner) == 0)
      moved_.insert(owner);
    changed_.insert(owner);
    removed_.insert(owner);
    return;
  case change_kind::remove_user:
    std::erase_if(owners_, [this, &owner](const auto& kept) {
      if (user_of(kept.first) != owner)
        return false;
      changed_.insert(kept.first);
      removed_.insert(kept.first);
      return true;
    });
    return;
  case change_kind::trim:
    trim(change);
    return;
  case change_kind::close_runs:
    mark_runs(change);
    return;
  case change_kind::append:
  case change_kind::write:
    if (owner.where() == scope::session && !owners_.contains(owner))
      moved_.insert(owner);
    break;
  }
  advance(owner, change, change.session_revision);
  advance(user_of(owner), change, change.user_revision);
  advance(app_of(owner), change, change.app_revision);
  note_revision(change);
  mark_runs(change);
}

void trial::mark_runs(const store_change& change) {
  const auto found = owners_.find(change.owner);
  if (found == owners_.end())
    return;
  auto& runs = found->second.runs;
  for (const auto& mark : change.runs) {
    if (mark.opens)
      runs[mark.invocation_id] = {mark.agent, mark.holder};
    else
      std::erase_if(runs, [&mark](const auto& each) {
        return each.first == mark.invocation_id
               && (mark.holder.empty() || each.second.second == mark.holder);
      });
  }
}

// The change made a revision of a session: keeps its keys, and those of the
// user and the app as they are then.
void trial::note_revision(const store_change& change) {
  if (change.owner.where() != scope::session || !change.session_revision)
    return;
  auto& kept = owners_[change.owner];
  kept.revisions[*change.session_revision]
    = std::make_shared<const store_model::kept_owner::earlier_state>(
      store_model::kept_owner::earlier_state{
        .keys = kept.keys,
        .time = kept.time,
        .user = owners_[user_of(change.owner)].keys,
        .app = owners_[app_of(change.owner)].keys});
}

void trial::trim(const store_change& change) {
  const auto found = owners_.find(change.owner);
  const auto revision = change.kept->revision;
  if (found == owners_.end() || found->second.revision < revision) {
    moved_.insert(change.owner);
    return;
  }
  auto& kept = found->second;
  if (revision <= kept.first)
    return;
  kept.first = revision;
  kept.events.erase(kept.events.begin(), kept.events.upper_bound(revision));
  kept.revisions.erase(kept.revisions.begin(),
                       kept.revisions.lower_bound(revision));
}

// The events and the earlier states that a fork begins with.
store_model::kept_owner trial::past_of(const store_change& fork) {
  const owner_name parent{fork.owner.app, fork.owner.user, fork.past->session};
  const auto found = owners_.find(parent);
  if (found == owners_.end() || parent == fork.owner
      || found->second.revision < fork.past->revision) {
    moved_.insert(parent);
    return {};
  }
  auto past = found->second;
  past.keys = json::object();
  past.runs.clear();
  const auto last = fork.past->revision;
  past.events.erase(past.events.upper_bound(last), past.events.end());
  past.revisions.erase(past.revisions.lower_bound(last), past.revisions.end());
  past.first = std::min(past.first, last);
  return past;
}

void trial::advance(const owner_name& owner,
                    const store_change& change,
                    const std::optional<std::uint64_t>& revision) {
  if (!revision)
    return;
  auto& kept = owners_[owner];
  changed_.insert(owner);
  const bool is_new
    = owner == change.owner && change.kind == change_kind::create;
  if (!is_new && kept.revision + 1 != *revision)
    moved_.insert(owner);
  kept.revision = *revision;
  const auto touched = change.event->actions.state_delta.to_json();
  for (const auto& [name, data] : touched.items()) {
    const auto parts = split_key(name);
    if (parts.where != owner.where())
      continue;
    if (data.is_null())
      kept.keys.erase(std::string(parts.name));
    else
      kept.keys[std::string(parts.name)] = data;
  }
  if (owner.where() != scope::session)
    return;
  kept.time = std::max<std::int64_t>(
    kept.time, change.event->timestamp.time_since_epoch().count());
  if (change.kind == change_kind::append)
    kept.events[*revision] = change.event;
}

std::vector<owner_name>
store_model::commit(const std::vector<store_change>& changes, std::size_t by) {
  trial tried(owners_);
  for (const auto& change : changes)
    tried.apply(change);
  auto moved = tried.moved();
  for (const auto& gone : removed_[by])
    if (std::ranges::any_of(changes, [&gone](const store_change& change) {
          return gone.session.empty()
                   ? user_of(change.owner) == gone && change.user_revision
                   : change.owner == gone
                       && change.kind != change_kind::close_runs;
        }))
      moved.insert(gone);
  if (!moved.empty()) {
    for (const auto& told : moved)
      removed_[by].erase(told);
    return {moved.begin(), moved.end()};
  }
  owners_ = std::move(tried.owners());
  for (std::size_t other = 0; other < store_count; ++other)
    if (other != by) {
      unreported_[other].insert(tried.changed().begin(), tried.changed().end());
      removed_[other].insert(tried.removed().begin(), tried.removed().end());
    }
  return {};
}

json store_model::changed_elsewhere(std::size_t by) {
  auto told = json::object();
  removed_[by].clear();
  for (const auto& owner : std::exchange(unreported_[by], {})) {
    const auto found = owners_.find(owner);
    told[to_string(owner)]
      = found == owners_.end() ? json() : json(found->second.revision);
  }
  return told;
}

json store_model::load_scope(const owner_name& owner) const {
  const auto found = owners_.find(owner);
  if (found == owners_.end())
    return nullptr;
  return {{"keys", found->second.keys}, {"revision", found->second.revision}};
}

json store_model::load_session(const session_key& key,
                               const load_options& options) const {
  const auto found = owners_.find(owner_of(key));
  if (found == owners_.end())
    return nullptr;
  const auto& kept = found->second;
  auto events = json::array();
  auto hashes = json::array();
  auto left = kept.events.size();
  for (const auto& [number, said] : kept.events) {
    const bool is_wanted = number > options.after;
    if (is_wanted && left <= options.events_max)
      events.push_back(shown(said));
    if (is_wanted && left <= options.ids_max)
      hashes.push_back(id_hash(said->id));
    --left;
  }
  json session{{"scope", load_scope(owner_of(key))},
               {"last_update_time", kept.time},
               {"events", events},
               {"id_hashes", hashes}};
  if (kept.first > 0)
    session["first_revision"] = kept.first;
  return session;
}

json store_model::load_session_at(const session_key& key,
                                  std::uint64_t revision,
                                  std::size_t events_max) const {
  const auto found = owners_.find(owner_of(key));
  if (found == owners_.end())
    return nullptr;
  if (revision < found->second.first)
    return "gone";
  const auto past = found->second.revisions.find(revision);
  if (past == found->second.revisions.end())
    return "not_found";
  std::vector<event_ptr> events;
  for (const auto& [number, said] : found->second.events)
    if (number <= revision)
      events.push_back(said);
  const auto left_out = events.size() - std::min(events_max, events.size());
  events.erase(events.begin(),
               events.begin() + static_cast<std::ptrdiff_t>(left_out));
  json session{
    {"scope", {{"keys", past->second->keys}, {"revision", revision}}},
    {"last_update_time", past->second->time},
    {"events", shown(events)},
    {"id_hashes", json::array()}};
  if (found->second.first > 0)
    session["first_revision"] = found->second.first;
  return session;
}

json store_model::load_shared_state_at(const session_key& key,
                                       std::uint64_t revision) const {
  const auto found = owners_.find(owner_of(key));
  if (found == owners_.end())
    return nullptr;
  const auto past = found->second.revisions.find(revision);
  if (past == found->second.revisions.end())
    return nullptr;
  return {{"user", past->second->user}, {"app", past->second->app}};
}

json store_model::load_events(const session_key& key,
                              std::uint64_t first,
                              std::uint64_t last) const {
  auto events = json::array();
  const auto found = owners_.find(owner_of(key));
  if (found == owners_.end())
    return events;
  if (first <= found->second.first)
    return "gone";
  for (const auto& [number, said] : found->second.events)
    if (first <= number && number <= last)
      events.push_back(shown(said));
  return events;
}

json store_model::row(const owner_name& owner, const kept_owner& kept) const {
  return {{"key", {owner.app, owner.user, owner.session}},
          {"session", kept.keys},
          {"user", owners_.at(user_of(owner)).keys},
          {"app", owners_.at(app_of(owner)).keys},
          {"revision", kept.revision},
          {"last_update_time", kept.time}};
}

json store_model::list(const row_query& query) const {
  const auto rank = [](const owner_name& owner, std::int64_t time) {
    // Newest first. A minus would overflow.
    return std::tuple(~time, owner.user, owner.session);
  };
  std::map<decltype(rank({}, 0)), json> rows;
  for (const auto& [owner, kept] : owners_) {
    if (owner.where() != scope::session || owner.app != query.app
        || (query.user && owner.user != *query.user))
      continue;
    const auto ranked = rank(owner, kept.time);
    if (query.behind
        && ranked
             <= rank({"", query.behind->user, query.behind->session},
                     query.behind->last_update_time.time_since_epoch().count()))
      continue;
    rows[ranked] = row(owner, kept);
  }
  auto list = json::array();
  for (const auto& [ranked, row] : rows)
    if (list.size() < query.limit)
      list.push_back(row);
  return list;
}

json store_model::list_runs(const std::string& app) const {
  auto list = json::array();
  for (const auto& [owner, kept] : owners_)
    if (app.empty() || owner.app == app)
      for (const auto& [id, run] : kept.runs)
        list.push_back(
          {owner.app, owner.user, owner.session, id, run.first, run.second});
  return list;
}

json store_model::list_by_name(const name_query& query) const {
  auto list = json::array();
  // The owners are sorted by app, user and session.
  for (const auto& [owner, kept] : owners_) {
    if (owner.where() != scope::session || owner.app != query.app
        || (query.user && owner.user != *query.user)
        || (query.behind
            && std::tie(owner.user, owner.session)
                 <= std::tie(query.behind->user, query.behind->id)))
      continue;
    if (list.size() < query.limit)
      list.push_back(row(owner, kept));
  }
  return list;
}

} // namespace troupe::conformance
