#include "troupe/stores/conformance/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::conformance {

namespace {

std::string shortened(const json& data) {
  constexpr std::size_t bytes_max = 400;
  auto text = data.dump(-1, ' ', true, json::error_handler_t::replace); // ASCII
  if (text.size() > bytes_max)
    text.replace(
      bytes_max, text.npos, fmt::format("… ({} bytes)", text.size()));
  return text;
}

std::uint64_t next(std::map<owner_name, std::uint64_t>& revisions,
                   const owner_name& owner) {
  return ++revisions[owner];
}

} // namespace

// -- writing ----

timestamp microseconds(std::int64_t since_epoch) {
  return timestamp(std::chrono::microseconds(since_epoch));
}

event_ptr
make_event(std::string id, const json& state_delta, std::int64_t time) {
  event said(content("user", {part(id)}));
  said.id = std::move(id);
  said.invocation_id = "invocation";
  said.author = "user";
  said.timestamp = microseconds(time);
  said.actions.state_delta = delta::from_json(state_delta).value();
  return std::make_shared<const event>(std::move(said));
}

void change_maker::touch_wider(store_change& change) {
  const auto& touched = change.event->actions.state_delta;
  if (!touched.share(scope::user).empty())
    change.user_revision = next(revisions_, user_of(change.owner));
  if (!touched.share(scope::app).empty())
    change.app_revision = next(revisions_, app_of(change.owner));
}

store_change change_maker::create(const session_key& key,
                                  const json& state,
                                  std::int64_t time) {
  event said;
  said.timestamp = microseconds(time);
  said.actions.state_delta = delta::from_json(state).value();
  store_change made;
  made.kind = change_kind::create;
  made.owner = owner_of(key);
  made.event = std::make_shared<const event>(std::move(said));
  made.session_revision = revisions_[made.owner] = 0;
  touch_wider(made);
  return made;
}

store_change change_maker::fork(const session_key& key,
                                const std::string& parent,
                                std::uint64_t revision,
                                const json& state,
                                std::int64_t time) {
  auto made = create(key, state, time);
  made.session_revision = revisions_[made.owner] = revision;
  made.past = shared_past{parent, revision};
  return made;
}

store_change change_maker::append(const session_key& key, event_ptr said) {
  store_change made;
  made.owner = owner_of(key);
  made.event = std::move(said);
  made.session_revision = next(revisions_, made.owner);
  touch_wider(made);
  return made;
}

store_change change_maker::append(const session_key& key,
                                  const json& state_delta,
                                  std::int64_t time) {
  return append(
    key,
    make_event(fmt::format("event-{}", ++event_count_), state_delta, time));
}

store_change change_maker::write(const owner_name& owner,
                                 const json& names,
                                 std::int64_t time) {
  event said;
  said.timestamp = microseconds(time);
  // Not `record`, which refuses the reserved keys of the runtime.
  std::vector<resolution> outcomes;
  for (const auto& [name, data] : names.get_ref<const json::object_t&>())
    outcomes.push_back({owner.where(), name, data});
  said.actions.state_delta.resolve(outcomes);
  store_change made;
  made.kind = change_kind::write;
  made.owner = owner;
  made.event = std::make_shared<const event>(std::move(said));
  const auto revision = next(revisions_, owner);
  switch (owner.where()) {
  case scope::app:
    made.app_revision = revision;
    break;
  case scope::user:
    made.user_revision = revision;
    break;
  default:
    made.session_revision = revision;
  }
  return made;
}

store_change change_maker::remove(const session_key& key) {
  store_change made;
  made.kind = change_kind::remove;
  made.owner = owner_of(key);
  revisions_.erase(made.owner);
  return made;
}

store_change change_maker::trim(const session_key& key,
                                std::uint64_t revision,
                                const json& state,
                                std::int64_t time) {
  event said;
  said.timestamp = microseconds(time);
  said.actions.state_delta = delta::from_json(state).value();
  store_change made;
  made.kind = change_kind::trim;
  made.owner = owner_of(key);
  made.event = std::make_shared<const event>(std::move(said));
  made.kept = kept_past{revision};
  return made;
}

store_change change_maker::remove_user(const std::string& app,
                                       const std::string& user) {
  store_change made;
  made.kind = change_kind::remove_user;
  made.owner = {app, user};
  std::erase_if(revisions_, [&made](const auto& known) {
    return user_of(known.first) == made.owner;
  });
  return made;
}

// -- reading ----

json shown(const state_map& keys) {
  auto all_keys = json::object();
  keys.for_each([&all_keys](std::string_view name, const value& data) {
    all_keys[std::string(name)] = data.data();
  });
  return all_keys;
}

json shown(const event_ptr& said) {
  if (!said)
    return nullptr;
  auto data = to_json(*said);
  // Seconds as a floating number are not exact in every year.
  data["timestamp"] = said->timestamp.time_since_epoch().count();
  return data;
}

json shown(const std::vector<event_ptr>& events) {
  auto list = json::array();
  for (const auto& said : events)
    list.push_back(shown(said));
  return list;
}

json shown(const std::optional<stored_scope>& scope) {
  if (!scope)
    return nullptr;
  return {{"keys", shown(scope->keys)}, {"revision", scope->revision}};
}

json shown(const std::optional<stored_session>& session) {
  if (!session)
    return nullptr;
  json data{
    {"scope", shown(std::optional(session->scope))},
    {"last_update_time", session->last_update_time.time_since_epoch().count()},
    {"events", shown(session->events)},
    {"id_hashes", session->id_hashes}};
  if (session->first_revision > 0)
    data["first_revision"] = session->first_revision;
  return data;
}

json shown(const session_row& row) {
  return {
    {"key", {row.key.app, row.key.user, row.key.id}},
    {"session", shown(row.session)},
    {"user", shown(row.user)},
    {"app", shown(row.app)},
    {"revision", row.revision},
    {"last_update_time", row.last_update_time.time_since_epoch().count()}};
}

json shown(const std::vector<session_row>& rows) {
  auto list = json::array();
  for (const auto& row : rows)
    list.push_back(shown(row));
  return list;
}

json shown(const std::vector<owner_name>& owners) {
  auto sorted = owners;
  std::ranges::sort(sorted);
  auto list = json::array();
  for (const auto& owner : sorted)
    list.push_back({owner.app, owner.user, owner.session});
  return list;
}

json made_scope(const json& keys, std::uint64_t revision) {
  return {{"keys", keys}, {"revision", revision}};
}

json ids_of(const std::vector<event_ptr>& events) {
  auto list = json::array();
  for (const auto& said : events)
    list.push_back(said ? json(said->id) : json());
  return list;
}

row_query query_of(std::string app, std::size_t limit) {
  row_query query;
  query.app = std::move(app);
  query.limit = limit;
  return query;
}

// -- one run of a check ----

run::run(const store_factory& factory)
  : has_mixed_apps_(factory.promises(store_promise::mixed_apps)),
    opener_(factory.make_place()),
    kept_(open()) {}

std::unique_ptr<store> run::open() {
  return opener_().value();
}

void run::reopen() {
  kept_->close().value();
  kept_.reset();
  kept_ = open();
}

void run::commit(const std::vector<store_change>& changes) {
  if (has_mixed_apps_)
    return commit_together(changes);
  std::map<std::string, std::vector<store_change>> by_app;
  for (const auto& each : changes)
    by_app[each.owner.app].push_back(each);
  for (const auto& [app, its_changes] : by_app)
    commit_together(its_changes);
}

void run::commit_together(const std::vector<store_change>& changes) {
  const auto outcome = kept_->commit(changes).value();
  expect_same("the moved owners of a commit that fits",
              shown(outcome.moved),
              json::array());
  expect("a commit that fits keeps no run out", outcome.kept_out.empty());
}

void run::commit(store_change change) {
  commit(std::vector{std::move(change)});
}

void run::expect_moved(std::string_view what,
                       const std::vector<store_change>& changes,
                       const std::vector<owner_name>& owners) {
  const auto outcome = kept_->commit(changes).value();
  expect_same(fmt::format("the moved owners: {}", what),
              shown(outcome.moved),
              shown(owners));
}

void run::expect(std::string_view what, bool holds) {
  if (holds)
    return;
  const std::lock_guard guard(mutex_);
  failures_.emplace_back(what);
}

void run::expect_same(std::string_view what,
                      const json& actual,
                      const json& expected) {
  // Compares as text, which distinguishes 1 from 1.0.
  if (to_text(actual) == to_text(expected))
    return;
  auto failure = fmt::format(
    "{}: is {}, should be {}", what, shortened(actual), shortened(expected));
  const std::lock_guard guard(mutex_);
  failures_.push_back(std::move(failure));
}

void run::attempt(const std::function<void()>& act) {
  try {
    act();
  } catch (const error& failure) {
    expect(to_string(failure), false);
  } catch (const std::exception& failure) {
    expect(fmt::format("exception: {}", failure.what()), false);
  }
}

bool run::is_well() {
  const std::lock_guard guard(mutex_);
  return failures_.empty();
}

std::vector<std::string> run::failures() && {
  return std::move(failures_);
}

json scope_of(run& on, const owner_name& owner) {
  return shown(on.kept().load_scope(owner).value());
}

json session_of(run& on, const session_key& key) {
  return shown(
    on.kept().load_session(key, {.events_max = all, .ids_max = all}).value());
}

conformance_check make_check(std::string name,
                             void (*body)(run&),
                             std::vector<store_promise> needs) {
  const auto check = [body](const store_factory& factory) {
    try {
      run on(factory);
      on.attempt([&on, body] {
        body(on);
        on.expect_same("the findings of check()",
                       on.kept().check([](double) {}).value(),
                       json::array());
        on.kept().close().value();
      });
      return std::move(on).failures();
    } catch (const std::exception& failure) {
      return std::vector<std::string>{
        fmt::format("open the store: {}", failure.what())};
    }
  };
  return {std::move(name), check, std::move(needs)};
}

} // namespace troupe::conformance
