// Runs random commands on a store and on a model of it and compares the
// answers.

#include "troupe/stores/conformance/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>

namespace troupe {

namespace conformance {

namespace {

class random_commands {
public:
  random_commands(run& on, const store_factory& factory, std::uint64_t seed)
    : on_(on),
      is_lasting_(factory.promises(store_promise::lasting)),
      is_shared_(factory.promises(store_promise::shared)),
      is_told_(is_shared_ && factory.promises(store_promise::told)),
      has_revisions_(factory.promises(store_promise::revisions)),
      has_forks_(factory.promises(store_promise::forks)),
      has_trims_(factory.promises(store_promise::trims)),
      has_runs_(factory.promises(store_promise::runs)),
      has_mixed_apps_(factory.promises(store_promise::mixed_apps)),
      engine_(seed) {
    if (is_shared_)
      second_ = on.open();
  }

  void act() {
    switch (below(16)) {
    default:
      commit();
      break;
    case 8:
      load_scope();
      break;
    case 9:
    case 10:
      load_session(any_key(),
                   {.events_max = below(8),
                    .ids_max = one_in(4) ? all : below(8),
                    .after = one_in(2) ? 0 : below(12)});
      break;
    case 11:
      if (has_revisions_ && one_in(2))
        load_earlier(any_key(), below(12));
      else
        load_events(any_key(), 1 + below(12), below(16));
      break;
    case 12:
      if (has_runs_ && one_in(2))
        list_runs(apps[below(2)]);
      else
        list();
      break;
    case 13:
      list_by_name();
      break;
    case 14:
      if (is_told_)
        changed_elsewhere();
      break;
    case 15:
      if (one_in(10))
        reopen();
    }
  }

  /// Compares everything that is stored.
  void load_all() {
    for (const auto& app : apps) {
      load_list(query_of(app, all));
      for (const auto& user : users) {
        compare_scope({app, user});
        for (const auto& id : ids)
          load_session({app, user, id}, {.events_max = all, .ids_max = all});
      }
      compare_scope({app});
    }
    if (has_runs_)
      list_runs({});
    on_.expect_same(
      "check()", on_.kept().check([](double) {}).value(), json::array());
  }

  void close() {
    if (second_)
      second_->close().value();
  }

private:
  static inline const std::array<std::string, 2> apps = {"press", "r'%\n"};
  static inline const std::array<std::string, 3> users = {"ann", "雪", "a"};
  static inline const std::array<std::string, 4> ids = {"1", "ann", "B", "b\""};

  // -- chance ----

  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(engine_() % bound);
  }

  bool one_in(std::size_t count) { return below(count) == 0; }

  template <class Range>
  const auto& pick(const Range& from) {
    return from[below(std::size(from))];
  }

  session_key any_key() { return {pick(apps), pick(users), pick(ids)}; }

  json any_value(std::size_t depth_max = 2) {
    switch (below(depth_max == 0 ? 6 : 8)) {
    case 0:
      return std::numeric_limits<std::uint64_t>::max() - below(2);
    case 1:
      return std::numeric_limits<std::int64_t>::min();
    case 2:
      return static_cast<double>(below(100)) / 7 - 5;
    case 3:
      return fmt::format("\"{}\" 雪", below(100));
    case 4:
      return one_in(2);
    case 5:
      return below(100);
    case 6:
      return json::array({any_value(depth_max - 1), nullptr});
    default:
      return {{fmt::format("k.{}", below(3)), any_value(depth_max - 1)}};
    }
  }

  json any_delta(const std::vector<std::string_view>& prefixes) {
    auto made = json::object();
    for (const auto prefix : prefixes)
      if (one_in(2))
        for (auto left = 1 + below(3); left > 0; --left)
          made[fmt::format("{}{}", prefix, below(40))]
            = one_in(4) ? json() : any_value();
    return made;
  }

  std::int64_t any_time() { return static_cast<std::int64_t>(below(40)) - 10; }

  // -- commits ----

  static std::uint64_t next_revision(const store_model::kept_owners& owners,
                                     const owner_name& owner) {
    const auto found = owners.find(owner);
    return found == owners.end() ? 1 : found->second.revision + 1;
  }

  // Makes one change that usually fits `owners`.
  store_change any_change(const store_model::kept_owners& owners) {
    store_change made;
    made.owner = owner_of(any_key());
    if (!has_mixed_apps_)
      made.owner.app = committed_app_;
    if (has_runs_ && one_in(12)) {
      made.kind = change_kind::close_runs;
      add_marks(made);
      return made;
    }
    // Chooses the wrong kind on purpose now and then.
    const bool exists = owners.contains(made.owner) != one_in(60);
    if (!exists && has_forks_ && one_in(2) && make_fork(made, owners))
      return made;
    if (!exists)
      made.kind = change_kind::create;
    else if (one_in(14))
      made.kind = change_kind::remove;
    else if (one_in(60))
      made.kind = change_kind::remove_user;
    else if (has_trims_ && one_in(10))
      made.kind = change_kind::trim;
    else if (one_in(8))
      made.kind = change_kind::write;
    switch (made.kind) {
    case change_kind::remove:
      return made;
    case change_kind::remove_user:
      made.owner.session.clear();
      return made;
    case change_kind::trim:
      fill_trim(made, owners);
      return made;
    case change_kind::write:
      fill_write(made, owners);
      break;
    default:
      fill(made,
           owners,
           any_delta({"", key_prefix_user, key_prefix_app}),
           fmt::format("id-{}", one_in(50) ? 0 : ++id_count_));
    }
    if (has_runs_ && made.owner.where() == scope::session && one_in(4))
      add_marks(made);
    if (one_in(40))
      spoil(made);
    return made;
  }

  void add_marks(store_change& made) {
    for (auto left = 1 + below(3); left > 0; --left) {
      auto& mark = made.runs.emplace_back();
      mark.invocation_id = fmt::format("run-{}", below(4));
      mark.opens = made.kind != change_kind::close_runs && !one_in(3);
      if (mark.opens)
        mark.agent = fmt::format("agent-{}", below(2));
      if (mark.opens || one_in(2))
        mark.holder = fmt::format("holder-{}", below(2));
    }
  }

  // Makes a fork of any session of the same user; false if there is none.
  bool make_fork(store_change& made, const store_model::kept_owners& owners) {
    const auto parent = std::ranges::find_if(owners, [&](const auto& each) {
      return each.first.where() == scope::session
             && user_of(each.first) == user_of(made.owner)
             && (each.first != made.owner || one_in(4)) && one_in(2);
    });
    if (parent == owners.end())
      return false;
    const auto& [name, from] = *parent;
    auto past = from.revisions.begin();
    std::advance(past,
                 static_cast<std::ptrdiff_t>(below(from.revisions.size())));
    event said;
    auto keys = json::object();
    for (const auto& [key, data] : past->second->keys.items())
      keys[key] = data;
    said.actions.state_delta = delta::from_json(keys).value();
    said.timestamp = microseconds(past->second->time);
    made.kind = change_kind::create;
    made.event = std::make_shared<const event>(std::move(said));
    made.past = shared_past{name.session, past->first};
    // A revision that the parent does not have yet, or any more.
    if (one_in(40))
      made.past->revision
        = from.first > 0 && one_in(2) ? below(from.first) : from.revision + 1;
    made.session_revision = made.past->revision;
    return true;
  }

  // Trims the session to any revision that it has.
  void fill_trim(store_change& made, const store_model::kept_owners& owners) {
    event said;
    made.kept.emplace();
    if (const auto found = owners.find(made.owner); found != owners.end()) {
      const auto& revisions = found->second.revisions;
      auto kept = revisions.begin();
      std::advance(kept, static_cast<std::ptrdiff_t>(below(revisions.size())));
      said.actions.state_delta = delta::from_json(kept->second->keys).value();
      said.timestamp = microseconds(kept->second->time);
      made.kept->revision
        = one_in(40) ? found->second.revision + 1 : kept->first;
    }
    made.event = std::make_shared<const event>(std::move(said));
  }

  void fill_write(store_change& made, const store_model::kept_owners& owners) {
    if (one_in(2))
      made.owner.session.clear();
    if (made.owner.session.empty() && one_in(2))
      made.owner.user.clear();
    fill(made, owners, any_delta({prefix_of(made.owner.where())}), "");
  }

  void fill(store_change& made,
            const store_model::kept_owners& owners,
            const json& state_delta,
            const std::string& id) {
    event said;
    if (made.kind == change_kind::append)
      said = *make_event(id, state_delta);
    said.actions.state_delta = delta::from_json(state_delta).value();
    said.timestamp = microseconds(any_time());
    made.event = std::make_shared<const event>(std::move(said));
    const auto where = made.owner.where();
    const auto touches = [&made, where](scope asked) {
      return (made.kind == change_kind::write && asked == where)
             || !made.event->actions.state_delta.share(asked).empty();
    };
    if (where == scope::session)
      made.session_revision = made.kind == change_kind::create
                                ? 0
                                : next_revision(owners, made.owner);
    if (touches(scope::user))
      made.user_revision = next_revision(owners, user_of(made.owner));
    if (touches(scope::app))
      made.app_revision = next_revision(owners, app_of(made.owner));
  }

  void spoil(store_change& made) {
    for (auto* revision :
         {&made.session_revision, &made.user_revision, &made.app_revision})
      if (*revision && **revision > 0 && one_in(2))
        **revision += one_in(2) && **revision > 1 ? -1ULL : 1ULL;
  }

  void commit() {
    std::vector<store_change> changes;
    trial tried(model_.owners());
    if (!has_mixed_apps_)
      committed_app_ = pick(apps);
    for (auto left = below(6); left > 0; --left) {
      changes.push_back(any_change(tried.owners()));
      tried.apply(changes.back());
    }
    const auto by = any_store();
    compare("commit", shown(at(by).commit(changes).value().moved), [&] {
      return shown(model_.commit(changes, by));
    });
  }

  // -- other calls ----

  std::size_t any_store() { return second_ ? below(2) : 0; }

  store& at(std::size_t index) { return index == 0 ? on_.kept() : *second_; }

  template <class Expect>
  void compare(std::string_view what, const json& answer, Expect&& expected) {
    on_.expect_same(what, answer, expected());
  }

  void compare_scope(const owner_name& owner) {
    auto answer = shown(at(any_store()).load_scope(owner).value());
    auto expected = model_.load_scope(owner);
    // A store may or may not create the app when a user is written.
    if (owner.where() == scope::app && expected.is_null())
      expected = answer.is_null()
                   ? json()
                   : json{{"keys", json::object()}, {"revision", 0}};
    on_.expect_same("load_scope of " + to_string(owner), answer, expected);
  }

  void load_scope() {
    compare_scope(one_in(3) ? owner_name{pick(apps)}
                            : owner_name{pick(apps), pick(users)});
  }

  void load_session(const session_key& key, const load_options& options) {
    compare("load_session of " + to_string(key),
            shown(at(any_store()).load_session(key, options).value()),
            [&] { return model_.load_session(key, options); });
  }

  void
  load_events(const session_key& key, std::uint64_t first, std::uint64_t last) {
    const auto loaded = at(any_store()).load_events(key, first, last);
    compare("load_events of " + to_string(key),
            loaded ? shown(*loaded) : json(to_string(loaded.error().code())),
            [&] { return model_.load_events(key, first, last); });
  }

  void load_session_at(const session_key& key,
                       std::uint64_t revision,
                       std::size_t events_max) {
    const auto loaded
      = at(any_store()).load_session_at(key, revision, events_max);
    compare("load_session_at of " + to_string(key),
            loaded ? shown(*loaded) : json(to_string(loaded.error().code())),
            [&] { return model_.load_session_at(key, revision, events_max); });
  }

  void load_earlier(const session_key& key, std::uint64_t revision) {
    if (one_in(2))
      load_session_at(key, revision, one_in(4) ? all : below(8));
    else
      load_shared_state_at(key, revision);
  }

  // A store that keeps no history of users and apps returns nothing.
  void load_shared_state_at(const session_key& key, std::uint64_t revision) {
    const auto loaded
      = at(any_store()).load_shared_state_at(key, revision).value();
    if (loaded)
      compare("load_shared_state_at of " + to_string(key),
              {{"user", shown(loaded->user)}, {"app", shown(loaded->app)}},
              [&] { return model_.load_shared_state_at(key, revision); });
  }

  // Returns the position of a row, or a random one.
  row_position any_position(const std::string& app) {
    const owner_name owner{app, pick(users), pick(ids)};
    const auto found = model_.owners().find(owner);
    return {microseconds(found == model_.owners().end() ? any_time()
                                                        : found->second.time),
            owner.user,
            owner.session};
  }

  void list() {
    auto query = query_of(pick(apps), one_in(3) ? all : below(6));
    if (one_in(2))
      query.user = pick(users);
    if (one_in(2))
      query.behind = any_position(query.app);
    load_list(query);
  }

  // The order by time is left out: the times are those of the store.
  void list_runs(const std::string& app) {
    run_query query{.app = app, .limit = 1 + below(5)};
    std::map<std::tuple<session_key, std::string>, json> found;
    auto& asked = at(any_store());
    for (bool is_last = false; !is_last;) {
      const auto page = asked.list_runs(query).value();
      for (const auto& each : page)
        found[{each.key, each.invocation_id}] = {each.key.app,
                                                 each.key.user,
                                                 each.key.id,
                                                 each.invocation_id,
                                                 each.agent,
                                                 each.holder};
      is_last = page.size() < query.limit;
      if (!is_last)
        query.behind = position_of(page.back());
    }
    auto answer = json::array();
    for (const auto& [name, row] : found)
      answer.push_back(row);
    compare("list_runs", answer, [&] { return model_.list_runs(app); });
  }

  void list_by_name() {
    name_query query{pick(apps), {}, one_in(3) ? all : below(6), {}};
    if (one_in(2))
      query.user = pick(users);
    if (one_in(2))
      query.behind = any_key();
    compare("list_by_name",
            shown(at(any_store()).list_by_name(query).value()),
            [&] { return model_.list_by_name(query); });
  }

  void load_list(const row_query& query) {
    compare("list", shown(at(any_store()).list(query).value()), [&] {
      return model_.list(query);
    });
  }

  void changed_elsewhere() {
    const auto by = any_store();
    auto told = json::object();
    for (const auto& changed : at(by).changed_elsewhere().value())
      told[to_string(changed.owner)]
        = changed.revision ? json(*changed.revision) : json();
    compare(
      "changed_elsewhere", told, [&] { return model_.changed_elsewhere(by); });
  }

  void reopen() {
    if (!is_lasting_)
      return;
    on_.reopen();
    model_.changed_elsewhere(0);
  }

  run& on_;
  bool is_lasting_;
  bool is_shared_;
  bool is_told_;
  bool has_revisions_;
  bool has_forks_;
  bool has_trims_;
  bool has_runs_;
  bool has_mixed_apps_;
  std::string committed_app_; // Of the next commit, without mixed apps.
  std::mt19937_64 engine_;
  std::unique_ptr<store> second_;
  store_model model_;
  std::size_t id_count_ = 0;
};

} // namespace

} // namespace conformance

std::vector<std::string> conformance_lockstep(const store_factory& factory,
                                              std::uint64_t seed,
                                              std::size_t commands) {
  using namespace conformance;
  std::vector<std::string> failures;
  std::size_t done = 0;
  try {
    run on(factory);
    on.attempt([&] {
      random_commands next(on, factory, seed);
      // Stops at the first difference; later ones would only follow from it.
      for (; done < commands && on.is_well(); ++done)
        next.act();
      if (on.is_well())
        next.load_all();
      if (on.is_well() && factory.promises(store_promise::lasting)) {
        on.reopen();
        next.load_all();
      }
      next.close();
      on.kept().close().value();
    });
    failures = std::move(on).failures();
  } catch (const std::exception& failure) {
    failures.push_back(fmt::format("open the store: {}", failure.what()));
  }
  for (auto& failure : failures)
    failure = fmt::format("seed {}, command {}: {}", seed, done, failure);
  return failures;
}

} // namespace troupe
