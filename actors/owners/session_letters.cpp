#include "troupe/actors/owners/session_letters.hpp"

#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/sessions/forked_past.hpp"
#include "troupe/actors/sessions/past.hpp"
#include "troupe/core/rewind.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/core/support/recent_writes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace troupe::actors {

bool is_partial(const event& said) {
  return said.partial;
}

bool is_partial(const event_ptr& said) {
  return said && said->partial;
}

event_ptr as_shared(event&& said) {
  return std::make_shared<const event>(std::move(said));
}

event_ptr as_shared(event_ptr&& said) {
  return std::move(said);
}

namespace {

// The receiver of an append: the session if it is in memory; otherwise its app,
// with the key.
struct destination {
  ref<session_actor> session;
  ref<app_actor> app;
  session_key key;
};

// Looks with the given key first: most keys need no trimming.
result<destination> find_session(setup& shared, const session_key& key) {
  if (auto found = shared.directory->find_free(key))
    return destination{std::move(found), {}, {}};
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  if (auto found = shared.directory->find_free(*checked))
    return destination{std::move(found), {}, {}};
  auto app = app_of(shared, checked->app);
  if (!app)
    return shared.closing ? closed() : unknown_session(*checked);
  return destination{{}, std::move(app), std::move(*checked)};
}

void forward_to(setup& shared, destination to, letter_ptr sent) {
  shared.directory->start_forward(to.key);
  auto passed = std::make_unique<forward>(*shared.directory);
  passed->key = std::move(to.key);
  passed->held = std::move(sent);
  to.app->tell(std::move(passed));
}

} // namespace

bool admit_call(setup& shared) {
  // Counted before `closing` is read: shutting down sets `closing` first and
  // then waits for all that is counted.
  shared.calls.enter(0);
  if (!shared.closing)
    return true;
  shared.calls.leave(0);
  return false;
}

bool admit_call(call& wanted, setup& shared) {
  if (admit_call(shared)) {
    wanted.gate = &shared.calls;
    return true;
  }
  wanted.fail(closed());
  return false;
}

namespace {

// Checks and completes the events that a session is created with.
result<std::vector<std::unique_ptr<append>>>
make_past(std::vector<event> events, setup& shared) {
  if (auto numbered = number_rewinds(events); !numbered)
    return numbered.error();
  std::vector<std::unique_ptr<append>> past;
  past.reserve(events.size());
  std::unordered_set<std::string_view> ids;
  for (auto& said : events) {
    const auto number = past.size() + 1;
    if (said.partial)
      return with_number(number,
                         {errc::invalid_argument,
                          "a partial event cannot be in a session's past"});
    auto letter = make_past_append(std::move(said), shared);
    if (!letter)
      return with_number(number, letter.error());
    // The letter keeps the id alive.
    if (!ids.insert((*letter)->event->id).second)
      return with_number(
        number,
        {errc::invalid_argument,
         fmt::format("the id '{}' comes twice", (*letter)->event->id)});
    past.push_back(std::move(*letter));
  }
  return past;
}

} // namespace

result<std::unique_ptr<create>> make_create(create_request request,
                                            setup& shared) {
  if (is_blank(request.id))
    request.id = shared.environment->new_id();
  auto key = check_key(session_key{
    std::move(request.app), std::move(request.user), std::move(request.id)});
  if (!key)
    return key.error();
  if (request.state.is_object())
    std::erase_if(request.state.get_ref<json::object_t&>(),
                  [](const auto& field) { return field.second.is_null(); });
  auto initial = delta::from_json(request.state);
  if (!initial)
    return initial.error();
  initial->drop(scope::temp);
  auto wanted = std::make_unique<create>();
  wanted->key = std::move(*key);
  auto carrier = std::make_shared<event>();
  auto past = make_past(std::move(request.events), shared);
  if (!past)
    return past.error();
  wanted->past = *std::move(past);
  carrier->timestamp = request.last_update_time;
  if (carrier->timestamp == timestamp())
    for (const auto& each : wanted->past)
      carrier->timestamp = std::max(carrier->timestamp, each->event->timestamp);
  if (carrier->timestamp == timestamp())
    carrier->timestamp = shared.environment->now();
  carrier->actions.state_delta = std::move(*initial);
  auto bytes = check_event(*carrier, shared.options.limits);
  if (!bytes)
    return bytes.error();
  wanted->event = std::move(carrier);
  return wanted;
}

namespace {

// All keys of a session as a delta.
delta delta_of(const state_map& keys) {
  std::vector<resolution> outcomes;
  outcomes.reserve(keys.size());
  keys.for_each([&outcomes](std::string_view name, const value& data) {
    outcomes.push_back({scope::session, std::string(name), data});
  });
  delta made;
  made.resolve(outcomes);
  return made;
}

} // namespace

result<std::unique_ptr<create>> make_fork(session_key key,
                                          std::shared_ptr<forked_past> past,
                                          bool keeps_open_calls,
                                          setup& shared) {
  const auto& from = past->from;
  auto marker = make_append(
    make_fork_event({from.session, from.revision, from.incarnation},
                    keeps_open_calls),
    {},
    shared);
  if (!marker)
    return marker.error();
  auto wanted = std::make_unique<create>();
  wanted->key = std::move(key);
  auto carrier = std::make_shared<event>();
  carrier->timestamp = past->last_update_time;
  carrier->actions.state_delta = delta_of(past->keys);
  wanted->event = std::move(carrier);
  wanted->past.push_back(*std::move(marker));
  wanted->fork = std::move(past);
  return wanted;
}

result<std::unique_ptr<get>> make_get(const session_key& key,
                                      const get_options& options) {
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  auto wanted = std::make_unique<get>();
  wanted->key = std::move(*checked);
  wanted->options = options;
  return wanted;
}

void send_get(setup& shared, std::unique_ptr<get> wanted) {
  if (!admit_call(*wanted, shared))
    return;
  if (const auto app = app_of(shared, wanted->key.app))
    return app->tell(std::move(wanted));
  const auto why = unknown_session(wanted->key);
  wanted->fail(why);
}

result<std::unique_ptr<remove>> make_remove(const session_key& key,
                                            const remove_options& options) {
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  auto wanted = std::make_unique<remove>();
  wanted->user = std::move(checked->user);
  wanted->id = std::move(checked->id);
  wanted->options = options;
  return wanted;
}

namespace {

// Sends the append that `make` makes. The event is checked before `not_found`
// is answered or the app is asked. Over a store the app may have to read the
// store, and an invalid event must not cause that.
template <class Make>
void send_append(setup& shared,
                 const session_key& key,
                 completion<event_ptr> done,
                 const write_place& place,
                 const Make& make) {
  if (shared.closing)
    return done(closed());
  auto found = find_session(shared, key);
  if (!found && found.error().code() != errc::not_found)
    return done(found.error());
  result<std::unique_ptr<append>> letter = make();
  if (!letter)
    return done(letter.error());
  (*letter)->place = place;
  // The answer may also call completions that wait for the writer.
  if (place.exists())
    (*letter)->is_of_blocked_thread = false;
  if (!found)
    return done(found.error());
  const auto admitted = found->session
                          ? admit(**letter, *found->session, shared)
                          : admit(**letter, shared);
  if (!admitted)
    return done(admitted.error());
  (*letter)->done = std::move(done);
  if (found->session)
    return found->session->tell(std::move(*letter));
  forward_to(shared, std::move(*found), std::move(*letter));
}

} // namespace

template <class Event>
void append_event(setup& shared,
                  const session_key& key,
                  Event said,
                  const append_options& options,
                  completion<event_ptr> done,
                  const write_place& place) {
  if (is_partial(said))
    return done(as_shared(std::move(said)));
  send_append(shared, key, std::move(done), place, [&] {
    return make_append(std::move(said), options, shared);
  });
}

void append_rewind(setup& shared,
                   const session_key& key,
                   event said,
                   rewind_basis from,
                   completion<event_ptr> done) {
  send_append(shared, key, std::move(done), {}, [&] {
    return make_rewind(std::move(said), std::move(from), shared);
  });
}

template void append_event<event>(setup&,
                                  const session_key&,
                                  event,
                                  const append_options&,
                                  completion<event_ptr>,
                                  const write_place&);
template void append_event<event_ptr>(setup&,
                                      const session_key&,
                                      event_ptr,
                                      const append_options&,
                                      completion<event_ptr>,
                                      const write_place&);

// The letter is counted while it is sent, so that the actor system outlives
// this use. It is not counted while the session keeps it.
void follow_session(setup& shared, std::unique_ptr<follow> wanted) {
  if (!admit_call(shared))
    return wanted->fail(closed());
  auto found = find_session(shared, wanted->key);
  if (!found)
    wanted->fail(found.error());
  else if (found->session)
    found->session->tell(std::move(wanted));
  else
    forward_to(shared, std::move(*found), std::move(wanted));
  shared.calls.leave(0);
}

// -- state without a session --------------------------------------------------

result<owner_name> check_names(const std::string& app,
                               const std::optional<std::string>& user) {
  auto app_name = check_id(app, "app");
  if (!app_name)
    return app_name.error();
  owner_name checked{std::move(*app_name)};
  if (user) {
    auto user_name = check_id(*user, "user");
    if (!user_name)
      return user_name.error();
    checked.user = std::move(*user_name);
  }
  return checked;
}

namespace {

// The checks are those of an event with these changes.
result<std::unique_ptr<write_state>>
make_write(delta changes, write_conditions conditions, setup& shared) {
  if (!conditions.id.empty())
    if (auto id = check_id(conditions.id, "write id"); !id)
      return id.error();
  event carrier;
  carrier.actions.state_delta = std::move(changes);
  auto bytes = check_event(carrier, shared.options.limits);
  if (!bytes)
    return bytes.error();
  auto wanted = std::make_unique<write_state>();
  wanted->bytes = *bytes;
  wanted->changes = std::move(carrier.actions.state_delta);
  wanted->time = shared.environment->now();
  if (!conditions.id.empty())
    wanted->operations = fingerprint(wanted->changes);
  wanted->id = std::move(conditions.id);
  wanted->expected_revision = conditions.expected_revision;
  return wanted;
}

} // namespace

void read_state_of(setup& shared,
                   const std::string& app,
                   const std::optional<std::string>& user,
                   completion<scope_keys> done) {
  auto names = check_names(app, user);
  if (!names)
    return done(names.error());
  auto wanted = std::make_unique<read_state>();
  if (user)
    wanted->user = std::move(names->user);
  wanted->done = std::move(done);
  if (!admit_call(*wanted, shared))
    return;
  if (const auto known = app_of(shared, names->app))
    return known->tell(std::move(wanted));
  wanted->outcome = scope_keys();
  wanted->complete();
}

// Counted while it is sent, as in `follow_session`.
void follow_state_of(const std::shared_ptr<setup>& shared,
                     std::unique_ptr<follow_state> wanted) {
  if (!admit_call(*shared))
    return wanted->fail(closed());
  if (const auto known = shared->apps->open(shared, wanted->owner.app))
    known->tell(std::move(wanted));
  else
    wanted->fail(closed());
  shared->calls.leave(0);
}

void write_state_of(const std::shared_ptr<setup>& shared,
                    const std::string& app,
                    const std::optional<std::string>& user,
                    delta changes,
                    write_conditions conditions,
                    completion<shared_write> done) {
  auto names = check_names(app, user);
  if (!names)
    return done(names.error());
  auto wanted = make_write(std::move(changes), std::move(conditions), *shared);
  if (!wanted)
    return done(wanted.error());
  if (user)
    (*wanted)->user = std::move(names->user);
  if (auto admitted = admit(**wanted, *shared); !admitted)
    return done(admitted.error());
  (*wanted)->done = std::move(done);
  if (const auto known = shared->apps->open(shared, names->app))
    known->tell(std::move(*wanted));
  else
    (*wanted)->fail(closed());
}

void clear_state_of(setup& shared,
                    const std::string& app,
                    completion<shared_write> done) {
  auto wanted = make_write({}, {}, shared);
  if (!wanted)
    return done(wanted.error());
  (*wanted)->clears = true;
  if (auto admitted = admit(**wanted, shared); !admitted)
    return done(admitted.error());
  (*wanted)->done = std::move(done);
  if (const auto known = app_of(shared, app))
    return known->tell(std::move(*wanted));
  (*wanted)->outcome = shared_write();
  (*wanted)->complete();
}

} // namespace troupe::actors
