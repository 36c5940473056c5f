#include "session_model.hpp"

#include "troupe/core/rewind.hpp"

#include "model_rules.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::testing {

json without_records(const event& said) {
  auto shown = to_json(said);
  shown["actions"].erase("appliedOps");
  return shown;
}

namespace {

// Compares two shares. The stored share is resolved; where the other has typed
// operations, only the keys can be compared.
bool is_same_share(std::span<const operation> stored,
                   std::span<const operation> again) {
  model_rules::keys before;
  model_rules::keys now;
  for (const auto& done : stored)
    before[done.name] = done.operand.data();
  for (const auto& done : again)
    now[done.name] = done.operand.data();
  const bool typed
    = std::ranges::any_of(again, model_rules::needs_what_is_there);
  return std::ranges::equal(
    before, now, [typed](const auto& one, const auto& other) {
      return one.first == other.first
             && (typed || model_rules::is_same(one.second, other.second));
    });
}

bool is_same_event(const event& stored, const event& again) {
  auto before = without_records(stored);
  auto now = without_records(again);
  for (auto* shown : {&before, &now}) {
    shown->erase("timestamp");
    shown->erase("invocationId");
    (*shown)["actions"].erase("stateDelta");
    (*shown)["actions"].erase("stateOps");
  }
  if (!model_rules::is_same(before, now))
    return false;
  for (const auto where : {scope::session, scope::user, scope::app})
    if (!is_same_share(stored.actions.state_delta.share(where),
                       again.actions.state_delta.share(where)))
      return false;
  return true;
}

bool is_blank(const std::string& id) {
  return id.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

// A rewind carries all keys that it restores.
result<void> check_said(const event& said, size_limits limits) {
  if (is_rewind(said))
    limits.event_bytes_max *= 64;
  if (!said.id.empty())
    if (auto id = check_id(said.id, "event id"); !id)
      return id.error();
  if (auto bytes = check_event(said, limits); !bytes)
    return bytes.error();
  return {};
}

void put(delta& stored, scope where, const model_rules::keys& touched) {
  for (const auto& [name, data] : touched)
    stored.record(join_key(where, name), operation_kind::set, data).value();
}

error unknown(const session_key& key) {
  return {errc::not_found, "the model has no session " + to_string(key)};
}

error unknown_revision(const session_key& key, std::uint64_t revision) {
  return {errc::not_found,
          "the session " + to_string(key) + " of the model has no revision "
            + std::to_string(revision)};
}

// Orders rows by time, newest first, then by name.
auto rank(const session_view& row) {
  return std::tuple(
    -row.last_update_time.time_since_epoch().count(), row.key.user, row.key.id);
}

} // namespace

// -- calls ----

session_view session_model::view(const session_key& key,
                                 const log& held,
                                 std::uint64_t revision) const {
  const auto& then = *held.moments[revision];
  auto state = model_rules::as_object(then.state);
  const bool has_moved = revision < held.events.size();
  const bool is_then = options_.keeps_shared_state && has_moved;
  for (const auto& [name, data] :
       is_then ? then.user : users_.at({key.app, key.user}).state)
    state["user:" + name] = data;
  for (const auto& [name, data] : is_then ? then.app : apps_.at(key.app).state)
    state["app:" + name] = data;
  const auto end = held.events.begin() + static_cast<std::ptrdiff_t>(revision);
  return {key,
          std::move(state),
          {held.events.begin(), end},
          then.last_update_time,
          revision,
          has_moved};
}

result<session_view> session_model::create(create_request request) {
  if (is_blank(request.id))
    request.id = new_id();
  const auto key = check_key({request.app, request.user, request.id});
  if (!key)
    return key.error();
  if (!request.state.is_object())
    return error(errc::invalid_argument, "the initial state is no object");
  auto given = json::object();
  for (const auto& [name, data] : request.state.items())
    if (!data.is_null())
      given[name] = data;
  auto initial = delta::from_json(given);
  if (!initial)
    return initial.error();
  initial->drop(scope::temp);
  event carrier;
  carrier.actions.state_delta = *initial;
  if (auto checked = check_said(carrier, options_.limits); !checked)
    return checked.error();
  if (sessions_.contains(*key))
    return error(errc::already_exists, "the model has it");

  auto& made = sessions_[*key];
  auto& user = users_[{key->app, key->user}];
  auto& app = apps_[key->app];
  made.last_update_time = now;
  user.revision += !initial->share(scope::user).empty();
  app.revision += !initial->share(scope::app).empty();
  for (const auto& done : initial->operations())
    (done.where == scope::app    ? app.state
     : done.where == scope::user ? user.state
                                 : made.state)[done.name]
      = done.operand.data();
  made.note_moment(user, app);
  return view(*key, made, 0);
}

result<session_view> session_model::get(const session_key& asked,
                                        const get_options& options) const {
  const auto key = check_key(asked);
  if (!key)
    return key.error();
  const auto found = sessions_.find(*key);
  if (found == sessions_.end())
    return unknown(*key);
  const auto newest = found->second.events.size();
  if (options.at && *options.at > newest)
    return unknown_revision(*key, *options.at);
  auto shown = view(*key, found->second, options.at.value_or(newest));
  auto& events = shown.events;
  if (const auto count = options.num_recent_events.value_or(events.size());
      count < events.size())
    events.erase(events.begin(),
                 events.end() - static_cast<std::ptrdiff_t>(count));
  if (options.after)
    std::erase_if(events, [&options](const event_ptr& said) {
      return said->timestamp < *options.after;
    });
  return shown;
}

result<page_view> session_model::list(const list_request& request) const {
  const auto app = check_id(request.app, "app");
  if (!app)
    return app.error();
  std::optional<std::string> user;
  if (request.user) {
    auto checked = check_id(*request.user, "user");
    if (!checked)
      return checked.error();
    user = std::move(*checked);
  }
  json behind;
  if (!request.cursor.empty())
    behind = json::parse(request.cursor, nullptr, false);
  if (behind.is_discarded() || (!behind.is_null() && !behind.is_array())
      || request.limit == 0)
    return error(errc::invalid_argument, "a foreign cursor, or no limit");

  page_view page;
  for (const auto& [key, held] : sessions_) {
    if (key.app != *app || (user && key.user != *user))
      continue;
    auto row = view(key, held, held.events.size());
    row.events.clear();
    if (behind.is_null()
        || rank(row) > std::tuple(behind[0].get<std::int64_t>(),
                                  behind[1].get<std::string>(),
                                  behind[2].get<std::string>()))
      page.sessions.push_back(std::move(row));
  }
  std::ranges::sort(page.sessions, {}, rank);
  if (page.sessions.size() > request.limit) {
    page.sessions.resize(request.limit);
    const auto& [time, by, id] = rank(page.sessions.back());
    page.next_cursor = json::array({time, by, id}).dump();
  }
  return page;
}

result<event_ptr> session_model::append(const session_key& asked,
                                        event said,
                                        const append_options& how) {
  if (said.partial)
    return std::make_shared<const event>(std::move(said));
  const auto key = check_key(asked);
  if (!key)
    return key.error();
  if (auto checked = check_said(said, options_.limits); !checked)
    return checked.error();
  const auto found = sessions_.find(*key);
  if (found == sessions_.end())
    return unknown(*key);
  auto& held = found->second;

  if (said.id.empty())
    said.id = new_id();
  if (said.invocation_id.empty())
    said.invocation_id = "e-" + new_id();
  if (said.timestamp == timestamp())
    said.timestamp = now;
  auto& changes = said.actions.state_delta;
  changes.drop(scope::temp);

  if (const auto place = held.places.find(said.id);
      place != held.places.end()
      && place->second + options_.remembered_ids >= held.events.size()) {
    const auto& earlier = held.events[place->second];
    if (!is_same_event(*earlier, said))
      return error(errc::conflict, "the id has other content");
    return earlier;
  }
  if (how.expected_revision && *how.expected_revision != held.events.size())
    return error(errc::conflict, "the revision is another");

  auto& user = users_.at({key->app, key->user});
  auto& app = apps_.at(key->app);
  const auto own = model_rules::judge(
    changes.share(scope::session), held.state, options_.limits);
  if (!own)
    return own.error();
  const auto of_user = model_rules::judge(
    changes.share(scope::user), user.state, options_.limits);
  if (!of_user)
    return of_user.error();
  const auto of_app
    = model_rules::judge(changes.share(scope::app), app.state, options_.limits);
  if (!of_app)
    return of_app.error();

  model_rules::install(held.state, *own);
  model_rules::install(user.state, *of_user);
  model_rules::install(app.state, *of_app);
  user.revision += !of_user->empty();
  app.revision += !of_app->empty();
  delta stored;
  put(stored, scope::session, *own);
  put(stored, scope::user, *of_user);
  put(stored, scope::app, *of_app);
  changes = std::move(stored);
  held.last_update_time = std::max(held.last_update_time, said.timestamp);
  held.places[said.id] = held.events.size();
  held.events.push_back(std::make_shared<const event>(std::move(said)));
  held.note_moment(user, app);
  return held.events.back();
}

// Keys of user and app stay as they are, and the ids of all events count as
// used.
result<session_view> session_model::fork(const session_key& asked,
                                         const fork_options& options,
                                         std::string id) {
  const auto parent = check_key(asked);
  if (!parent)
    return parent.error();
  if (is_blank(id))
    id = new_id();
  const auto key = check_key({parent->app, parent->user, std::move(id)});
  if (!key)
    return key.error();
  const auto found = sessions_.find(*parent);
  if (found == sessions_.end())
    return unknown(*parent);
  const auto& from = found->second;
  const auto revision = options.at.value_or(from.events.size());
  if (revision > from.events.size())
    return unknown_revision(*parent, revision);
  if (sessions_.contains(*key))
    return error(errc::already_exists, "the model has it");

  const auto count = static_cast<std::ptrdiff_t>(revision);
  log made;
  made.state = from.moments[revision]->state;
  made.last_update_time = from.moments[revision]->last_update_time;
  made.events.assign(from.events.begin(), from.events.begin() + count);
  made.moments.assign(from.moments.begin(), from.moments.begin() + count);
  made.note_moment(users_.at({key->app, key->user}), apps_.at(key->app));
  for (std::size_t index = 0; index < made.events.size(); ++index)
    made.places[made.events[index]->id] = index;
  const auto& kept = sessions_[*key] = std::move(made);
  return view(*key, kept, revision);
}

result<event_ptr> session_model::rewind(const session_key& asked, event said) {
  const auto key = check_key(asked);
  if (!key)
    return key.error();
  const auto found = sessions_.find(*key);
  if (found == sessions_.end())
    return unknown(*key);
  const auto& held = found->second;
  const auto count = taken_back_by(said);
  if (!count || *count > held.events.size())
    return error(errc::invalid_argument, "it takes back too much, or nothing");
  const auto& then = held.moments[held.events.size() - *count]->state;
  delta changes;
  for (const auto& [name, data] : held.state)
    if (!then.contains(name))
      changes.record(name, operation_kind::erase, {}).value();
  for (const auto& [name, data] : then)
    if (const auto present = held.state.find(name);
        present == held.state.end()
        || !model_rules::is_same(present->second, data))
      changes.record(name, operation_kind::set, data).value();
  said.actions.state_delta = std::move(changes);
  return append(*key, std::move(said));
}

result<shared_write>
session_model::write(const std::string& app,
                     const std::optional<std::string>& user,
                     const delta& changes,
                     const std::string& id,
                     const std::optional<std::uint64_t>& expected_revision) {
  constexpr std::size_t writes_max = 64;
  event carrier;
  carrier.actions.state_delta = changes;
  if (auto checked = check_said(carrier, options_.limits); !checked)
    return checked.error();
  const auto where = user ? scope::user : scope::app;
  const auto known
    = user ? users_.find({app, *user}) != users_.end() : apps_.contains(app);
  const auto held = !known ? owner()
                    : user ? users_.at({app, *user})
                           : apps_.at(app);
  const auto operations
    = changes.to_json().dump() + changes.typed_to_json().dump();
  for (const auto& earlier : held.writes)
    if (!id.empty() && earlier.id == id)
      return earlier.operations == operations
               ? result<shared_write>(earlier.answer)
               : error(errc::conflict, "the id has other operations");
  if (expected_revision && *expected_revision != held.revision)
    return error(errc::conflict, "the revision is another");
  const auto touched
    = model_rules::judge(changes.share(where), held.state, options_.limits);
  if (!touched)
    return touched.error();

  auto& written = user ? users_[{app, *user}] : apps_[app];
  // A user belongs to an app.
  apps_.try_emplace(app);
  model_rules::install(written.state, *touched);
  ++written.revision;
  const shared_write answer{written.revision, value(touched->begin()->second)};
  if (!id.empty())
    written.writes.push_back({id, operations, answer});
  if (written.writes.size() > writes_max)
    written.writes.erase(written.writes.begin());
  return answer;
}

result<bool> session_model::remove(const session_key& asked) {
  const auto key = check_key(asked);
  if (!key)
    return key.error();
  return sessions_.erase(*key) > 0;
}

result<bool> session_model::remove_user(const std::string& app,
                                        const std::string& user) {
  const auto key = check_key({app, user, "any"});
  if (!key)
    return key.error();
  std::erase_if(sessions_, [&key](const auto& each) {
    return each.first.app == key->app && each.first.user == key->user;
  });
  return users_.erase({key->app, key->user}) > 0;
}

result<json> session_model::get_user_state(const std::string& app,
                                           const std::string& user) const {
  const auto key = check_key({app, user, "any"});
  if (!key)
    return key.error();
  const auto found = users_.find({key->app, key->user});
  return found == users_.end() ? json::object()
                               : model_rules::as_object(found->second.state);
}

result<json> session_model::get_app_state(const std::string& app) const {
  const auto name = check_id(app, "app");
  if (!name)
    return name.error();
  const auto found = apps_.find(*name);
  return found == apps_.end() ? json::object()
                              : model_rules::as_object(found->second.state);
}

std::uint64_t session_model::user_revision(const std::string& app,
                                           const std::string& user) const {
  const auto found = users_.find({app, user});
  return found == users_.end() ? 0 : found->second.revision;
}

std::uint64_t session_model::app_revision(const std::string& app) const {
  const auto found = apps_.find(app);
  return found == apps_.end() ? 0 : found->second.revision;
}

std::vector<session_key> session_model::sessions() const {
  std::vector<session_key> all;
  for (const auto& [key, held] : sessions_)
    all.push_back(key);
  return all;
}

} // namespace troupe::testing
