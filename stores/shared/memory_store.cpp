#include "troupe/stores/shared/memory_store.hpp"

#include "troupe/core/session.hpp"
#include "troupe/stores/shared/owner_names.hpp"
#include "troupe/stores/shared/run_table.hpp"
#include "troupe/stores/shared/session_order.hpp"
#include "troupe/stores/shared/unreported_removals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

namespace troupe {

namespace {

struct log_entry {
  std::uint64_t revision = 0;
  event_ptr event;
  bool is_event = false; ///< False for the initial state and for a write.
};

// Everything that was done to a scope. The log of a fork begins with its
// creation; the events before it are in the log of its parent, which outlives
// the parent.
struct owner_log {
  std::vector<log_entry> entries; ///< Oldest first.
  std::shared_ptr<const owner_log> past;
  std::uint64_t past_revision = 0;
};

// Calls `visit` with the events from number `last` back to the one behind
// `first`, until it returns false.
template <class Visit>
void visit_events(const owner_log& log,
                  std::uint64_t first,
                  std::uint64_t last,
                  Visit visit) {
  for (const auto* part = &log; part != nullptr; part = part->past.get()) {
    auto next
      = std::ranges::upper_bound(part->entries, last, {}, &log_entry::revision);
    while (next != part->entries.begin()) {
      --next;
      if (next->revision <= first)
        return;
      if (next->is_event && !visit(*next))
        return;
    }
    last = std::min(last, part->past_revision);
  }
}

// The part of the log that has the creation from which `revision` is replayed.
const owner_log& part_with(const owner_log& log, std::uint64_t revision) {
  const auto* part = &log;
  while (part->past && revision < part->entries.front().revision)
    part = part->past.get();
  return *part;
}

// A session at one revision.
struct earlier_scope {
  stored_scope scope;
  timestamp last_update_time{};
};

struct kept_owner {
  stored_scope scope;
  timestamp last_update_time{};
  std::optional<earlier_scope> first; ///< Of a session that was trimmed.
  std::uint64_t incarnation = 0;
  std::shared_ptr<owner_log> log = std::make_shared<owner_log>();

  std::uint64_t first_revision() const noexcept {
    return first ? first->scope.revision : 0;
  }
};

// Ordered by name, so that an app is followed by its users, and a user by its
// sessions.
using kept_owners = std::map<owner_name, kept_owner>;

template <class Map>
auto user_range(Map& owners, const owner_name& user) {
  const auto first = owners.lower_bound(user);
  auto last = first;
  while (last != owners.end() && user_of(last->first) == user)
    ++last;
  return std::pair(first, last);
}

// The first name behind `name`, in the order of the bytes.
std::string next_name(std::string name) {
  name += '\0';
  return name;
}

void apply(stored_scope& target,
           const event& said,
           scope where,
           std::uint64_t revision) {
  for (const auto& done : said.actions.state_delta.share(where)) {
    if (done.operand.is_null())
      target.keys.erase(done.name);
    else
      target.keys.set(done.name, done.operand);
  }
  target.revision = revision;
}

// Finds the owners whose stored revision is not the one that the changes build
// on. A change sees the revisions that earlier changes of the commit made.
class revision_check {
public:
  revision_check(const kept_owners& kept, std::vector<owner_name> moved)
    : kept_(kept),
      moved_(std::move(moved)) {}

  void visit(const store_change& change) {
    const auto& owner = change.owner;
    if (change.kind == change_kind::remove_user) {
      remove_user(owner);
      return;
    }
    if (change.kind == change_kind::trim) {
      visit_trimmed(owner, *change.kept);
      return;
    }
    if (change.kind == change_kind::close_runs)
      return;
    if (change.kind == change_kind::create) {
      if (change.past)
        visit_parent({owner.app, owner.user, change.past->session},
                     *change.past);
      expect(owner, !revision_of(owner));
      seen_[owner] = change.session_revision;
      made_.insert(owner);
    } else if (change.kind == change_kind::remove) {
      const auto before = revision_of(owner);
      expect(owner,
             before
               && (!change.session_revision
                   || *before + 1 == *change.session_revision));
      seen_[owner].reset();
    } else if (change.session_revision) {
      const auto before = revision_of(owner);
      expect(owner, before && *before + 1 == *change.session_revision);
      seen_[owner] = change.session_revision;
    }
    visit_wider(user_of(owner), change.user_revision);
    visit_wider(app_of(owner), change.app_revision);
  }

  std::vector<owner_name> moved() && { return std::move(moved_); }

private:
  std::optional<std::uint64_t> revision_of(const owner_name& owner) const {
    if (const auto found = seen_.find(owner); found != seen_.end())
      return found->second;
    const auto found = kept_.find(owner);
    return found == kept_.end() ? std::nullopt
                                : std::optional(found->second.scope.revision);
  }

  void visit_parent(const owner_name& parent, const shared_past& past) {
    const auto revision = revision_of(parent);
    expect(parent,
           is_incarnation(parent, past.incarnation) && revision
             && *revision >= past.revision);
  }

  void visit_trimmed(const owner_name& owner, const kept_past& kept) {
    const auto revision = revision_of(owner);
    expect(owner,
           is_incarnation(owner, kept.incarnation) && revision
             && *revision >= kept.revision);
  }

  // The commit does not know the incarnation of a session that it creates.
  bool is_incarnation(const owner_name& owner, std::uint64_t number) const {
    const auto found = kept_.find(owner);
    return number == 0
           || (!made_.contains(owner) && found != kept_.end()
               && found->second.incarnation == number);
  }

  void visit_wider(const owner_name& owner,
                   const std::optional<std::uint64_t>& revision) {
    if (!revision)
      return;
    expect(owner, revision_of(owner).value_or(0) + 1 == *revision);
    seen_[owner] = revision;
  }

  void remove_user(const owner_name& user) {
    const auto [first, last] = user_range(kept_, user);
    for (auto next = first; next != last; ++next)
      seen_[next->first].reset();
    const auto [first_seen, last_seen] = user_range(seen_, user);
    for (auto next = first_seen; next != last_seen; ++next)
      next->second.reset();
  }

  void expect(const owner_name& owner, bool holds) {
    if (!holds && std::ranges::find(moved_, owner) == moved_.end())
      moved_.push_back(owner);
  }

  const kept_owners& kept_;
  std::map<owner_name, std::optional<std::uint64_t>> seen_;
  std::set<owner_name> made_; // Sessions that the commit creates.
  std::vector<owner_name> moved_;
};

timestamp now_here() {
  return std::chrono::floor<std::chrono::microseconds>(
    std::chrono::system_clock::now());
}

} // namespace

class memory_data {
public:
  explicit memory_data(std::function<timestamp()> clock_)
    : clock(clock_ ? std::move(clock_) : now_here) {}

  /// Applies the change and returns the owners that it changed.
  std::vector<owner_name> apply(const store_change& change);

  /// Returns the runs of the changes that may not open beside others.
  std::vector<kept_out_run>
  kept_out(std::span<const store_change> changes) const;

  std::vector<std::string> check() const;

  mutable std::shared_mutex mutex;
  kept_owners owners;
  session_order sessions;         ///< The sessions in `owners`.
  std::uint64_t incarnations = 0; ///< Number of sessions that were created.
  run_table runs;                 ///< The open runs of these sessions.
  const std::function<timestamp()> clock;

  /// Changes of others that a store on this data has not reported yet.
  struct unreported_changes {
    std::set<owner_name> owners;
    unreported_removals removals;
  };

  std::map<const store*, unreported_changes> unreported;

private:
  void write(const owner_name& owner,
             const store_change& change,
             std::uint64_t revision);
  void begin_fork(kept_owner& fork, const store_change& change);
  void trim(const store_change& change);
  void erase(kept_owners::iterator removed);
};

std::vector<owner_name> memory_data::apply(const store_change& change) {
  const auto& owner = change.owner;
  std::vector<owner_name> changed;
  switch (change.kind) {
  case change_kind::remove:
    if (const auto found = owners.find(owner); found != owners.end())
      erase(found);
    return {owner};
  case change_kind::remove_user: {
    const auto [first, last] = user_range(owners, owner);
    for (auto next = first; next != last;) {
      changed.push_back(next->first);
      erase(next++);
    }
    return changed;
  }
  case change_kind::trim:
    trim(change);
    return {};
  case change_kind::close_runs:
    if (owners.contains(owner))
      runs.apply(owner, change.runs, clock());
    return {};
  case change_kind::create:
    owners.try_emplace(app_of(owner));
    owners.try_emplace(user_of(owner));
    break;
  case change_kind::append:
  case change_kind::write:
    break;
  }
  for (const auto& [touched, revision] :
       {std::pair(owner, change.session_revision),
        std::pair(user_of(owner), change.user_revision),
        std::pair(app_of(owner), change.app_revision)})
    if (revision) {
      write(touched, change, *revision);
      changed.push_back(touched);
    }
  if (!change.runs.empty())
    runs.apply(owner, change.runs, clock());
  return changed;
}

std::vector<kept_out_run>
memory_data::kept_out(std::span<const store_change> changes) const {
  const auto asked = sessions_to_gate(changes);
  if (asked.empty())
    return {};
  run_gate gate;
  const auto now = clock();
  for (const auto& session : asked)
    runs.add_to(gate, session, now);
  return std::move(gate).judge(changes);
}

void memory_data::erase(kept_owners::iterator removed) {
  if (removed->first.where() == scope::session)
    sessions.remove(removed->first, removed->second.last_update_time);
  runs.erase(removed->first);
  owners.erase(removed);
}

void memory_data::write(const owner_name& owner,
                        const store_change& change,
                        std::uint64_t revision) {
  auto& kept = owners[owner];
  const auto where = owner.where();
  if (change.kind == change_kind::create && where == scope::session) {
    kept.incarnation = ++incarnations;
    if (change.past)
      begin_fork(kept, change);
  }
  troupe::apply(kept.scope, *change.event, where, revision);
  if (where == scope::session) {
    sessions.remove(owner, kept.last_update_time);
    // The time of a new session is set, not raised: its default, 1970, may be
    // later than the event.
    kept.last_update_time
      = change.kind == change_kind::create
          ? change.event->timestamp
          : std::max(kept.last_update_time, change.event->timestamp);
    sessions.add(owner, kept.last_update_time);
  }
  kept.log->entries.push_back(
    {revision, change.event, change.kind == change_kind::append});
}

// The first state of a change that begins or trims a session.
earlier_scope state_in(const store_change& change, std::uint64_t revision) {
  earlier_scope state{{}, change.event->timestamp};
  troupe::apply(state.scope, *change.event, scope::session, revision);
  return state;
}

// A fork has the first revision of its parent, or the revision at which it
// begins if that is earlier.
void memory_data::begin_fork(kept_owner& fork, const store_change& change) {
  const auto& past = *change.past;
  const auto& parent
    = owners.at({change.owner.app, change.owner.user, past.session});
  fork.log->past = parent.log;
  fork.log->past_revision = past.revision;
  if (parent.first_revision() > past.revision && past.revision > 0)
    fork.first = state_in(change, past.revision);
  else if (parent.first_revision() <= past.revision)
    fork.first = parent.first;
}

// Deletes no events while a fork shares the log.
void memory_data::trim(const store_change& change) {
  auto& kept = owners.at(change.owner);
  const auto revision = change.kept->revision;
  if (revision <= kept.first_revision())
    return;
  kept.first = state_in(change, revision);
  auto& log = *kept.log;
  const auto created = log.past ? log.past_revision : 0;
  if (kept.log.use_count() > 1 || revision < created)
    return;
  std::erase_if(log.entries, [revision](const log_entry& entry) {
    return entry.revision <= revision;
  });
  log.past.reset();
}

std::vector<std::string> memory_data::check() const {
  std::vector<std::string> findings;
  for (const auto& [owner, kept] : owners) {
    stored_scope replayed;
    const auto first = kept.first_revision();
    const bool is_trimmed
      = kept.first && (!kept.log->past || first >= kept.log->past_revision);
    if (is_trimmed)
      replayed = kept.first->scope;
    for (const auto& entry : kept.log->entries)
      if (!is_trimmed || entry.revision > first)
        troupe::apply(replayed, *entry.event, owner.where(), entry.revision);
    if (!(replayed.keys == kept.scope.keys)
        || replayed.revision != kept.scope.revision)
      findings.push_back(fmt::format(
        "{}: the state at revision {} differs from the replay of its log",
        to_string(owner),
        kept.scope.revision));
  }
  for (const auto& session : runs.sessions())
    if (!owners.contains(session))
      findings.push_back(fmt::format("{} does not exist, and has an open run",
                                     to_string(session)));
  return findings;
}

namespace {

class memory_store : public store {
public:
  explicit memory_store(std::shared_ptr<memory_data> data)
    : data_(std::move(data)) {
    const std::unique_lock guard(data_->mutex);
    data_->unreported[this];
  }

  memory_store(const memory_store&) = delete;
  memory_store& operator=(const memory_store&) = delete;

  ~memory_store() override {
    const std::unique_lock guard(data_->mutex);
    data_->unreported.erase(this);
  }

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    // One lock covers the checks and the changes, so loads see all or nothing.
    const std::unique_lock guard(data_->mutex);
    auto& removals = data_->unreported[this].removals;
    revision_check check(data_->owners, removals.touched_by(changes));
    for (const auto& change : changes)
      check.visit(change);
    commit_outcome outcome{std::move(check).moved()};
    removals.mark_reported(outcome.moved);
    if (!outcome.moved.empty())
      return outcome;
    outcome.kept_out = data_->kept_out(changes);
    if (!outcome.kept_out.empty())
      return outcome;
    for (const auto& change : changes)
      for (const auto& owner : data_->apply(change))
        for (auto& [other, unreported] : data_->unreported)
          if (other != this) {
            unreported.owners.insert(owner);
            if (!change.event)
              unreported.removals.note(owner);
          }
    return outcome;
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    const std::unique_lock guard(data_->mutex);
    std::vector<moved_owner> changed;
    for (const auto& owner :
         std::exchange(data_->unreported[this], {}).owners) {
      const auto found = data_->owners.find(owner);
      changed.push_back({owner,
                         found == data_->owners.end()
                           ? std::nullopt
                           : std::optional(found->second.scope.revision)});
    }
    return changed;
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    const std::shared_lock guard(data_->mutex);
    const auto found = data_->owners.find(owner);
    if (found == data_->owners.end())
      return std::nullopt;
    return found->second.scope;
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    const std::shared_lock guard(data_->mutex);
    const auto found = data_->owners.find(owner_of(key));
    if (found == data_->owners.end())
      return std::nullopt;
    const auto& kept = found->second;
    stored_session loaded{kept.scope, kept.last_update_time, {}, {}};
    loaded.first_revision = kept.first_revision();
    const auto visit = [&](const log_entry& entry) {
      const bool take_event = loaded.events.size() < options.events_max;
      const bool take_id = loaded.id_hashes.size() < options.ids_max;
      if (take_event)
        loaded.events.push_back(entry.event);
      if (take_id)
        loaded.id_hashes.push_back(id_hash(entry.event->id));
      return take_event || take_id;
    };
    visit_events(*kept.log,
                 std::max(loaded.first_revision, options.after),
                 kept.scope.revision,
                 visit);
    std::ranges::reverse(loaded.events);
    std::ranges::reverse(loaded.id_hashes);
    loaded.incarnation = kept.incarnation;
    return loaded;
  }

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override {
    const std::shared_lock guard(data_->mutex);
    const auto found = data_->owners.find(owner_of(key));
    if (found == data_->owners.end())
      return std::nullopt;
    if (revision > found->second.scope.revision)
      return detail::no_revision(key, revision, found->second.scope.revision);
    const auto& kept = found->second;
    const auto first = kept.first_revision();
    if (revision < first)
      return detail::trimmed_revision(key, revision, first);
    const auto& log = *kept.log;
    stored_session past;
    past.first_revision = first;
    past.last_update_time = timestamp::min();
    const auto& part = part_with(log, revision);
    const bool is_trimmed = kept.first && &part_with(log, first) == &part;
    if (is_trimmed) {
      past.scope = kept.first->scope;
      past.last_update_time = kept.first->last_update_time;
    }
    for (const auto& entry : part.entries) {
      if (entry.revision > revision)
        break;
      if (is_trimmed && entry.revision <= first)
        continue;
      troupe::apply(past.scope, *entry.event, scope::session, entry.revision);
      past.last_update_time
        = std::max(past.last_update_time, entry.event->timestamp);
    }
    visit_events(log, first, revision, [&](const log_entry& entry) {
      if (past.events.size() == events_max)
        return false;
      past.events.push_back(entry.event);
      return true;
    });
    std::ranges::reverse(past.events);
    return past;
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    const std::shared_lock guard(data_->mutex);
    std::vector<event_ptr> loaded;
    const auto found = data_->owners.find(owner_of(key));
    if (found == data_->owners.end())
      return loaded;
    const auto kept_from = found->second.first_revision();
    if (kept_from > 0 && first <= kept_from)
      return detail::trimmed_event(key, first, kept_from);
    visit_events(
      *found->second.log, kept_from, last, [&](const log_entry& entry) {
        if (entry.revision < first)
          return false;
        loaded.push_back(entry.event);
        return true;
      });
    std::ranges::reverse(loaded);
    return loaded;
  }

  bool can_fork() const noexcept override { return true; }

  bool can_trim() const noexcept override { return true; }

  result<std::vector<session_row>> list(const row_query& query) override {
    const std::shared_lock guard(data_->mutex);
    std::vector<session_row> rows;
    const auto& owners = data_->owners;
    for (const auto& owner : data_->sessions.page(query)) {
      const auto& kept = owners.at(owner);
      rows.push_back({{owner.app, owner.user, owner.session},
                      kept.scope.keys,
                      owners.at(user_of(owner)).scope.keys,
                      owners.at(app_of(owner)).scope.keys,
                      kept.scope.revision,
                      kept.last_update_time});
    }
    return rows;
  }

  result<std::vector<std::string>>
  list_users(const user_query& query) override {
    const std::shared_lock guard(data_->mutex);
    std::vector<std::string> names;
    const auto& owners = data_->owners;
    auto next = owners.lower_bound({query.app, next_name(query.behind)});
    while (names.size() < query.limit && next != owners.end()
           && next->first.app == query.app) {
      names.push_back(next->first.user);
      next = owners.lower_bound({query.app, next_name(names.back())});
    }
    return names;
  }

  result<std::vector<std::string>> list_apps(const app_query& query) override {
    const std::shared_lock guard(data_->mutex);
    std::vector<std::string> names;
    const auto& owners = data_->owners;
    auto next = owners.lower_bound({next_name(query.behind)});
    while (names.size() < query.limit && next != owners.end()) {
      const auto& app = next->first.app;
      // The first owner of an app is the app itself, if it has a scope.
      const auto below = owners.lower_bound({app, next_name({})});
      if ((below != owners.end() && below->first.app == app)
          || next->second.scope.keys.size() > 0)
        names.push_back(app);
      next = owners.lower_bound({next_name(app)});
    }
    return names;
  }

  bool can_list_runs() const noexcept override { return true; }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    const std::shared_lock guard(data_->mutex);
    return data_->runs.list(query, data_->clock());
  }

  result<void> renew_holder(const std::string& id) override {
    const std::unique_lock guard(data_->mutex);
    data_->runs.renew(id, data_->clock());
    return {};
  }

  result<void> remove_holder(const std::string& id) override {
    const std::unique_lock guard(data_->mutex);
    data_->runs.forget(id);
    return {};
  }

  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override {
    const std::shared_lock guard(data_->mutex);
    auto findings = data_->check();
    if (on_progress)
      on_progress(1);
    return findings;
  }

  result<void> close() override { return {}; }

private:
  std::shared_ptr<memory_data> data_;
};

} // namespace

std::shared_ptr<memory_data>
make_memory_data(std::function<timestamp()> clock) {
  return std::make_shared<memory_data>(std::move(clock));
}

std::unique_ptr<store> make_memory_store() {
  return make_memory_store(make_memory_data());
}

std::unique_ptr<store> make_memory_store(std::shared_ptr<memory_data> data) {
  return std::make_unique<memory_store>(std::move(data));
}

} // namespace troupe
